// Sizes as users get and pass them.

#include <functional>
#include <iterator>
#include <regex>
#include <xgrad/xgrad.hpp>

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;

// Several of these in one `auto` do not compile if their types differ.
TEST_CASE("all sizes that users get and set are of one signed type", "[nn]") {
  const Tensor x = zeros({2, 3});
  nn::MultiHeadAttention heads(x.size(0), 1);
  const auto a = x.size(0), b = x.dim(), d = x.numel(), e = x.shape()[1], j = heads.num_heads,
             k = nn::num_parameters(heads), l = nn::RecurrentOptions().num_layers,
             m = nn::GroupNorm(1, 2).num_groups, n = nn::BatchNorm1d(2).num_features,
             o = nn::KeyValueCache(3).capacity(), p = nn::LoraOptions().rank,
             r = nn::SelfAttentionOptions{.d_k = x.size(1)}.d_k.value_or(a),
             t = AttentionOptions().causal_offset;
  CHECK(b * (a - e) - d + j + k + l + m + n + o + p + r + t > 0);
  CHECK(nn::Linear(a, 2 * a - 1)(zeros({1, a})).shape() == Shape{1, 3});
  const std::function<void()> refused[] = {[] { nn::SelfAttention(-1); },
                                           [] { nn::LSTM(1, -1); },
                                           [] { nn::GroupNorm(-1, 2); },
                                           [] { nn::MultiHeadAttention(2, -1); },
                                           [] { nn::RotaryEmbedding(-2, {0}); },
                                           [] { nn::future(-1, 1); },
                                           [] { nn::sliding_window(1, 1, -1); },
                                           [] { nn::alibi_bias(-1, 1, 1); },
                                           [&] { topk(x, -1); },
                                           [&] { x.split(-1); },
                                           [&] { x.split({-1, 3}); },
                                           [&] { x.chunk(-1); },
                                           [&] { multinomial(x + 1, -1); },
                                           [] { causal_self_attention(zeros({1, 1, 3}), -1); },
                                           [] { linspace(0, 1, -1); },
                                           [] { eye(-1); },
                                           [] { randperm(-1); }};
  for (std::size_t call = 0; call < std::size(refused); ++call) {
    INFO("call " << call);
    CHECK_THROWS_AS(refused[call](), Error);
  }
}

