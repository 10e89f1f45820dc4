// Rows of the matrix products.  The reference of all of them is one summation by plain loops.

#include <map>

#include "autograd/ops/op_table.hpp"

namespace xgrad::testing {

namespace {

// einsum of an equation of letters alone, with its output: every combination of the letters' values
// is visited.  Sizes of 1 broadcast.
Tensor sum_of_products(const std::string& equation, const Inputs& in) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  const std::string out = equation.substr(arrow + 2);
  std::map<char, std::size_t> size, value;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t d = 0; d < terms[i].size(); ++d) {
      const std::size_t n = in[i].shape()[d];
      std::size_t& known = size.try_emplace(terms[i][d], n).first->second;
      known = known == 1 ? n : known;
      value[terms[i][d]] = 0;
    }
  Shape shape(out.size(), 0);
  for (std::size_t d = 0; d < out.size(); ++d)
    shape[d] = size.at(out[d]);
  std::vector<double> y(numel(shape), 0.0);
  const auto place = [&](const std::string& letters, const Shape& s) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < letters.size(); ++d)
      at = at * s[d] + (s[d] == 1 ? 0 : value.at(letters[d]));
    return at;
  };
  std::size_t combinations = 1;
  for (const auto& [letter, n] : size)
    combinations *= n;
  for (std::size_t c = 0; c < combinations; ++c) {
    double product = 1;
    for (std::size_t i = 0; i < terms.size(); ++i)
      product *= in[i].data<double>()[place(terms[i], in[i].shape())];
    y[place(out, shape)] += product;
    for (auto& [letter, v] : value) {
      if (++v < size.at(letter))
        break;
      v = 0;
    }
  }
  return sample_from(shape, [&](std::size_t i) { return y[i]; });
}

std::function<Tensor(const Inputs&)> reference(const std::string& equation) {
  return [equation](const Inputs& in) { return sum_of_products(equation, in); };
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);

Sample product(const std::string& name, Binary op, const std::string& equation, const Dims& a,
               const Dims& b) {
  return {name,
          {sample_randn(a, 11), sample_randn(b, 12)},
          [op](const Inputs& in) { return op(in[0], in[1]); },
          reference(equation)};
}

Bad bad(const std::string& name, Bad::Kind kind, std::function<void()> call,
        std::vector<std::string> fragments) {
  return {name, std::move(call), kind, std::move(fragments)};
}

