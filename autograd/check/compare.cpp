#include "compare.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include "../fail.hpp"
#include "../ops.hpp"
#include "describe.hpp"
#include "op_check.hpp"
#include "same_draws.hpp"

namespace xgrad {
namespace {

struct Intermediate {
  Tensor tensor;
  std::vector<double> numbers;
  double sum = 0, squares = 0, scale = 0;  // independent of the order of elements

  explicit Intermediate(const Tensor& x)
      : tensor(x), numbers(detail::elements(x)), scale(detail::scale_of(numbers)) {
    for (const double v : numbers)
      if (std::isfinite(v)) {
        sum += v;
        squares += v * v;
      }
  }
  const Shape& shape() const { return tensor.shape(); }
};

// How well a value of one function matches the other's.
enum class Match { none, permuted, equal };

struct Op : Trace::Event {
  Intermediate value;
  Match match = Match::none;
};

// A recorded run of a function.
struct Run {
  std::vector<Op> ops;
  std::vector<Tensor> results;
  std::vector<std::optional<std::size_t>> makers;  // the ops that made them
  std::size_t at = 0;                              // index of the compared result
  std::string unused;                              // a line for each op that no result depends on
  std::string refused;  // changed inputs, or differences of a second call

  Run(const TensorFunction& f, const std::vector<Tensor>& inputs) {
    const Decompose by_ordinary_ops;
    const detail::SameDraws draws;
    const detail::Snapshot before(inputs);
    {
      const Trace trace;
      results = f(inputs);
      check<ValueError>(!results.empty(), "compare: a function returned no Tensor");
      for (const Trace::Event& e : trace.events())
        ops.push_back({e, Intermediate(e.output)});
      for (const Tensor& result : results)
        makers.push_back(trace.maker(result));
      for (const std::string& lost : detail::unused_results(trace.events(), results))
        unused += "\n  in yours, " + lost;
    }
    refused = before.changes();
    if (refused.empty())
      refused = detail::two_results(results, draws.of(f)(inputs));
  }

  explicit Run(const ReferenceRun& recorded) : results(recorded.results) {
    check<ValueError>(!results.empty(), "compare: the reference has no result");
    for (const Trace::Event& e : recorded.events)
      ops.push_back({e, Intermediate(e.output)});
    for (const Tensor& result : results) {
      makers.emplace_back();
      for (std::size_t n = 0; n < ops.size(); ++n)
        if (ops[n].output.identity().value == result.identity().value)
          makers.back() = n;
    }
  }

  // The values that it takes from outside: inputs and parameters.
  std::vector<Intermediate> sources() const {
    std::vector<Intermediate> found;
    std::set<const Value*> seen;
    for (const Op& op : ops)
      for (std::size_t i = 0; i < op.inputs.size(); ++i)
        if (op.inputs[i].defined() && !op.made_by[i] &&
            seen.insert(op.inputs[i].identity().value.get()).second)
          found.emplace_back(op.inputs[i]);
    return found;
  }

