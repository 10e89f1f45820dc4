"""The table of layers: one line a sample, PyTorch's text and ours beside each other.

    layer("Linear", S("bias", "nn.Linear(5, 4)", "nn::Linear(5, 4)", x=normal(3, 5)))

A sample gives its name, the layer in PyTorch (a formula of formulas.py where it has none) and ours, and inputs by name: numbers
(normal, share), which get gradients, integers (ids) or truth values (mask, flags).  Both call it m(x), unless layer() or S says
otherwise: `call` is PyTorch's call and ours, `ours` (of layer) or `our_call` (of S) is ours where it reads differently.  The calls
see the inputs by their names.  `{name}` in a text is the sample's value of that name.  Further arguments:

    outputs      names of the outputs, which are all compared
    normal_start parameters start from normal values, which are PyTorch's to 1e-6; others are its bits
    differences  False: no derivatives by differences, because the sample stands on a kink, or the layer changes
    since        the first PyTorch whose numbers win ("2.4"): others do not write this sample

A sample without PyTorch's text (None) has derivatives by differences alone.  table_lm.py has the layers of language models;
layers.py writes PyTorch's numbers and our calls.
"""
from table import Input, cpp_text, filled, python_text, torch

if torch:
    from formulas import GroupedAttention, LayerNorm, RMSNorm, SelfAttention, SwiGLU, alibi, rotary, rotated
    from torch import nn

samples = []


class S:
    def __init__(self, name, theirs, ours, differences=True, call=None, our_call=None, outputs=None, since=None, **given):
        self.name, self.theirs, self.ours, self.differences, self.since = name, theirs, ours, differences, since
        self.call, self.our_call, self.outputs = call, our_call, outputs
        self.inputs = {k: v for k, v in given.items() if isinstance(v, Input)}
        self.values = {k: v for k, v in given.items() if k not in self.inputs}


def layer(name, *lines, call="m(x)", ours=None, outputs="y", normal_start=False, table=samples):
    for s in lines:
        s.name, s.normal_start = f"{name}/{s.name}", normal_start
        s.our_call = filled(s.our_call or s.call or ours or call, s.values, cpp_text)
        s.call, s.theirs = filled(s.call or call, s.values, python_text), s.theirs and filled(s.theirs, s.values, python_text)
        s.outputs = (s.outputs or outputs).split()
        table.append(s)


# ---- inputs ----

def normal(*sizes, scale=1, shift=0):
    return Input(lambda generator: torch.randn(sizes, generator=generator) * scale + shift)


def share(*sizes):
    """In (0, 1)."""
    return Input(lambda generator: torch.rand(sizes, generator=generator) * 0.98 + 0.01)


def with_kinks():
    """Large and small values, and zeros of both signs."""
    special = [0.0, -0.0, 1e-3, -1e-3, 20, -20]
    return Input(lambda generator: torch.cat([torch.randn(30, generator=generator) * 3, torch.tensor(special)]))


def ids(data):
    return Input(lambda generator: torch.tensor(data), "ids")


def drawn_ids(end, *sizes, without=None):
    """Below `end`; the element at `without` does not count as a target."""
    def draw(generator):
        drawn = torch.randint(end, sizes, generator=generator)
        if without:
            drawn[without] = -100
        return drawn
    return Input(draw, "ids")


def mask(data):
    return Input(lambda generator: torch.tensor(data).long(), "mask")


def flags(p, *sizes, never=None, always=None):
    """True with probability p; `never` and `always` at these places of the last dimension."""
    def draw(generator):
        drawn = (torch.rand(sizes, generator=generator) < p).long()
        if never is not None:
            drawn[..., never] = 0
        if always is not None:
            drawn[..., always] = 1
        return drawn
    return Input(draw, "mask")


# ---- helpers in both languages: layer_calls.cpp has ours ----

def evaluated(m, x=None):
    """In evaluation, after a call with x."""
    if x is not None:
        m(x)
    return m.eval()