Row matmul_row() {
  const auto sample = [](const char* name, const char* equation, const Dims& a, const Dims& b) {
    return product(name, matmul, equation, a, b);
  };
  Row row{"matmul",
          {sample("vectors", "k,k->", {4}, {4}),
           sample("matrix and vector", "mk,k->m", {3, 4}, {4}),
           sample("vector and matrix", "k,kn->n", {4}, {4, 3}),
           sample("batch and vector", "bmk,k->bm", {2, 3, 4}, {4}),
           sample("vector and batch", "k,bkn->bn", {4}, {2, 4, 3}),
           sample("matrices", "mk,kn->mn", {3, 4}, {4, 5}),
           sample("one by one", "mk,kn->mn", {1, 1}, {1, 1}),
           sample("column and row", "mk,kn->mn", {3, 1}, {1, 4}),
           sample("row and column", "mk,kn->mn", {1, 4}, {4, 1}),
           sample("batch and matrix", "bmk,kn->bmn", {2, 3, 4}, {4, 5}),
           sample("two batch dimensions and matrix", "abmk,kn->abmn", {2, 2, 3, 4}, {4, 2}),
           sample("matrix and batch", "mk,bkn->bmn", {3, 4}, {2, 4, 5}),
           sample("batches", "bmk,bkn->bmn", {3, 2, 4}, {3, 4, 2}),
           sample("batch of one and batch", "bmk,bkn->bmn", {1, 2, 4}, {3, 4, 2}),
           sample("batch and batch of one", "bmk,bkn->bmn", {3, 2, 4}, {1, 4, 2}),
           sample("batches across", "abmk,abkn->abmn", {3, 1, 2, 2}, {1, 2, 2, 3}),
           sample("batches of other ranks", "abmk,bkn->abmn", {2, 3, 2, 2}, {3, 2, 2}),
           sample("inner batch broadcast", "abmk,abkn->abmn", {2, 3, 2, 2}, {2, 1, 2, 2}),
           sample("no inner size", "mk,kn->mn", {2, 0}, {0, 3}),
           sample("no inner size, vectors", "k,k->", {0}, {0}),
           sample("no rows", "mk,kn->mn", {0, 2}, {2, 3}),
           sample("no columns", "bmk,kn->bmn", {2, 3, 2}, {2, 0}),
           sample("no batch", "bmk,bkn->bmn", {0, 2, 3}, {0, 3, 2}),
           sample("no batch, broadcast", "bmk,bkn->bmn", {1, 2, 3}, {0, 3, 2}),
           sample("cut by rows", "mk,kn->mn", {200, 70}, {70, 60}),
           sample("cut by columns", "mk,kn->mn", {30, 90}, {90, 210}),
           sample("many small", "bmk,bkn->bmn", {60, 12, 20}, {60, 20, 14}),
           sample("few large", "bmk,bkn->bmn", {2, 170, 180}, {2, 180, 150}),
           sample("many into one", "abmk,bkn->abmn", {9, 4, 10, 24}, {4, 24, 12}),
           {"of itself",
            {sample_randn({3, 3}, 13)},
            [](const Inputs& in) { return matmul(in[0], in[0]); },
            [](const Inputs& in) {
              return sum_of_products("ij,jk->ik", {in[0], in[0]});
            }},
           {"used twice",
            {sample_randn({2, 3}, 14), sample_randn({3, 2}, 15)},
            [](const Inputs& in) { return matmul(in[0], in[1]) + matmul(in[0], in[1]); },
            [](const Inputs& in) { return sum_of_products("ij,jk->ik", in) * 2.0; }}},
          {}};
  row.bad = {
      bad("inner sizes", Bad::shape,
          [] {
            matmul(ones({2, 3}), ones({4, 5}));
          },
          {"matmul", "(2, 3)", "(4, 5)", "second last"}),
      bad("vector", Bad::shape,
          [] {
            matmul(ones({2, 3}), ones({4}));
          },
          {"matmul", "(2, 3)", "(4,)", "only"}),
      bad("batches", Bad::shape,
          [] {
            matmul(ones({2, 3, 4}), ones({5, 4, 3}));
          },
          {"matmul", "(2,)", "(5,)"}),
      bad("0-d", Bad::shape, [] { matmul(scalar(1), ones({3})); }, {"matmul", "()", "mul()"}),
      bad("dtypes", Bad::dtype,
          [] {
            matmul(ones({2, 2}), ones({2, 2}, DType::float64));
          },
          {"matmul", "float32", "float64"})};
  return row;
}

