// The calls of tests/golden/cases_shape.py.

#include "golden/ops.hpp"

namespace xgrad::testing {
namespace {

using In = GoldenInputs;

void add_matrix_products(GoldenCalls& calls) {
  calls.add("matmul",
            {"2-d", "row by matrix", "matrix by column", "row by column", "batch",
             "broadcast batches", "batch by matrix", "row by batch", "batch by column", "size 1",
             "no rows", "nothing to add", "no batches"},
            [](const In& in) { return matmul(in[0], in[1]); });
  calls.add("matmul", {"of itself"}, [](const In& in) { return matmul(in[0], in[0]); });
  using Product = Tensor(const Tensor&, const Tensor&);
  const auto add_product = [&](const std::string& op, Product* f) {
    calls.add(op, {"usual", "size 1", "zero-size"}, [f](const In& in) { return f(in[0], in[1]); });
  };
  add_product("mm", mm);
  add_product("bmm", bmm);
  add_product("dot", dot);
  add_product("outer", outer);
  for (const std::string sample : {"2-d", "3-d", "1-d", "one output", "no rows"}) {
    calls.add("linear", {sample}, [](const In& in) { return linear(in[0], in[1], in[2]); });
    calls.add("linear", {sample + ", no bias"}, [](const In& in) { return linear(in[0], in[1]); });
  }
  for (const std::string equation :
       {"bij,bjk->bik", "bthd,bshd->bhts", "ij,jk", "ba", "ii->i", "ii", "ij->", "i,i", "i,j->ji",
        "...ij,...jk->...ik", "...i->...", "ij,jk,kl->il", "ijk,jil->kl", "ij,ij->ij"})
    calls.add("einsum", {equation},
              [equation](const In& in) { return einsum(equation, in.tensors); });
}

}  // namespace

void add_shape_calls(GoldenCalls& calls) { add_matrix_products(calls); }

}  // namespace xgrad::testing