def called_batch_norm(m, x, calls, evaluate):
    """Calls, with x, 2 x and so on, then perhaps one in evaluation; the statistics after them."""
    for i in range(calls):
        y = m(x * (i + 1))
    if evaluate:
        y = m.eval()(x)
    return (y, *(b.to(x.dtype) for b in m.buffers()))


def causal(T):
    return torch.ones(T, T).tril().bool()


# ---- the table ----

layer("Linear",
      S("bias", "nn.Linear(5, 4)", "nn::Linear(5, 4)", x=normal(3, 5)),
      S("no_bias", "nn.Linear(5, 4, bias=False)", "nn::Linear(5, 4, false)", x=normal(3, 5)),
      S("3d", "nn.Linear(7, 9)", "nn::Linear(7, 9)", x=normal(2, 3, 7)),
      S("1d", "nn.Linear(3, 2)", "nn::Linear(3, 2)", x=normal(3)),
      S("wide", "nn.Linear(40, 17)", "nn::Linear(40, 17)", x=normal(6, 40)))
some_ids = [[0, 3, 3, 6], [6, 3, 1, 0]]  # 2, 4 and 5 get no gradient
layer("Embedding",
      S("repeated", "nn.Embedding(7, 5)", "nn::Embedding(7, 5)", ids=ids(some_ids)),
      S("padding", "nn.Embedding(7, 5, padding_idx=3)", "nn::Embedding(7, 5, {.padding_idx = 3})", ids=ids(some_ids), differences=False),
      S("padding_from_the_end", "nn.Embedding(7, 5, padding_idx=-1)", "nn::Embedding(7, 5, {.padding_idx = -1})", ids=ids(some_ids),
        differences=False),
      S("padding_elsewhere", "nn.Embedding(7, 5, padding_idx=2)", "nn::Embedding(7, 5, {.padding_idx = 2})", ids=ids(some_ids)),
      S("small", "nn.Embedding(3, 4)", "nn::Embedding(3, 4)", ids=ids([0, 1])),
      call="m(ids)", normal_start=True)
layer("LayerNorm",
      S("bias", "nn.LayerNorm(6)", "nn::LayerNorm(6)", x=normal(4, 6, scale=3, shift=1)),
      S("3d", "nn.LayerNorm(37)", "nn::LayerNorm(37)", x=normal(2, 3, 37)),
      S("two_dimensions", "nn.LayerNorm((3, 4))", "nn::LayerNorm({3, 4})", x=normal(2, 3, 4)),
      S("eps", "nn.LayerNorm(6, eps=0.1)", "nn::LayerNorm(6, {.eps = 0.1})", x=normal(4, 6)),
      S("no_bias", "LayerNorm(6, False)", "nn::LayerNorm(6, {.bias = false})", x=normal(4, 6)))
layer("RMSNorm",
      S("default_eps", "RMSNorm((6,))", "nn::RMSNorm(6)", x=normal(4, 6)),
      S("eps", "RMSNorm((37,), 0.1)", "nn::RMSNorm(37, 0.1)", x=normal(2, 3, 37)),
      S("two_dimensions", "RMSNorm((3, 4))", "nn::RMSNorm(Dims{3, 4})", x=normal(2, 3, 4)))
layer("Dropout",
      S("0.3", "nn.Dropout(0.3)", "nn::Dropout(0.3)", x=normal(5, 7)),
      S("0.5", "nn.Dropout()", "nn::Dropout()", x=normal(4, 4)),
      S("0", "nn.Dropout(0)", "nn::Dropout(0)", x=normal(4)),
      S("1", "nn.Dropout(1)", "nn::Dropout(1)", x=normal(4)),
      S("eval", "evaluated(nn.Dropout(0.3))", "evaluated(nn::Dropout(0.3))", x=normal(5)))
for name, smooth in ("ReLU", False), ("SiLU", True), ("Tanh", True), ("Sigmoid", True):
    layer(name, S("default", f"nn.{name}()", f"nn::{name}()", x=with_kinks(), differences=smooth))