Row linear_row() {
  const auto sample = [](const char* name, const char* equation, const Dims& x, const Dims& weight,
                         bool biased) {
    const Tensor bias = biased ? sample_randn({weight[0]}, 23) : Tensor();
    return Sample{name,
                  {sample_randn(x, 21), sample_randn(weight, 22), bias},
                  [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
                  [equation](const Inputs& in) {
                    const Tensor y = sum_of_products(equation, {in[0], in[1]});
                    if (!in[2].defined())
                      return y;
                    const std::size_t out = in[2].numel();
                    return sample_from(y.shape(), [&](std::size_t i) {
                      return y.data<double>()[i] + in[2].data<double>()[i % out];
                    });
                  }};
  };
  return {"linear",
          {sample("vector", "i,oi->o", {3}, {4, 3}, true),
           sample("matrix", "ni,oi->no", {5, 3}, {4, 3}, true),
           sample("no bias", "ni,oi->no", {5, 3}, {4, 3}, false),
           sample("three dimensions", "bti,oi->bto", {2, 3, 4}, {5, 4}, true),
           sample("three dimensions, no bias", "bti,oi->bto", {2, 3, 4}, {5, 4}, false),
           sample("one output", "ni,oi->no", {4, 3}, {1, 3}, true),
           sample("no rows", "ni,oi->no", {0, 3}, {4, 3}, true),
           sample("no inputs", "ni,oi->no", {2, 0}, {4, 0}, true),
           sample("no outputs", "ni,oi->no", {2, 3}, {0, 3}, true),
           sample("large", "bti,oi->bto", {5, 60, 50}, {70, 50}, true),
           {"weight (in,), bias ()",
            {sample_randn({4, 2, 3}, 27), sample_randn({3}, 28), sample_randn({}, 29)},
            [](const Inputs& in) { return linear(in[0], in[1], in[2]); },
            [](const Inputs& in) {
              return sum_of_products("bni,i->bn", {in[0], in[1]}) + in[2];
            }},
           {"x (in,), weight (in,)",
            {sample_randn({3}, 27), sample_randn({3}, 28)},
            [](const Inputs& in) { return linear(in[0], in[1]); },
            [](const Inputs& in) {
              return sum_of_products("i,i->", {in[0], in[1]});
            }},
           {"weight used twice",
            {sample_randn({3, 3}, 24), sample_randn({3, 3}, 25), sample_randn({3}, 26)},
            [](const Inputs& in) { return linear(linear(in[0], in[1], in[2]), in[1], in[2]); },
            [](const Inputs& in) {
              const Tensor h = sum_of_products("ni,oi->no", {in[0], in[1]}) + in[2];
              return sum_of_products("ni,oi->no", {h, in[1]}) + in[2];
            }}},
          {bad("inner sizes", Bad::shape,
               [] {
                 linear(ones({2, 5, 7}), ones({16, 8}));
               },
               {"linear: x (2, 5, 7) has last dimension 7 but weight (16, 8) expects 8"}),
           bad("weight", Bad::shape,
               [] {
                 linear(ones({2, 5}), ones({1, 2, 5}));
               },
               {"linear", "(1, 2, 5)", "(out, in)"}),
           bad("one number's bias", Bad::shape,
               [] {
                 linear(ones({2, 5}), ones({5}), ones({2}));
               },
               {"linear", "bias (2,)", "it must be ()"}),
           bad("0-d", Bad::shape,
               [] {
                 linear(scalar(1), ones({2, 1}));
               },
               {"linear", "0-d"}),
           bad("bias", Bad::shape,
               [] {
                 linear(ones({2, 5}), ones({3, 5}), ones({5}));
               },
               {"linear", "bias (5,)", "(3, 5)", "(3,)"}),
           bad("dtype of bias", Bad::dtype,
               [] {
                 linear(ones({2, 5}), ones({3, 5}), ones({3}, DType::float64));
               },
               {"linear", "float32", "float64"})}};
}

Sample einsum_sample(const std::string& equation, const std::vector<Dims>& shapes,
                     const std::string& plain, const std::string& name = {}) {
  Inputs inputs;
  for (const Dims& shape : shapes)
    inputs.push_back(sample_randn(shape, 31 + inputs.size()));
  return {name.empty() ? equation : equation + ", " + name, inputs,
          [equation](const Inputs& in) { return einsum(equation, in); }, reference(plain)};
}
Sample einsum_sample(const std::string& equation, const std::vector<Dims>& shapes) {
  return einsum_sample(equation, shapes, equation);
}

std::vector<Sample> einsum_samples() {
  return {
      // one operand
      einsum_sample("ij->ij", {{2, 3}}),
      einsum_sample("ij->ji", {{2, 3}}),
      einsum_sample("ijk->kij", {{2, 3, 4}}),
      einsum_sample("ii->i", {{3, 3}}),
      einsum_sample("ii->", {{3, 3}}),
      einsum_sample("ii", {{3, 3}}, "ii->"),
      einsum_sample("iij->j", {{2, 2, 3}}),
      einsum_sample("iji->ji", {{2, 3, 2}}),
      einsum_sample("iii->i", {{2, 2, 2}}),
      einsum_sample("ij->", {{2, 3}}),
      einsum_sample("ij->j", {{2, 3}}),
      einsum_sample("ba", {{2, 3}}, "ba->ab"),
      einsum_sample("aB", {{2, 3}}, "aB->Ba"),
      einsum_sample("...ii->...i", {{2, 3, 3}}, "aii->ai"),
      einsum_sample("...", {{2, 3}}, "ab->ab"),
      einsum_sample("...->", {{2, 3}}, "ab->"),
      einsum_sample("i...->...", {{2, 3, 2}}, "iab->ab"),
      einsum_sample("->", {{}}, "->"),
      // two
      einsum_sample("i,i->", {{4}, {4}}),
      einsum_sample("i,j->ij", {{2}, {3}}),
      einsum_sample("i,j->ji", {{2}, {3}}),
      einsum_sample("i,j", {{2}, {3}}, "i,j->ij"),
      einsum_sample("ij,ij->ij", {{2, 3}, {2, 3}}),
      einsum_sample("ij,ji->ij", {{2, 3}, {3, 2}}),
      einsum_sample("ij,ij->", {{2, 3}, {2, 3}}),
      einsum_sample("ij,ij->i", {{2, 3}, {2, 3}}),
      einsum_sample("ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"),
      einsum_sample(" i j , j k -> k i ", {{2, 3}, {3, 4}}, "ij,jk->ki"),
      einsum_sample("ji,jk->ik", {{3, 2}, {3, 4}}),
      einsum_sample("ij,kj->ik", {{2, 3}, {4, 3}}),
      einsum_sample("ji,kj->ik", {{3, 2}, {4, 3}}),
      einsum_sample("bij,bjk->bik", {{2, 3, 4}, {2, 4, 2}}),
      einsum_sample("bji,bkj->bik", {{2, 4, 3}, {2, 2, 4}}),
      einsum_sample("bij,jk->bik", {{2, 3, 4}, {4, 2}}),
      einsum_sample("bthd,bshd->bhts", {{2, 3, 2, 2}, {2, 4, 2, 2}}),
      einsum_sample("bhts,bshd->bthd", {{2, 2, 3, 4}, {2, 4, 2, 2}}),
      einsum_sample("ijk,jil->kl", {{2, 3, 4}, {3, 2, 2}}),
      einsum_sample("ij,k->i", {{2, 3}, {4}}),
      einsum_sample("ij,->ij", {{2, 3}, {}}),
      einsum_sample("ii,ij->j", {{3, 3}, {3, 2}}),
      einsum_sample("b,bij->ij", {{2}, {2, 3, 2}}),
      einsum_sample("...ij,...jk->...ik", {{3, 1, 2, 2}, {2, 2, 2}}, "abij,bjk->abik"),
      einsum_sample("...i,...i->...", {{2, 3, 2}, {3, 2}}, "abi,bi->ab"),
      einsum_sample("i...,...j", {{2, 3}, {3, 2}}, "ia,aj->aij"),
      einsum_sample("b...,b->...", {{2, 3, 2}, {2}}, "bac,b->ac"),
      // sizes of 1 and 0
      einsum_sample("ij,ij->ij", {{1, 3}, {2, 3}}, "ij,ij->ij", "broadcast"),
      einsum_sample("ij,jk->ik", {{2, 1}, {3, 4}}, "ij,jk->ik", "broadcast sum"),
      einsum_sample("ij,jk->ik", {{2, 1}, {1, 3}}, "ij,jk->ik", "sum of one"),
      einsum_sample("ij,jk->ik", {{2, 0}, {0, 3}}, "ij,jk->ik", "sum of none"),
      einsum_sample("bij,bjk->bik", {{0, 2, 3}, {0, 3, 2}}, "bij,bjk->bik", "no batch"),
      einsum_sample("ii->i", {{0, 0}}, "ii->i", "zero size"),
      // more
      einsum_sample("i,ij,j->", {{2}, {2, 3}, {3}}),
      einsum_sample("ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 3}}),
      einsum_sample("ij,ik,il->jkl", {{2, 2}, {2, 3}, {2, 2}}),
      einsum_sample("i,i,i->i", {{3}, {3}, {3}}),
      einsum_sample("a,b,c,d->dcba", {{2}, {3}, {1}, {2}}),
      einsum_sample("bij,bjk->bik", {{6, 40, 50}, {6, 50, 30}}, "bij,bjk->bik", "large"),
  };
}

Row einsum_row() {
  const auto call = [](const char* equation, std::vector<Dims> shapes) {
    return [equation, shapes] {
      Inputs inputs;
      for (const Dims& shape : shapes)
        inputs.push_back(ones(shape));
      einsum(equation, inputs);
    };
  };
  return {"einsum",
          einsum_samples(),
          {bad("none", Bad::value, call("i", {}), {"einsum 'i'", "no operands"}),
           bad("too few", Bad::value, call("ij,jk->ik", {{2, 2}}), {"'ij,jk->ik'", "2", "1"}),
           bad("too many", Bad::value, call("ij", {{2, 2}, {2}}), {"'ij'", "1", "2"}),
           bad("character", Bad::value, call("i1->i", {{2, 2}}), {"'i1->i'", "'1'"}),
           bad("arrow", Bad::value, call("i->i->i", {{2}}), {"'i->i->i'", "'-'"}),
           bad("dots", Bad::value, call("..i->i", {{2, 2}}), {"'..i->i'", "'.'"}),
           bad("two ellipses", Bad::value, call("...i...->i", {{2, 2}}), {"'...i...->i'", "twice"}),
           bad("rank", Bad::shape, call("ijk->i", {{2, 3}}), {"'ijk->i'", "operand 0 (2, 3)", "3"}),
           bad("rank with ellipsis", Bad::shape, call("ij...->i", {{2}}), {"'ij...->i'", "(2,)"}),
           bad("sizes", Bad::shape, call("ij,jk->ik", {{2, 3}, {4, 5}}),
               {"'ij,jk->ik'", "'j'", "4", "operand 1 (4, 5)", "3"}),
           bad("sizes of ellipsis", Bad::shape, call("...i,...i->i", {{2, 3}, {4, 3}}),
               {"'...i,...i->i'", "'...'", "(4, 3)"}),
           bad("diagonal", Bad::shape, call("ii->i", {{2, 3}}), {"'ii->i'", "'i'", "(2, 3)"}),
           bad("output letter", Bad::value, call("ij->ik", {{2, 3}}), {"'ij->ik'", "'k'"}),
           bad("output twice", Bad::value, call("ij->ii", {{2, 3}}), {"'ij->ii'", "'i'", "twice"}),
           bad("dtypes", Bad::dtype,
               [] {
                 einsum("i,i->", {ones({2}), ones({2}, DType::float64)});
               },
               {"einsum", "float32", "float64"})}};
}

}  // namespace

std::vector<Row> matmul_rows() {
  return {
      matmul_row(),
      {"mm",
       {product("matrices", mm, "mk,kn->mn", {3, 4}, {4, 5}),
        product("no inner size", mm, "mk,kn->mn", {2, 0}, {0, 3}),
        product("large", mm, "mk,kn->mn", {130, 60}, {60, 140})},
       {bad("inner sizes", Bad::shape,
            [] {
              mm(ones({2, 3}), ones({2, 3}));
            },
            {"mm", "(2, 3)", "(m, k) and (k, n)"}),
        bad("rank", Bad::shape,
            [] {
              mm(ones({2, 2, 3}), ones({3, 3}));
            },
            {"mm", "(2, 2, 3)", "matmul()"})}},
      {"bmm",
       {product("batches", bmm, "bmk,bkn->bmn", {2, 3, 4}, {2, 4, 2}),
        product("no batch", bmm, "bmk,bkn->bmn", {0, 3, 4}, {0, 4, 2}),
        product("no inner size", bmm, "bmk,bkn->bmn", {2, 3, 0}, {2, 0, 2}),
        product("large", bmm, "bmk,bkn->bmn", {9, 40, 50}, {9, 50, 30})},
       {bad("no broadcast", Bad::shape,
            [] {
              bmm(ones({1, 2, 3}), ones({2, 3, 2}));
            },
            {"bmm", "(1, 2, 3)", "(2, 3, 2)", "matmul()"}),
        bad("inner sizes", Bad::shape,
            [] {
              bmm(ones({2, 2, 3}), ones({2, 2, 3}));
            },
            {"bmm", "(2, 2, 3)"})}},
      {"dot",
       {product("vectors", dot, "k,k->", {5}, {5}), product("one", dot, "k,k->", {1}, {1}),
        product("none", dot, "k,k->", {0}, {0}), product("long", dot, "k,k->", {3000}, {3000})},
       {bad("sizes", Bad::shape, [] { dot(ones({2}), ones({3})); }, {"dot", "(2,)", "(3,)"}),
        bad("rank", Bad::shape,
            [] {
              dot(ones({2, 2}), ones({2, 2}));
            },
            {"dot", "(2, 2)"}),
        bad("dtypes", Bad::dtype, [] { dot(ones({2}), ones({2}, DType::float64)); }, {"dot"})}},
      {"outer",
       {product("vectors", outer, "m,n->mn", {3}, {4}), product("one", outer, "m,n->mn", {1}, {3}),
        product("none", outer, "m,n->mn", {0}, {3})},
       {bad("rank", Bad::shape,
            [] {
              outer(ones({2, 2}), ones({2}));
            },
            {"outer", "(2, 2)"})}},
      linear_row(),
      einsum_row()};
}

}  // namespace xgrad::testing
