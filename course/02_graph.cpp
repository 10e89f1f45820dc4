// Stage 2: a graph.  With the name of a file it is drawn there as a page: learn_02 graph.html

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <xgrad/viz/graph.hpp>
#include <xgrad/xgrad.hpp>

using namespace xgrad;

int main(int argc, char** argv) try {
  Tensor a = scalar(2, DType::float64).requires_grad_();
  Tensor b = scalar(3, DType::float64).requires_grad_();

  // While it computes, every op leaves a node behind: what it was made of, and its rule.
  Trace trace;
  Tensor c = a * b, d = sin(a);
  const Tensor y = c + d;
  fmt::print("{}\n", to_string(trace));

  // Backward goes from y to the leaves.  c and d keep their gradients, too, if they are asked to.
  c.retain_grad();
  d.retain_grad();
  y.backward();
  fmt::print("dy/dc = {}, dy/dd = {}\n", c.grad().item(), d.grad().item());
  fmt::print("dy/da = {:.4f}, dy/db = {:.4f}\n\n", a.grad().item(), b.grad().item());

  // By hand: along a path slopes are multiplied, over the paths they are added.
  const double through_c = 1 * 3, through_d = 1 * std::cos(2);
  fmt::print("through c {:.4f}, through d {:.4f}, together {:.4f}\n\n", through_c, through_d,
             through_c + through_d);

  // A second backward adds to what is there; zero_grad() clears it.
  (a * b).backward();
  fmt::print("after one more run, of a * b: {:.4f}\n", a.grad().item());
  a.zero_grad();
  (a * b).backward();
  fmt::print("cleared before it: {:.4f}\n", a.grad().item());

  // The same graph as a page to look at, which goes backward step by step.
  if (argc > 1) {
    io::check_output(argv[1], argc > 2 && argv[2] == std::string("--overwrite"));
    viz::write_graph_html(argv[1], [&] { return a * b + sin(a); }, {.names = {{"a", a}, {"b", b}}});
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "learn_02: %s\n", error.what());
  return 1;
}