layer("ReLU", S("normal", "nn.ReLU()", "nn::ReLU()", x=normal(2, 5)))
layer("GELU",
      S("erf", "nn.GELU()", "nn::GELU()", x=with_kinks()),
      S("tanh", "nn.GELU(approximate='tanh')", "nn::GELU{Gelu::tanh}", x=with_kinks()))
layer("Softmax",
      *(S(str(dim), "nn.Softmax({dim})", "nn::Softmax{{dim}}", dim=dim, x=normal(3, 4, 5, scale=4)) for dim in (-1, 0, 1)))
layer("Sequential",
      S("mixed", "nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Dropout(0.4), nn.Linear(6, 3))",
        "nn::Sequential{nn::Linear(4, 6), nn::GELU(), nn::LayerNorm(6), nn::Dropout(0.4), nn::Linear(6, 3)}", x=normal(5, 4)))
layer("Sequential",
      S("of_ids", "nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2), nn.Tanh())",
        "nn::Sequential{nn::Embedding(5, 3), nn::Linear(3, 2), nn::Tanh()}", ids=ids([[0, 4], [4, 2]])),
      call="m(ids)", normal_start=True)

B, T, K, C, H = 2, 4, 5, 6, 2
query, key, value, scores = normal(B, T, C), normal(B, K, C), normal(B, K, C), normal(T, K)
cross = {"query": query, "key": key, "value": value}
padded = cross | {"padding": mask([[0, 0, 0, 0, 1], [0, 0, 0, 1, 1]])}
some_keys, some_of_each_head = flags(0.4, T, K, never=1), flags(0.4, B * H, T, K, never=1)  # no row is forbidden completely


def attention(name, inputs, theirs="", ours="", bias=True, dropout=0.0, outputs="y weights"):
    """Calls with query, key and value: the query is all that is not given.  `theirs` and `ours` are further arguments."""
    k = "key" if "key" in inputs else "query"
    arguments = f"query, {k}, {'value' if 'value' in inputs else k}"
    layer("MultiHeadAttention",
          S(name, f"nn.MultiheadAttention({C}, {H}, dropout={dropout}, bias={bias}, batch_first=True)",
            f"nn::MultiHeadAttention({C}, {H}, {{.dropout = {dropout}, .bias = {cpp_text(bias)}}})", **inputs),
          call=f"m({arguments}, {theirs})", ours=f"m({arguments}, {{{ours}}})", outputs=outputs)


no_weights = "need_weights=False", ".need_weights = false"
per_head = "average_attn_weights=False", ".average_attn_weights = false"
causally = "attn_mask=~causal(query.size(1))", ".is_causal = true"
masked, padding = ("attn_mask=attn_mask", ".attn_mask = attn_mask"), ("key_padding_mask=padding", ".key_padding_mask = padding")


def both(*options):
    """The arguments of several such pairs."""
    return {"theirs": ", ".join(o[0] for o in options), "ours": ", ".join(o[1] for o in options)}


attention("self", {"query": query})
attention("self_per_head", {"query": query}, **both(per_head))
attention("self_no_weights", {"query": query}, **both(no_weights))
attention("self_no_bias", {"query": query}, bias=False)
attention("self_unbatched", {"query": normal(T, C)})
attention("causal", {"query": query}, **both(causally))
attention("causal_no_weights", {"query": query}, **both(causally, no_weights))
attention("cross", cross)
attention("cross_no_weights", cross, **both(no_weights))
attention("cross_no_bias_per_head", cross, **both(per_head), bias=False)
attention("cross_key_is_value", {"query": query, "key": key})
attention("bool_mask", cross | {"attn_mask": some_keys}, **both(masked))
attention("bool_mask_no_weights", cross | {"attn_mask": some_keys}, **both(masked, no_weights))
attention("bool_mask_of_each_head", cross | {"attn_mask": some_of_each_head}, **both(masked, per_head))
attention("additive_mask", cross | {"attn_mask": scores}, **both(masked))
attention("additive_mask_no_weights", cross | {"attn_mask": scores}, **both(masked, no_weights))
attention("additive_mask_of_each_head", cross | {"attn_mask": normal(B * H, T, K)}, **both(masked))
attention("padding", padded, **both(padding))
attention("padding_and_bool_mask_no_weights", padded | {"attn_mask": some_keys}, **both(masked, padding, no_weights))
attention("padding_and_additive_mask", padded | {"attn_mask": scores}, **both(masked, padding))
attention("dropout", {"query": query}, dropout=0.3)
attention("dropout_no_weights", cross, **both(no_weights), dropout=0.3)
attention("dropout_causal_no_weights", {"query": query}, **both(causally, no_weights), dropout=0.3)
attention("dropout_causal_per_head", {"query": query}, **both(causally, per_head), dropout=0.3)
layer("MultiHeadAttention",
      S("small", "nn.MultiheadAttention(4, 2, batch_first=True)", "nn::MultiHeadAttention(4, 2)", query=normal(2, 2, 4), key=normal(2, 3, 4)),
      call="m(query, key, key)", outputs="y weights")