  // Marks values that the other function lacks.
  std::string table() const {
    std::vector<bool> marked;
    for (const Op& op : ops)
      marked.push_back(op.match == Match::none);
    return to_string({ops.begin(), ops.end()}, marked);
  }
};

ComparedOp described(const Run& run, std::size_t n) {
  const Op& op = run.ops[n];
  return {n + 1, op.op, op.scope, op.value.tensor};
}

std::string name_of(const ComparedOp& op) {
  return fmt::format("op {}, {}{}", op.number, op.op, op.scope.empty() ? "" : " in " + op.scope);
}

// Detects two masks: places where only one of the values is infinite.
std::string other_infinities(const Intermediate& m, const Intermediate& r) {
  std::size_t first = 0, count = 0;
  for (std::size_t i = 0; m.shape() == r.shape() && i < m.numbers.size(); ++i)
    if (std::isinf(m.numbers[i]) != std::isinf(r.numbers[i]) && count++ == 0)
      first = i;
  if (count == 0)
    return {};
  return fmt::format("only {} is infinite at {}, the first of {} such places",
                     std::isinf(m.numbers[first]) ? "yours" : "the reference's",
                     detail::place(first, m.shape()), count);
}

// The dimension along which it sums to 1, like a softmax.
std::optional<std::size_t> normalized_dim(const Intermediate& x) {
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    const std::vector<double> sums = detail::elements(sum(x.tensor.detach(), d));
    if (detail::close(sums, std::vector<double>(sums.size(), 1), 1e-5))
      return d;
  }
  return std::nullopt;
}

std::string other_softmax(const Intermediate& m, const Intermediate& r) {
  const auto mine = normalized_dim(m), theirs = normalized_dim(r);
  return mine && theirs && mine != theirs
             ? fmt::format("yours sums to 1 along dimension {}, the reference's along {}", *mine,
                           *theirs)
             : std::string();
}

class Alignment {
 public:
  Alignment(Run& mine, Run& reference, const CompareOptions& options)
      : mine_(mine), reference_(reference), options_(options) {
    for (Op& r : reference.ops)
      for (Op& m : mine.ops) {
        const Match match = match_of(m.value, r.value);
        m.match = std::max(m.match, match);
        r.match = std::max(r.match, match);
      }
    // One function may compute, as a transpose, what the other takes from outside.
    for (const Intermediate& source : mine.sources())
      for (Op& r : reference.ops)
        r.match = std::max(r.match, match_of(source, r.value));
    for (const Intermediate& source : reference.sources())
      for (Op& m : mine.ops)
        m.match = std::max(m.match, match_of(m.value, source));
  }

  double tolerance(const Intermediate& reference) const {
    return options_.atol + options_.rtol * reference.scale;
  }

  bool equal(const Intermediate& m, const Intermediate& r) const {
    return m.numbers.size() == r.numbers.size() &&
           detail::close(m.numbers, r.numbers, tolerance(r));
  }

  // The order of m's dimensions that gives r's numbers, for any shape of r.
  std::optional<std::vector<std::size_t>> order(const Intermediate& m,
                                                const Intermediate& r) const {
    std::vector<std::size_t> order(m.shape().size());
    if (!maybe_permuted(m, r) || order.size() > most_dimensions)
      return std::nullopt;
    std::iota(order.begin(), order.end(), std::size_t{0});
    do
      if (detail::close(detail::permuted(m.numbers, m.shape(), order), r.numbers, tolerance(r)))
        return order;
    while (std::ranges::next_permutation(order).found);
    return std::nullopt;
  }

  // The first op whose value differs although its inputs agree.  Walks back from the result through
  // differing values; values behind an agreeing one do not matter.
  static std::optional<std::size_t> first_difference(const Run& run, Match least) {
    const auto last = run.makers[run.at];
    if (!last)
      return std::nullopt;
    std::optional<std::size_t> first;
    std::set<std::size_t> seen;
    std::vector<std::size_t> open{*last};
    while (!open.empty()) {
      const std::size_t n = open.back();
      open.pop_back();
      // The last op counts as different, even if its value equals that of another op.
      if (!seen.insert(n).second || (run.ops[n].match >= least && n != *last))
        continue;
      bool all_agree = true;
      for (const auto& maker : run.ops[n].made_by)
        if (maker && run.ops[*maker].match < least) {
          all_agree = false;
          open.push_back(*maker);
        }
      if (all_agree)
        first = std::min(first.value_or(n), n);
    }
    return first;
  }

  std::string hint(std::size_t m, std::size_t r) const {
    const Op &mine = mine_.ops[m], &theirs = reference_.ops[r];
    const Op* const other = counterpart(theirs);
    const auto values = [&](const Op& op) {
      return op.value.shape() == theirs.value.shape()
                 ? detail::relation(op.value.numbers, theirs.value.numbers, theirs.value.shape())
                 : std::string();
    };
    for (const std::string& words :
         {swapped(m, r), same_op(mine, theirs), scaled(mine, theirs),
          other != nullptr ? same_op(*other, theirs) : std::string(),
          other_infinities(mine.value, theirs.value), other_softmax(mine.value, theirs.value),
          values(mine), other != nullptr ? values(*other) : std::string()})
      if (!words.empty())
        return words;
    return {};
  }

