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

using Levels = std::vector<std::vector<ElementUpdate>>;  // a level depends on those before it

// Adds the sums of a list's tree to their levels, and returns the number of levels.
static std::size_t add_tree(std::span<Tensor> list, Levels& levels) {
  if (list.size() < 2)
    return 0;
  const auto at = [&levels](std::size_t level) -> auto& {
    levels.resize(std::max(levels.size(), level + 1));
    return levels[level];
  };
  if (list.size() == 4 && std::ranges::all_of(list, &Tensor::defined)) {  // one pass for two levels
    at(0).push_back(element_update([](auto a, auto b, auto c, auto d) { return (a + b) + (c + d); },
                                   list[0], list[1], list[2], list[3]));
    return 1;
  }
  const std::size_t half = list.size() / 2;
  const std::size_t level =
      std::max(add_tree(list.first(half), levels), add_tree(list.subspan(half), levels));
  Tensor &sum = list.front(), &rest = list[half];
  if (!sum.defined())
    std::swap(sum, rest);
  else if (rest.defined())
    at(level).push_back(element_update([](auto a, auto b) { return a + b; }, sum, rest));
  return level + 1;
}

void foreach_tree_sum_(std::span<std::vector<Tensor>> lists) {
  Levels levels;
  for (std::vector<Tensor>& list : lists)
    add_tree(list, levels);
  for (const std::vector<ElementUpdate>& level : levels)
    update_elements("foreach_tree_sum_", level);
}

}  // namespace xgrad