x = normal(B, T, C)
layer("SelfAttention",
      S("plain", "SelfAttention(6)", "nn::SelfAttention(6)", x=x),
      S("unbatched", "SelfAttention(6)", "nn::SelfAttention(6)", x=normal(T, C)),
      S("causal", "SelfAttention(6)", "nn::SelfAttention(6)", call="m(x, causal(4))", our_call="m(x, {.is_causal = true})", x=x),
      S("mask", "SelfAttention(6)", "nn::SelfAttention(6)", call="m(x, mask)", our_call="m(x, {.mask = mask})", x=x,
        mask=flags(0.5, B, T, T, always=0)),
      S("mask_and_causal", "SelfAttention(6)", "nn::SelfAttention(6)", call="m(x, mask & causal(4))",
        our_call="m(x, {.mask = mask, .is_causal = true})", x=x, mask=flags(0.5, B, T, T, always=0)),
      S("mask_with_a_row_of_none", None, "nn::SelfAttention(4)", our_call="m(x, {.mask = mask})", x=normal(2, 3, 4),
        mask=mask([[1, 0, 1], [0, 0, 0], [1, 1, 0]])),
      S("widths", "SelfAttention(6, d_k=3, d_v=5)", "nn::SelfAttention(6, {.d_k = 3, .d_v = 5})", x=x),
      S("no_output_projection", "SelfAttention(6, 3, 5, False)",
        "nn::SelfAttention(6, {.d_k = 3, .d_v = 5, .output_projection = false})", x=x),
      outputs="y weights")

layer("Identity", S("default", "nn.Identity()", "nn::Identity()", x=normal(2, 3)))
layer("Flatten",
      S("default", "nn.Flatten()", "nn::Flatten()", x=normal(2, 3, 4)),
      S("0_1", "nn.Flatten(0, 1)", "nn::Flatten{0, 1}", x=normal(2, 3, 4)))
layer("LeakyReLU",
      S("default", "nn.LeakyReLU()", "nn::LeakyReLU()", x=with_kinks(), differences=False),
      S("0.2", "nn.LeakyReLU(0.2)", "nn::LeakyReLU{0.2}", x=with_kinks(), differences=False),
      S("normal", "nn.LeakyReLU(0.2)", "nn::LeakyReLU{0.2}", x=normal(2, 5)))
layer("ELU",
      S("default", "nn.ELU()", "nn::ELU()", x=with_kinks(), differences=False),
      S("0.5", "nn.ELU(0.5)", "nn::ELU{0.5}", x=with_kinks(), differences=False),
      S("normal", "nn.ELU(0.7)", "nn::ELU{0.7}", x=normal(2, 5)))
layer("Softplus",
      S("default", "nn.Softplus()", "nn::Softplus()", x=with_kinks(), differences=False),  # it becomes linear at 20
      S("2_3", "nn.Softplus(2, 3)", "nn::Softplus{2, 3}", x=with_kinks()),
      S("normal", "nn.Softplus(2)", "nn::Softplus{2}", x=normal(2, 5)))