  // If the difference is a permutation of dimensions: the op with the same numbers, and the
  // permutation.
  std::string other_order(std::size_t m, std::size_t r) const {
    // the first op of a run whose value has the same numbers, in another order
    const auto find = [this](const Run& run, const Intermediate& value, const char* whose,
                             const char* end) -> std::string {
      for (std::size_t n = 0; n < run.ops.size(); ++n)
        if (const auto found = order(run.ops[n].value, value);
            found && !std::ranges::is_sorted(*found))
          return fmt::format(
              "yours holds the same numbers in another order: those of {} {}, {}, with its "
              "dimensions permuted by ({}){}",
              whose, name_of(described(run, n)), to_string(run.ops[n].value.shape()),
              fmt::join(*found, ", "), end);
      return {};
    };
    const std::string told = find(mine_, reference_.ops[r].value, "your", ", are the reference's");
    return told.empty() ? find(reference_, mine_.ops[m].value, "the reference's", "") : told;
  }

 private:
  static constexpr std::size_t most_dimensions = 5;  // 120 orders to try

  bool maybe_permuted(const Intermediate& m, const Intermediate& r) const {
    const double slack = 1e3 * tolerance(r) * std::max(1.0, static_cast<double>(r.numbers.size()));
    return m.numbers.size() == r.numbers.size() && std::abs(m.sum - r.sum) <= slack &&
           std::abs(m.squares - r.squares) <= slack * std::max(1.0, r.scale);
  }

  Match match_of(const Intermediate& m, const Intermediate& r) const {
    if (equal(m, r))
      return Match::equal;
    return order(m, r) || order(r, m) ? Match::permuted : Match::none;
  }

  // Detects two ops that both functions run, in different orders, where the reference's order gives
  // the reference's result.
  std::string swapped(std::size_t m, std::size_t r) const {
    const std::string &mine = mine_.ops[m].op, &theirs = reference_.ops[r].op;
    const auto is_mine = [&](const Op& op) { return op.op == mine; };
    if (mine == theirs || !mine_.makers[mine_.at] ||
        std::none_of(reference_.ops.begin() + static_cast<std::ptrdiff_t>(r) + 1,
                     reference_.ops.end(), is_mine))
      return {};
    const Intermediate wanted(reference_.results[reference_.at]);
    for (std::size_t later = m + 1; later < mine_.ops.size(); ++later)
      for (std::size_t i = 0; mine_.ops[later].op == theirs && i < mine_.ops[m].inputs.size(); ++i)
        if (const Tensor y = reordered(m, i, later, reference_.ops[r].value.tensor);
            y.defined() && y.shape() == wanted.shape() && equal(Intermediate(y), wanted))
          return fmt::format(
              "the order of two ops: the reference does {} before {}, yours does it after", theirs,
              mine);
    return {};
  }

  // My result if op m takes `value`, which the op `later` would make, as its input i, and `later`
  // passes its input on.  Undefined if `later` does not depend on m, or an op refuses its new
  // inputs.
  Tensor reordered(std::size_t m, std::size_t i, std::size_t later, const Tensor& value) const {
    const ModeGuard unseen({false, nullptr});
    std::vector<Tensor> changed(mine_.ops.size());
    for (std::size_t n = m; n < changed.size(); ++n) {
      std::vector<Tensor> inputs = mine_.ops[n].inputs;
      Tensor last;
      for (std::size_t k = 0; k < inputs.size(); ++k)
        if (const auto& maker = mine_.ops[n].made_by[k];
            n == m ? k == i : maker && changed[*maker].defined())
          last = inputs[k] = n == m ? value : changed[*maker];
      try {
        if (last.defined())
          changed[n] = n == later ? last : mine_.ops[n].forward(inputs);
      } catch (const Error&) {
        return {};
      }
    }
    return changed[later].defined() ? changed[*mine_.makers[mine_.at]] : Tensor();
  }

