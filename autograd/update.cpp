#include "update_formula.hpp"

#include <algorithm>
#include "fail.hpp"
#include "kernels/elementwise.hpp"
#include "trace.hpp"

namespace xgrad {

// Pointers are taken after all sharing has ended: copying one Tensor's elements may free those to
// which another one's pointer, its gradient's, leads.  The loop allocates nothing.
void update_elements(std::string_view name, std::span<const ElementUpdate> updates) {
  const detail::Timed timed(name);
  for (std::size_t i = 0; i < updates.size(); ++i)
    for (const Tensor& x : updates[i].tensors)
      if (const Tensor& first = updates[i].tensors.front();
          x.shape() != first.shape() || x.dtype() != first.dtype())
        fail<ShapeError>("{}: update {} is of {} of shape {} and of {} of shape {}", name, i,
                         to_string(first.dtype()), to_string(first.shape()), to_string(x.dtype()),
                         to_string(x.shape()));
  for (const ElementUpdate& update : updates)
    for (std::size_t k = 0; k < update.written; ++k)
      dispatch(update.tensors[k].dtype(),
               [&, x = update.tensors[k]]<class T>() mutable { detail::writable_data<T>(x); });

  constexpr std::size_t grain = kernels::elementwise_grain;
  struct Task {
    const ElementUpdate* update;
    std::size_t n, pieces;
    std::vector<void*> data = {};
  };
  std::vector<Task> tasks;
  std::size_t pieces = 0;
  for (const ElementUpdate& update : updates) {
    const std::size_t n = update.tensors.empty() ? 0 : update.tensors.front().numel();
    Task& task = tasks.emplace_back(Task{&update, n, (n + grain - 1) / grain});
    pieces += task.pieces;
    for (const Tensor& x : update.tensors)
      task.data.push_back(x.handle()->value->memory.get());
  }
  kernels::parallel(pieces, [&](std::size_t i) {  // many small Tensors keep all threads busy, too
    auto task = tasks.begin();
    for (; i >= task->pieces; ++task)
      i -= task->pieces;
    task->update->loop(task->update->tensors.front().dtype(), task->data.data(), i * grain,
                       std::min((i + 1) * grain, task->n));
  });
}

}  // namespace xgrad