layer("PReLU",
      S("one", "nn.PReLU()", "nn::PReLU()", x=with_kinks(), differences=False),
      S("normal", "nn.PReLU()", "nn::PReLU()", x=normal(2, 5)),
      S("channels", "nn.PReLU(3, 0.1)", "nn::PReLU(3, 0.1)", x=normal(2, 3, 4)),
      S("rows", "nn.PReLU(3)", "nn::PReLU(3)", x=normal(4, 3)))
layer("LogSoftmax",
      *(S(str(dim), "nn.LogSoftmax({dim})", "nn::LogSoftmax{{dim}}", dim=dim, x=normal(3, 4, 5, scale=4)) for dim in (-1, 0)))
layer("GroupNorm",
      S("3d", "nn.GroupNorm(2, 6)", "nn::GroupNorm(2, 6)", x=normal(3, 6, 5, scale=3, shift=1)),
      S("2d", "nn.GroupNorm(2, 8)", "nn::GroupNorm(2, 8)", x=normal(4, 8)),
      S("4d", "nn.GroupNorm(1, 4, eps=0.1)", "nn::GroupNorm(1, 4, {.eps = 0.1})", x=normal(2, 4, 2, 3)),
      S("not_affine", "nn.GroupNorm(4, 4, affine=False)", "nn::GroupNorm(4, 4, {.affine = false})", x=normal(2, 4, 7)))
layer("SwiGLU",
      S("default", "SwiGLU(4, 6)", "nn::SwiGLU(4, 6)", x=normal(2, 3, 4)),
      S("bias", "SwiGLU(4, 6, True)", "nn::SwiGLU(4, 6, true)", x=normal(3, 4)))
rows, long = normal(5, 3, scale=2, shift=1), normal(4, 3, 5)
layer("BatchNorm1d",
      S("2d", "nn.BatchNorm1d(3)", "nn::BatchNorm1d(3)", calls=1, then_eval=False, x=rows),
      S("3d", "nn.BatchNorm1d(3)", "nn::BatchNorm1d(3)", calls=2, then_eval=False, x=long),
      S("cumulative", "nn.BatchNorm1d(3, momentum=None)", "nn::BatchNorm1d(3, {.momentum = std::nullopt})", calls=3, then_eval=False, x=rows),
      S("momentum", "nn.BatchNorm1d(3, momentum=0.4, eps=0.1)", "nn::BatchNorm1d(3, {.eps = 0.1, .momentum = 0.4})", calls=1,
        then_eval=False, x=rows),
      S("eval", "nn.BatchNorm1d(3)", "nn::BatchNorm1d(3)", calls=1, then_eval=True, x=rows, differences=False),
      S("eval_3d", "nn.BatchNorm1d(3)", "nn::BatchNorm1d(3)", calls=2, then_eval=True, x=long, differences=False),
      S("eval_alone", "evaluated(nn.BatchNorm1d(3), torch.arange(12.).reshape(4, 3))",
        "evaluated(nn::BatchNorm1d(3), reshape(arange(0, 12), {4, 3}))", x=rows, call="m(x)"),
      S("not_affine", "nn.BatchNorm1d(3, affine=False)", "nn::BatchNorm1d(3, {.affine = false})", calls=1, then_eval=False, x=long),
      S("no_statistics", "nn.BatchNorm1d(3, track_running_stats=False)", "nn::BatchNorm1d(3, {.track_running_stats = false})", calls=1,
        then_eval=True, x=rows, differences=False),
      call="called_batch_norm(m, x, {calls}, {then_eval})", outputs="y running_mean running_var num_batches_tracked")


def recurrent(name, x, theirs="", ours="", states=True, ends=()):
    """LSTM and GRU, perhaps with states to start from, of sizes ends + (4,)."""
    for kind, letters in ("LSTM", "hc"), ("GRU", "h"):
        given = {k: normal(*ends, 4) for k in letters} if states else {}
        start = ", (h, c)" if states and kind == "LSTM" else ", h" if states else ""
        layer(kind, S(name, f"nn.{kind}(3, 4, {theirs})", f"nn::{kind}(3, 4, {{{ours}}})", x=normal(*x), **given), call=f"m(x{start})",
              ours=f"m(x{start.replace('(', '{').replace(')', '}')})", outputs="y h_n c_n" if kind == "LSTM" else "y h_n")