  // Detects a differing input of the same op.
  std::string same_op(const Op& m, const Op& r) const {
    if (m.op != r.op || m.inputs.size() != r.inputs.size())
      return {};
    for (std::size_t i = 0; i < m.inputs.size(); ++i) {
      if (!m.inputs[i].defined() || !r.inputs[i].defined()) {
        if (m.inputs[i].defined() != r.inputs[i].defined())
          return fmt::format("only {} gives input {} to {}",
                             m.inputs[i].defined() ? "yours" : "the reference", i, m.op);
        continue;
      }
      const Intermediate a(m.inputs[i]), b(r.inputs[i]);
      if (a.shape() != b.shape())
        return fmt::format("input {} of {} is {} in yours and {} in the reference", i, m.op,
                           to_string(a.shape()), to_string(b.shape()));
      if (equal(a, b))
        continue;
      const std::string words = detail::relation(a.numbers, b.numbers, b.shape());
      return fmt::format(
          "input {} of {} {}", i, m.op,
          words.empty() ? "differs" : "in yours, compared with the reference's, " + words);
    }
    return {};
  }

  // Detects that a value, or an input of its op, is a multiple of the reference's.
  std::string scaled(const Op& m, const Op& r) const {
    if (m.value.shape() == r.value.shape())
      if (const auto c = detail::ratio(m.value.numbers, r.value.numbers))
        return fmt::format("yours is {} times the reference's", detail::factor(*c));
    for (const Op& other : reference_.ops) {
      if (other.op != m.op)
        continue;
      for (std::size_t i = 0; i < m.inputs.size() && i < other.inputs.size(); ++i) {
        if (!m.made_by[i] || !other.made_by[i])
          continue;
        const Intermediate a(m.inputs[i]), b(other.inputs[i]);
        if (a.shape() == b.shape())
          if (const auto c = detail::ratio(a.numbers, b.numbers))
            return fmt::format("your input of {} is {} times the reference's", m.op,
                               detail::factor(*c));
      }
    }
    return {};
  }

  // My op that corresponds to the reference's: same name and shape, but another value.
  const Op* counterpart(const Op& theirs) const {
    const auto found = std::ranges::find_if(mine_.ops, [&](const Op& op) {
      return op.op == theirs.op && op.value.shape() == theirs.value.shape() &&
             op.match == Match::none;
    });
    return found == mine_.ops.end() ? nullptr : &*found;
  }

