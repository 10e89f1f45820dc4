// The calls of tests/golden/cases_reduce.py.

#include <limits>

#include "golden/ops.hpp"
#include "helpers/tensors.hpp"

namespace xgrad::testing {
namespace {

using In = GoldenInputs;
using Reduce = std::function<Tensor(const Tensor&, const Dims&, bool)>;

// The samples that all reductions over several dimensions have.
void add_samples(GoldenCalls& calls, const std::string& op, const Reduce& f) {
  const auto over = [&](const std::string& sample, const Dims& dims, bool keepdim = false) {
    calls.add(op, {sample}, [=](const In& in) { return f(in[0], dims, keepdim); });
  };
  over("all", {});
  over("dim 0", {0});
  over("dim -1", {-1});
  over("middle, keepdim", {1}, true);
  over("dims 0 and 2", {0, 2});
  over("dims -1 and -3, keepdim", {-1, -3}, true);
  over("no rows", {1});
  if (op == "var" || op == "std")
    return;
  over("0-d", {});
  over("size 1", {1});
  over("size 1, keepdim", {-2}, true);
}

void add_sums(GoldenCalls& calls) {
  add_samples(calls, "sum", [](const Tensor& x, const Dims& dims, bool keepdim) {
    return dims.empty() ? sum(x) : sum(x, dims, keepdim);
  });
  add_samples(calls, "mean", [](const Tensor& x, const Dims& dims, bool keepdim) {
    return dims.empty() ? mean(x) : mean(x, dims, keepdim);
  });
  add_samples(calls, "logsumexp", logsumexp);
  add_samples(calls, "amax", amax);
  add_samples(calls, "amin", amin);
  add_samples(calls, "var", [](const Tensor& x, const Dims& dims, bool keepdim) {
    return var(x, dims, 1, keepdim);
  });
  add_samples(calls, "std", [](const Tensor& x, const Dims& dims, bool keepdim) {
    return xgrad::std(x, dims, 1, keepdim);
  });
  for (const auto& [op, f] : {std::pair{"var", &var}, std::pair{"std", &xgrad::std}}) {
    const auto over = [&calls, op = op, f = f](const std::string& sample, const Dims& dims,
                                               double correction, bool keepdim = false) {
      calls.add(op, {sample}, [=](const In& in) { return f(in[0], dims, correction, keepdim); });
    };
    over("biased, all", {}, false);
    over("biased, dim 1", {1}, false);
    over("biased, dims 0 and -1, keepdim", {0, -1}, false, true);
    over("equal numbers", {1}, true);
    over("correction 0", {1}, 0);
    over("correction 2", {1}, 2);
    over("correction -1", {1}, -1);
    over("correction 3, dims 0 and -1, keepdim", {0, -1}, 3, true);
  }
  calls.add("var", {"biased, size 1"}, [](const In& in) { return var(in[0], 1, false); });
  calls.add("sum", {"dtype"}, [](const In& in) { return sum(in[0], 1, false, DType::float64); });
  calls.add("prod", {"dtype"}, [](const In& in) { return prod(in[0], 1, false, DType::float64); });
  calls.add("cumsum", {"dtype"}, [](const In& in) { return cumsum(in[0], 1, DType::float64); });
  calls.add("sum", {"nothing"}, [](const In& in) { return sum(in[0]); });
  calls.add("sum", {"nothing, dim 0"}, [](const In& in) { return sum(in[0], 0); });
  calls.add("logsumexp", {"minus infinities and large numbers"},
            [](const In& in) { return logsumexp(in[0], 1); });

  const auto sum_to_shape = [&](const std::string& sample, const Shape& shape) {
    calls.add("sum_to", {sample}, [=](const In& in) { return sum_to(in[0], shape); });
  };
  sum_to_shape("the same shape", {2, 3});
  sum_to_shape("a leading dimension", {3});
  sum_to_shape("a size of 1", {4, 1});
  sum_to_shape("both", {3, 1});
  sum_to_shape("to 0-d", {});
  sum_to_shape("0-d", {});
  sum_to_shape("from nothing", {3});
}

void add_products(GoldenCalls& calls) {
  calls.add("prod", {"all", "0-d", "nothing", "one zero, all"},
            [](const In& in) { return prod(in[0]); });
  calls.add("prod", {"dim 0"}, [](const In& in) { return prod(in[0], 0); });
  calls.add("prod", {"dim -1, keepdim"}, [](const In& in) { return prod(in[0], -1, true); });
  calls.add("prod", {"middle", "size 1", "none, one, two and three zeros, dim 1"},
            [](const In& in) { return prod(in[0], 1); });
}

void add_extrema(GoldenCalls& calls) {
  using Along = Extremum(const Tensor&, std::int64_t, bool);
  using Over = Tensor(const Tensor&, const Dims&, bool);
  const auto along = [&](const std::string& op, Along* f) {
    calls.add(op, {"dim 0", "dim 0, ties"}, [f](const In& in) { return f(in[0], 0, false); });
    calls.add(op, {"dim -1, keepdim"}, [f](const In& in) { return f(in[0], -1, true); });
    calls.add(op, {"dim 1, ties", "size 1", "no rows"},
              [f](const In& in) { return f(in[0], 1, false); });
  };
  const auto over = [&](const std::string& op, Over* f) {
    calls.add(op, {"ties"}, [f](const In& in) { return f(in[0], 1, false); });
    calls.add(op, {"ties, all"}, [f](const In& in) { return f(in[0], {0, 1}, false); });
    calls.add(op, {"ties, keepdim"}, [f](const In& in) { return f(in[0], -1, true); });
  };
  calls.add("max", {"all", "all, ties", "0-d"}, [](const In& in) { return max(in[0]); });
  calls.add("min", {"all", "all, ties", "0-d"}, [](const In& in) { return min(in[0]); });
  along("max", max);
  along("min", min);
  over("amax", amax);
  over("amin", amin);
}

void add_norms(GoldenCalls& calls) {
  const auto total = [&](const std::string& sample, double ord) {
    calls.add("vector_norm", {sample}, [=](const In& in) { return vector_norm(in[0], ord); });
  };
  const auto along_1 = [&](const std::string& sample, double ord) {
    calls.add("vector_norm", {sample}, [=](const In& in) { return vector_norm(in[0], ord, 1); });
  };
  for (const auto& [text, ord] : {std::pair{"2", 2.0},
                                  {"1", 1},
                                  {"3", 3},
                                  {"0.5", 0.5},
                                  {"-1", -1},
                                  {"inf", inf},
                                  {"-inf", -inf},
                                  {"0", 0}}) {
    total(std::string("ord ") + text, ord);
    along_1(std::string("ord ") + text + ", dim 1", ord);
  }
  calls.add("vector_norm", {"dims 0 and -1, keepdim"}, [](const In& in) {
    return vector_norm(in[0], 2, {0, -1}, true);
  });
  calls.add("vector_norm", {"0-d", "nothing"}, [](const In& in) { return vector_norm(in[0]); });
  along_1("size 1", 2);
  along_1("no rows", 3);
  along_1("zeros, ord 2", 2);
  along_1("zeros, ord 1", 1);
  along_1("zeros, ord 3", 3);
  along_1("zeros, ord inf", inf);
  along_1("ties, ord inf", inf);
  along_1("ties, ord -inf", -inf);
}

void add_distances(GoldenCalls& calls) {
  for (const auto& [text, p] : {std::pair{"p 2", 2.0}, {"p 3", 3.0}}) {
    calls.add("norm", {text}, [p = p](const In& in) { return norm(in[0], p); });
    calls.add("norm", {std::string(text) + ", dim 1"},
              [p = p](const In& in) { return norm(in[0], p, 1, true); });
    calls.add("normalize", {text}, [p = p](const In& in) { return normalize(in[0], {.p = p}); });
  }
  calls.add("normalize", {"dim -1, eps"},
            [](const In& in) { return normalize(in[0], {.dim = -1, .eps = 2}); });
  calls.add("normalize", {"zeros"}, [](const In& in) { return normalize(in[0]); });
  const auto similarity = [&](const std::string& sample, std::int64_t dim) {
    calls.add("cosine_similarity", {sample},
              [dim](const In& in) { return cosine_similarity(in[0], in[1], dim); });
  };
  similarity("rows", 1);
  similarity("dim 0", 0);
  similarity("broadcast", -1);
}

void add_matrix_norms(GoldenCalls& calls) {
  calls.add("matrix_norm",
            {"fro, square", "fro, tall", "fro, wide", "fro, batch", "fro, no matrices"},
            [](const In& in) { return matrix_norm(in[0]); });
  calls.add("matrix_norm", {"fro, dims 2 and 0, keepdim"}, [](const In& in) {
    return matrix_norm(in[0], {2, 0}, true);
  });
}

void add_along(GoldenCalls& calls) {
  calls.add("cumsum", {"dim 0", "0-d"}, [](const In& in) { return cumsum(in[0], 0); });
  calls.add("cumsum", {"dim -1"}, [](const In& in) { return cumsum(in[0], -1); });
  calls.add("cumsum", {"middle", "size 1", "zero-size"},
            [](const In& in) { return cumsum(in[0], 1); });
  calls.add("cumprod", {"dim 0"}, [](const In& in) { return cumprod(in[0], 0); });
  calls.add("cumprod", {"dim -1", "zeros", "zero-size"},
            [](const In& in) { return cumprod(in[0], -1); });
  for (const bool falling : {false, true}) {
    const std::string order = falling ? "descending True" : "descending False";
    calls.add("sort", {order, "ties, " + order, "NaN, " + order},
              [falling](const In& in) { return sort(in[0], -1, falling); });
    calls.add("sort", {"dim 0, " + order},
              [falling](const In& in) { return sort(in[0], 0, falling); });
  }
  calls.add("topk", {"last"}, [](const In& in) { return topk(in[0], 2); });
  calls.add("topk", {"smallest"}, [](const In& in) { return topk(in[0], 2, -1, false); });
  calls.add("topk", {"dim 0"}, [](const In& in) { return topk(in[0], 3, 0); });
  calls.add("topk", {"dim -2, smallest"}, [](const In& in) { return topk(in[0], 2, -2, false); });
  calls.add("topk", {"all of them"}, [](const In& in) { return topk(in[0], 4, 1); });
  calls.add("topk", {"none of them"}, [](const In& in) { return topk(in[0], 0, 1); });
  calls.add("topk", {"size 1", "0-d"}, [](const In& in) { return topk(in[0], 1); });
}

}  // namespace

void add_reduce_calls(GoldenCalls& calls) {
  add_sums(calls);
  add_products(calls);
  add_extrema(calls);
  add_norms(calls);
  add_distances(calls);
  add_matrix_norms(calls);
  add_along(calls);
}

}  // namespace xgrad::testing