recurrent("default", (5, 2, 3), states=False)
recurrent("start", (5, 2, 3), ends=(1, 2))
recurrent("unbatched", (5, 3), ends=(1,))
recurrent("batch_first", (2, 5, 3), "batch_first=True", ".batch_first = true", ends=(1, 2))
recurrent("no_bias", (3, 2, 3), "bias=False", ".bias = false", states=False)
recurrent("both_ways", (4, 2, 3), "bidirectional=True", ".bidirectional = true", ends=(2, 2))
recurrent("three_layers", (4, 2, 3), "num_layers=3", ".num_layers = 3", ends=(3, 2))
recurrent("all", (2, 4, 3), "num_layers=2, bidirectional=True, batch_first=True, dropout=0.3",
          ".num_layers = 2, .batch_first = true, .dropout = 0.3, .bidirectional = true", ends=(4, 2))
recurrent("unbatched_both_ways", (4, 3), "num_layers=2, bidirectional=True", ".num_layers = 2, .bidirectional = true", states=False)

x, positions, of_batch = normal(2, 3, 4, 6), ids([0, 1, 5, 1000]), ids([[[0, 1, 2, 3]], [[4, 5, 6, 7]]])
layer("RotaryEmbedding",
      *(S(name, "nn.Identity()", "nn::Identity()", theta=theta, interleaved=pairs == "interleaved", pairs=pairs, x=x, positions=at)
        for name, at, theta, pairs in (("half", positions, 1e4, "half"), ("interleaved", positions, 1e4, "interleaved"),
                                       ("theta", positions, 500.0, "half"), ("of_batch", of_batch, 1e4, "half"))),
      call="rotary(x, positions, {theta}, {interleaved})",
      ours="nn::RotaryEmbedding(6, positions, {.theta = {theta}, .pairs = nn::RotaryPairs::{pairs}})(x)")
long, far = normal(2, 4, 16), ids([0, 1, 50, 3000])
layer("RotaryEmbedding",
      *(S(name, "nn.Identity()", "nn::Identity()", x=long, call=theirs, our_call=f"nn::RotaryEmbedding({ours})(x)", **given)
        for name, theirs, ours, given in (
            ("partial", "rotary(x, positions, 1e4, False, 8)", "16, positions, {.partial_rotary_factor = 0.5}", {"positions": far}),
            ("partial_interleaved", "rotary(x, positions, 1e4, True, 4)",
             "16, positions, {.pairs = nn::RotaryPairs::interleaved, .partial_rotary_factor = 0.3}", {"positions": far}),
            ("given", "rotated(x, cos, sin)", "cos, sin", {"cos": normal(4, 8), "sin": normal(4, 8)}),
            ("given_partial", "rotated(x, cos, sin, True)", "cos, sin, nn::RotaryPairs::interleaved",
             {"cos": normal(2, 4, 3), "sin": normal(2, 4, 3)}))))
layer("alibi_bias",
      *(S(f"{heads}_{offset}", "nn.Identity()", "nn::Identity()", heads=heads, offset=offset, x=normal(heads, 3, 5))
        for heads, offset in ((8, 0), (6, 2), (1, 0))),
      call="x + alibi({heads}, 3, 5, {offset}).to(x.dtype)", ours="x + nn::alibi_bias({heads}, 3, 5, {offset}, x.dtype())")

query, key = normal(2, 4, 8), normal(2, 5, 8)
few = flags(0.6, 4, 5, always=1)