  Run& mine_;
  Run& reference_;
  CompareOptions options_;
};

// Describes how output `at` of `n` differs from the reference's; empty if it does not.
std::string difference(const Intermediate& mine, const Intermediate& reference, std::size_t at,
                       std::size_t n) {
  const std::string begins =
      n == 1 ? "the results differ" : fmt::format("the results differ in output {}", at);
  if (mine.shape() != reference.shape())
    return fmt::format("{}: yours is {}, the reference's {}", begins, to_string(mine.shape()),
                       to_string(reference.shape()));
  double worst = -1;
  std::size_t where = 0;
  for (std::size_t i = 0; i < mine.numbers.size(); ++i) {
    const double a = mine.numbers[i], b = reference.numbers[i];
    const double d = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::abs(a - b);
    if (d > worst || std::isnan(d)) {
      worst = std::isnan(d) ? INFINITY : d;
      where = i;
    }
  }
  return fmt::format("{}, most at {}: yours {:.6g}, the reference's {:.6g}", begins,
                     detail::place(where, mine.shape()), mine.numbers[where],
                     reference.numbers[where]);
}

// Finds the two places, and describes the difference.
void locate(Comparison& found, const Run& mine, const Run& reference, const Alignment& alignment) {
  // First ignores the order of dimensions: if an earlier op differs in that order alone, the order
  // is the mistake.
  auto r = Alignment::first_difference(reference, Match::permuted);
  auto m = Alignment::first_difference(mine, Match::permuted);
  if (m && r) {
    const auto strict_r = Alignment::first_difference(reference, Match::equal);
    const auto strict_m = Alignment::first_difference(mine, Match::equal);
    const bool same = mine.ops[*m].op == reference.ops[*r].op;
    if (strict_r && strict_m && same && (strict_r < r || strict_m < m))
      if (std::string words = alignment.other_order(*strict_m, *strict_r); !words.empty()) {
        r = strict_r;
        m = strict_m;
        found.hint = std::move(words);
      }
    if (found.hint.empty())
      found.hint = alignment.hint(*m, *r);
  }
  if (r)
    found.reference = described(reference, *r);
  if (m)
    found.mine = described(mine, *m);
}

// A line about the op that locate() found in a run: how it differs from all of the other's.
std::string line_of(const ComparedOp& found, const Run& run, bool is_mine) {
  const Match match = run.ops[found.number - 1].match;
  const std::string op = name_of(found);
  if (match == Match::equal)  // the op of the result
    return fmt::format("\n  {} returns its {}; {} has this value, too, and returns another",
                       is_mine ? "yours" : "the reference", op,
                       is_mine ? "the reference" : "yours");
  const char* const turned = " only with its dimensions in another order";
  const std::string words =
      is_mine ? fmt::format("yours differs first at {}{}{}", op,
                            match == Match::none ? "" : ", whose value the reference has",
                            match == Match::none ? "" : turned)
              : fmt::format("the reference's {}, is the first that you {}", op,
                            match == Match::none ? "do not have" : std::string("have") + turned);
  return fmt::format("\n  {}: {}", words, to_string(summarize(found.value)));
}

Comparison compared(Run own, Run theirs, const CompareOptions& options) {
  Comparison found;
  for (const auto& [run, whose] :
       {std::pair(&own, "yours: "), std::pair(&theirs, "the reference: ")})
    if (!run->refused.empty()) {
      found.ok = false;
      found.message = whose + run->refused;
      return found;
    }
  const std::size_t n = theirs.results.size();
  found.ok = own.results.size() == n;
  if (!found.ok) {
    found.message = fmt::format("the results differ: yours returns {} Tensors, the reference {}",
                                own.results.size(), n);
    return found;
  }
  const Alignment alignment(own, theirs, options);
  found.ops = theirs.ops.size();
  for (const Op& op : theirs.ops)
    found.matched += op.match != Match::none ? 1 : 0;
  const auto result = [](const Run& run) { return Intermediate(run.results[run.at]); };
  const auto agree = [&] {
    const Intermediate a = result(own), b = result(theirs);
    return a.shape() == b.shape() && alignment.equal(a, b);
  };
  while (own.at < n && agree())
    theirs.at = ++own.at;
  found.ok = own.at == n;
  const std::string matched = fmt::format("{} of the reference's {} intermediates are among yours",
                                          found.matched, found.ops);
  if (found.ok) {
    found.message = "the results agree; " + matched + own.unused;
    return found;
  }
  locate(found, own, theirs, alignment);
  found.table = "yours (* the reference has no such value):\n" + own.table() +
                "the reference (* yours has no such value):\n" + theirs.table();
  found.message =
      difference(result(own), result(theirs), own.at, n) + "; " + matched + ": `table` lists both";
  if (found.reference)
    found.message += line_of(*found.reference, theirs, false);
  if (found.mine)
    found.message += line_of(*found.mine, own, true);
  if (!found.hint.empty())
    found.message += "\n  " + found.hint;
  found.message += own.unused;
  return found;
}

}  // namespace

Comparison compare(const TensorFunction& mine, const TensorFunction& reference,
                   const std::vector<Tensor>& inputs, const CompareOptions& options) {
  const detail::SameDraws draws;
  Run theirs(reference, inputs);
  return compared(Run(mine, inputs), std::move(theirs), options);
}

Comparison compare(const TensorFunction& mine, const ReferenceRun& reference,
                   const CompareOptions& options) {
  const detail::SameDraws draws;
  return compared(Run(mine, reference.inputs), Run(reference), options);
}

}  // namespace xgrad
