// Notebook 001: attention over three words with plain weight matrices.  Its weights were drawn
// without a seed, so after its cells this program searches for weights that give its tables.

#include <cmath>
#include <iostream>
#include <xgrad/xgrad.hpp>

#include "notebook.hpp"

using namespace xgrad;
using notebook::print;

static void cells() {
  manual_seed(3);  // the notebook has no seed

  // ---- three words as vectors of three numbers ----
  const Tensor embeddings = tensor({{1.0, 0.0, 1.0},    // word 1
                                    {0.0, 1.0, 1.0},    // word 2
                                    {1.0, 1.0, 0.0}});  // word 3

  // ---- weights for queries, keys and values ----
  Tensor W_q = randn({3, 3});
  Tensor W_k = randn({3, 3});
  Tensor W_v = randn({3, 3});

  // ---- the words as queries, keys and values ----
  Tensor Q = matmul(embeddings, W_q);
  Tensor K = matmul(embeddings, W_k);
  Tensor V = matmul(embeddings, W_v);

  // ---- the fit of each query to each key ----
  Tensor scores = matmul(Q, K.t());  // (3, 3)

  // ---- scaled ----
  const auto d_k = static_cast<double>(Q.size(-1));
  Tensor scaled_scores = scores / std::sqrt(d_k);

  // ---- as shares that sum to 1 ----
  Tensor attention_weights = softmax(scaled_scores, -1);

  // ---- the values, mixed by these shares ----
  Tensor output = matmul(attention_weights, V);

  // ---- the tables ----
  print("Attention Weights:\n", attention_weights);
  print("\nSelf-Attention Output:\n", output);

  // ---- which weights give the notebook's tables? ----
  // Repeats the same lines until they print the same digits; after each run, W_q, W_k and W_v take
  // a step downhill on the squared distance from the notebook's tables:
  const Tensor shown_weights = tensor({{0.1324, 0.1646, 0.7029},  //
                                       {0.0565, 0.0028, 0.9407},
                                       {0.3616, 0.0502, 0.5882}});
  const Tensor shown_output = tensor({{0.7576, -1.8594, 0.2935},  //
                                      {1.2198, -1.8325, 0.3260},
                                      {0.6338, -1.7643, 0.4956}});
  for (Tensor W : {W_q, W_k, W_v})
    W.requires_grad_();
  optim::Adam optimizer({W_q, W_k, W_v}, {.betas = {0.9, 0.99}});
  const optim::Schedule rate = optim::exponential(0.05, 0.999);  // coarse steps, then fine ones
  std::size_t step = 0;
  while (true) {
    Q = matmul(embeddings, W_q);
    K = matmul(embeddings, W_k);
    V = matmul(embeddings, W_v);
    scores = matmul(Q, K.t());
    scaled_scores = scores / std::sqrt(d_k);
    attention_weights = softmax(scaled_scores, -1);
    output = matmul(attention_weights, V);

    if (to_string(attention_weights.detach()) == to_string(shown_weights) &&
        to_string(output.detach()) == to_string(shown_output))
      break;
    notebook::assert_that(step < 20000, "the search finds the notebook's digits in 20000 steps");
    const Tensor loss = mse_loss(attention_weights, shown_weights) + mse_loss(output, shown_output);
    optimizer.set_learning_rate(rate(step++));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }

  print("\nWith the weights found, Attention Weights:\n", attention_weights.detach());
  print("\nSelf-Attention Output:\n", output.detach());

  // Many weights give these tables; the search finds some that depend on rounding, and so on the
  // machine.
  std::clog << "found in " << step << " steps: W_q = " << W_q.detach() << "\nW_k = " << W_k.detach()
            << "\nW_v = " << W_v.detach() << '\n';
}

int main(int argc, char** argv) { return notebook::run(argc, argv, cells); }