def grouped(name, groups, which="None", options="", weights=False, bias=True, dropout=0.0, **inputs):
    k = "key" if "key" in inputs else "query"
    options += "" if weights else ".need_weights = false"
    layer("MultiHeadAttention",
          S(f"grouped_{name}", f"GroupedAttention(8, 4, {groups}, {bias}, {dropout})",
            f"nn::MultiHeadAttention(8, 4, {{.dropout = {dropout}, .bias = {cpp_text(bias)}, .num_kv_heads = {groups}}})", **inputs),
          call=f"m(query, {k}, {which}, {weights})", ours=f"m(query, {k}, {k}, {{{options}}})", outputs="y weights")


grouped("self", 2, weights=True, query=query)
grouped("causal", 2, "causal(4)", ".is_causal = true, ", query=query)
grouped("one", 1, "causal(4)", ".is_causal = true, ", bias=False, query=query)
grouped("cross", 2, query=query, key=key)
grouped("mask", 1, "allowed", ".attn_mask = ~allowed, ", weights=True, query=query, key=key, allowed=few)
grouped("mask_no_weights", 2, "allowed", ".attn_mask = ~allowed, ", query=query, key=key, allowed=few)
grouped("dropout", 2, "causal(4)", ".is_causal = true, ", dropout=0.3, query=query)

if torch:
    weights, scales = torch.tensor([0.5, 2, 1, 3]), torch.tensor([[0.5], [2], [1]])
our_weights, our_scales = "tensor({0.5, 2, 1, 3})", "tensor({{0.5}, {2}, {1}})"
numbers = {"x": normal(3, 4), "target": normal(3, 4)}
shares = {"x": normal(3, 4), "target": share(3, 4)}
two_shares = {"x": share(3, 4), "target": share(3, 4)}
classes = {"x": normal(3, 4), "target": ids([2, 0, 3])}


def losses(name, *lines):
    layer(name, *lines, call="m(x, target)", outputs="loss")


for name, ours in (("MSELoss", "{Reduction::{r}}"), ("L1Loss", "{Reduction::{r}}"), ("SmoothL1Loss", "{{Reduction::{r}}}"),
                   ("HuberLoss", "{{Reduction::{r}}}"), ("KLDivLoss", "{{Reduction::{r}}}")):
    losses(name, *(S(r, f"nn.{name}(reduction='{r}')", f"nn::{name}{ours}", r=r, **shares) for r in ("mean", "sum", "none")))
losses("SmoothL1Loss", S("beta", "nn.SmoothL1Loss(beta=0.3)", "nn::SmoothL1Loss{{.beta = 0.3}}", **numbers))
losses("HuberLoss", S("delta", "nn.HuberLoss(delta=0.3)", "nn::HuberLoss{{.delta = 0.3}}", **numbers))
losses("KLDivLoss", S("log_target", "nn.KLDivLoss(log_target=True)", "nn::KLDivLoss{{.log_target = true}}", **numbers))
losses("CrossEntropyLoss",
       S("default", "nn.CrossEntropyLoss()", "nn::CrossEntropyLoss()", **classes),
       S("probabilities", "nn.CrossEntropyLoss()", "nn::CrossEntropyLoss()", **shares),
       S("weight", "nn.CrossEntropyLoss(weights, label_smoothing=0.1)",
         f"nn::CrossEntropyLoss{{{{.weight = {our_weights}, .label_smoothing = 0.1}}}}", **classes))
losses("NLLLoss", S("weight", "nn.NLLLoss(weights, reduction='sum')",
                    f"nn::NLLLoss{{{{.weight = {our_weights}, .reduction = Reduction::sum}}}}", **classes))
losses("BCELoss",
       S("default", "nn.BCELoss()", "nn::BCELoss()", **two_shares),
       S("weight", "nn.BCELoss(scales, reduction='sum')", f"nn::BCELoss{{{{.weight = {our_scales}, .reduction = Reduction::sum}}}}", **two_shares))
losses("BCEWithLogitsLoss",
       S("default", "nn.BCEWithLogitsLoss()", "nn::BCEWithLogitsLoss()", **shares),
       S("weights", "nn.BCEWithLogitsLoss(scales, pos_weight=weights)",
         f"nn::BCEWithLogitsLoss{{{{.weight = {our_scales}, .pos_weight = {our_weights}}}}}", **shares))