namespace {
const Tensor sized_x = ones({4, 6});
const Indices sized_ids = {1, 0};

template <class F>
void check_takes_integers(const char* call, const F& takes) {
  INFO(call);
  CHECK(takes(2));
  CHECK(takes(std::size_t{2}));
  CHECK_FALSE(takes(2.5));
  CHECK_FALSE(takes(2.5F));
}
}  // namespace
#define CHECK_TAKES_INTEGERS(call) \
  check_takes_integers(#call, []([[maybe_unused]] auto n) { return requires { call; }; })

TEST_CASE("sizes and dimensions are integers: a fraction does not compile", "[nn][sizes]") {
  CHECK_TAKES_INTEGERS(nn::Linear(n, 3));
  CHECK_TAKES_INTEGERS(nn::EmbeddingOptions{.padding_idx = n});
  CHECK_TAKES_INTEGERS(nn::GroupNorm(1, n));
  CHECK_TAKES_INTEGERS(nn::SwiGLU(4, n));
  CHECK_TAKES_INTEGERS(nn::Softmax{n});
  CHECK_TAKES_INTEGERS(nn::GRU(n, 3));
  CHECK_TAKES_INTEGERS(softmax(sized_x, n));
  CHECK_TAKES_INTEGERS(sized_x.softmax(n));
  CHECK_TAKES_INTEGERS(sized_x.size(n));
  CHECK_TAKES_INTEGERS(sized_x[n]);
  CHECK_TAKES_INTEGERS(Slice{n});
  CHECK_TAKES_INTEGERS(sized_x.slice(0, n, 3));
  CHECK_TAKES_INTEGERS(split(sized_x, n));
  CHECK_TAKES_INTEGERS(sized_x.split(n));
  CHECK_TAKES_INTEGERS(sized_x.template split<2>(n));
  CHECK_TAKES_INTEGERS(topk(sized_x, n));
  CHECK_TAKES_INTEGERS(embedding(sized_ids, sized_x, n));
  CHECK_TAKES_INTEGERS(sized_ids[n]);
  CHECK_TAKES_INTEGERS(zeros({2, n}));
  CHECK_TAKES_INTEGERS(eye(n));
  enum { C = 6 };
  CHECK(nn::Linear(C, 2)(sized_x).shape() == zeros({4, 2}).shape());
}

// The same of functions that are not written yet.  (An int64 takes a fraction and truncates it; the
// split_size and the list of sizes are overloads, which one type for both would make ambiguous.)
TEST_CASE("no function for users takes a size or dimension as an int64", "[nn][sizes]") {
  static const std::regex comment("//[^\n]*"),
      parameter(
          "[(,]\\s*(?:std::int64_t|Size|std::optional<(?:std::int64_t|Size)>)\\s+"
          "(?!split_size)([a-z_]\\w*\\s*(?:=[^,;)]*)?[,)])");
  std::vector<std::string> found;
  std::size_t with_dims = 0;
  for (const char* const header :
       {"autograd/tensor.hpp", "autograd/ops.hpp", "autograd/ops/shape.hpp",
        "autograd/ops/network.hpp", "autograd/ops/indices.hpp", "autograd/ops/factories.hpp",
        "autograd/ops/operators.hpp", "nn/layers.hpp", "nn/attention.hpp", "nn/recurrent.hpp",
        "nn/init.hpp", "lm/gpt.hpp"}) {
    const std::string text = std::regex_replace(read_bytes(source_dir + "/" + header), comment, "");
    with_dims += text.find("Dim ") != std::string::npos;
    for (std::sregex_iterator at(text.begin(), text.end(), parameter), end; at != end; ++at)
      if ((*at)[1] != "v)")  // of a lambda
        found.push_back(header + (": " + at->str()));
  }
  CHECK(with_dims > 8);
  CHECK(found == std::vector<std::string>());
}

TEST_CASE("a vector of any integers is Dims", "[nn][sizes]") {
  CHECK(zeros(std::vector<int>{2, 3}).shape() == Shape{2, 3});
  CHECK(sized_x.reshape(std::vector<std::size_t>{3, 8}).shape() == Shape{3, 8});
  CHECK_THROWS_WITH(zeros(std::vector<std::uint64_t>{1ULL << 63}),
                    ContainsSubstring("a size or dimension is 9223372036854775808"));
  CHECK_FALSE(std::is_constructible_v<Dims, std::vector<double>>);
}

TEST_CASE("layers refuse the sizes that PyTorch's refuse, by name", "[nn][sizes]") {
  CHECK_THROWS_WITH(nn::Embedding(10, -1), ContainsSubstring("Embedding: dim is -1"));
  CHECK_THROWS_WITH(nn::Linear(-1, 2), ContainsSubstring("Linear: in_features is -1"));
  CHECK_THROWS_WITH(nn::PReLU(-1), ContainsSubstring("PReLU: num_parameters is -1"));
  CHECK_THROWS_WITH(nn::BatchNorm1d(-1), ContainsSubstring("BatchNorm1d: num_features is -1"));
  CHECK_THROWS_WITH(nn::GroupNorm(1, -4), ContainsSubstring("GroupNorm: num_channels is -4"));
  CHECK_THROWS_WITH(nn::LayerNorm({2, -3}), ContainsSubstring("LayerNorm: size -3"));
  CHECK_THROWS_WITH(nn::RMSNorm(-3), ContainsSubstring("RMSNorm: size -3"));
  CHECK_THROWS_WITH(nn::LSTM(0, 5), ContainsSubstring("LSTM: input_size 0"));
  CHECK_NOTHROW(nn::Linear(0, 0));

  // PyTorch 2.15 constructs these and refuses calls.
  CHECK_THROWS_WITH(nn::GroupNorm(1, 0)(zeros({2, 0, 3})), ContainsSubstring("needs a value"));
  CHECK_THROWS_WITH(nn::GroupNorm(2, 4)(zeros({2, 4, 0})), ContainsSubstring("needs a value"));
  CHECK_THROWS_WITH(nn::GroupNorm(4, 4)(zeros({1, 4})), ContainsSubstring("groups of one value"));
  CHECK(nn::GroupNorm(2, 4)(zeros({0, 4, 3})).shape() == Shape{0, 4, 3});
  for (const double eps : {0.0, -1.0}) {
    nn::BatchNorm1d norm(6, {.eps = eps});
    CHECK_THROWS_WITH(norm(sized_x), ContainsSubstring("BatchNorm1d: eps is"));
    norm.training = false;
    if (eps < 0)
      CHECK_THROWS_WITH(norm(sized_x), ContainsSubstring("it must be positive or 0"));
    nn::BatchNorm1d untracked(6, {.eps = eps, .track_running_stats = false});
    untracked.training = false;
    CHECK_THROWS_WITH(untracked(sized_x), ContainsSubstring("it must be positive"));
  }
  CHECK_THROWS_WITH(roll(sized_x, {}), ContainsSubstring("roll: shifts is empty"));
}

TEST_CASE("options of Linear and RMSNorm by name and by place", "[nn]") {
  CHECK_FALSE(nn::Linear(2, 3, {.bias = false}).bias.defined());
  CHECK_FALSE(nn::Linear(2, 3, false).bias.defined());
  CHECK(nn::Linear(2, 3, {}).bias.defined());
  CHECK(nn::RMSNorm(8, {.eps = 1e-5}).eps == 1e-5);
  CHECK(nn::RMSNorm(8, 1e-5).eps == 1e-5);
  CHECK_FALSE(nn::RMSNorm(8, std::nullopt).eps.has_value());
  CHECK_FALSE(nn::RMSNorm(8, {}).eps.has_value());
}
