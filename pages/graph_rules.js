// The local rules as the page computes them itself, from the values alone: what the program's contributions are held to.
// slopes.op[i](a, b, y) is the derivative of an elementwise op by its input i, or undefined where the values do not say it.
const slopes = (() => {
  const sigma = (x) => 1 / (1 + Math.exp(-x));
  const half = (a, b, greater) => (a === b ? 0.5 : a > b === greater ? 1 : 0);
  const near = (a, b) => Math.abs(a - b) <= 1e-5 * (Math.abs(a) + Math.abs(b) + 1e-30);
  const plain = (y, expected, slope) => (near(y, expected) ? slope : undefined); // add(a, b, alpha), div(a, b, floor)
  return {
    add: [() => 1, (a, b, y) => plain(y, a + b, 1)],
    sub: [() => 1, (a, b, y) => plain(y, a - b, -1)],
    mul: [(a, b) => b, (a) => a],
    div: [(a, b, y) => plain(y, a / b, 1 / b), (a, b, y) => plain(y, a / b, -a / (b * b))],
    neg: [() => -1],
    exp: [(a, b, y) => y],
    expm1: [(a, b, y) => y + 1],
    log: [(a) => 1 / a],
    log1p: [(a) => 1 / (1 + a)],
    sqrt: [(a, b, y) => 1 / (2 * y)],
    rsqrt: [(a, b, y) => -(y * y * y) / 2],
    abs: [(a) => Math.sign(a)],
    sin: [(a) => Math.cos(a)],
    cos: [(a) => -Math.sin(a)],
    tanh: [(a) => Math.cosh(a) ** -2],
    sigmoid: [(a) => sigma(a) * sigma(-a)],
    relu: [(a) => (a > 0 ? 1 : 0)],
    silu: [(a) => sigma(a) * (1 + a * (1 - sigma(a)))],
    erf: [(a) => (2 / Math.sqrt(Math.PI)) * Math.exp(-a * a)],
    logsigmoid: [(a) => sigma(-a)],
    maximum: [(a, b) => half(a, b, true), (a, b) => half(b, a, true)],
    minimum: [(a, b) => half(a, b, false), (a, b) => half(b, a, false)],
    clone: [() => 1],
    to: [() => 1],
  };
})();

const size_of = (shape) => shape.reduce((n, d) => n * d, 1);
// All elements, or undefined if the page has only some or some are not finite.
const elements = (x) => (Array.isArray(x) && x.every((v) => typeof v === "number") ? x : undefined);

// Where element i of an output of this shape comes from in an operand that was broadcast to it.
function source(i, shape, operand) {
  let at = 0, stride = 1;
  for (let d = 1; d <= shape.length; ++d) {
    const n = shape[shape.length - d], k = i % n;
    i = Math.floor(i / n);
    const m = operand[operand.length - d];
    if (d <= operand.length) {
      at += (m === 1 ? 0 : k) * stride;
      stride *= m;
    }
  }
  return at;
}

const summed = (terms) => ({ terms, total: terms.map((list) => list.reduce((sum, [u, s]) => sum + u * s, 0)) });

// What an elementwise op adds to its input, by this page's own reckoning: {terms: [[g, slope]...] for each element, total}.
function by_slopes(part, consumer, nodes) {
  const slope = slopes[consumer.op];
  if (!slope || part.inputs.some((i) => !slope[i])) return undefined;
  const inputs = consumer.inputs.map((i) => nodes[i >> 1]);
  const [a, b] = inputs.map((node) => elements(node.value));
  const y = elements(consumer.value), g = elements(consumer.gradient);
  if (!a || !y || !g || (inputs.length > 1 && !b)) return undefined;
  const target = inputs[part.inputs[0]];
  const terms = Array.from({ length: size_of(target.shape) }, () => []);
  for (let i = 0; i < y.length; ++i)
    for (const input of part.inputs) {
      const x = a[source(i, consumer.shape, inputs[0].shape)];
      const z = b && b[source(i, consumer.shape, inputs[1].shape)];
      const s = slope[input](x, z, y[i]);
      if (s === undefined) return undefined;
      terms[source(i, consumer.shape, target.shape)].push([g[i], s]);
    }
  return summed(terms);
}

// The same for products of matrices, sums and softmax over the last dimension.
function by_products(part, consumer, nodes) {
  if (part.inputs.length !== 1) return undefined;
  const [i] = part.inputs, inputs = consumer.inputs.map((k) => nodes[k >> 1]);
  const g = elements(consumer.gradient), target = inputs[i];
  if (!g) return undefined;
  const n = size_of(target.shape);
  const made = (terms_of) => summed(Array.from({ length: n }, (_, k) => terms_of(k)));
  if (consumer.op === "sum" && g.length === 1) return made(() => [[g[0], 1]]);
  if (consumer.op === "mean" && g.length === 1) return made(() => [[g[0], 1 / n]]);
  const matrices = ["matmul", "mm"].includes(consumer.op) && inputs.every((x) => x.shape.length === 2);
  if ((matrices || consumer.op === "linear") && i < 2) {
    const other = elements(inputs[1 - i].value);
    if (!other) return undefined;
    const outs = consumer.shape[consumer.shape.length - 1], ins = inputs[0].shape[inputs[0].shape.length - 1];
    const rows = g.length / outs;
    const weight = (o, k) => (matrices ? k * outs + o : o * ins + k); // of a matrix (k, o), or of a weight (out, in)
    if (i === 0)
      return made((at) => Array.from({ length: outs }, (_, o) => [g[Math.floor(at / ins) * outs + o], other[weight(o, at % ins)]]));
    const [o_of, k_of] = matrices ? [(at) => at % outs, (at) => Math.floor(at / outs)] : [(at) => Math.floor(at / ins), (at) => at % ins];
    return made((at) => Array.from({ length: rows }, (_, r) => [g[r * outs + o_of(at)], other[r * ins + k_of(at)]]));
  }
  if (consumer.op === "linear" && i === 2)
    return made((at) => Array.from({ length: g.length / n }, (_, r) => [g[r * n + at], 1]));
  return undefined;
}

const reckoned = (part, consumer, nodes) => by_slopes(part, consumer, nodes) || by_products(part, consumer, nodes);
