#pragma once
// What a function does that its graph does not show.

#include <string>
#include <vector>
#include <xgrad/autograd/check/gradcheck.hpp>
#include <xgrad/autograd/trace.hpp>

namespace xgrad::detail {

/// The ops whose result is neither an output nor an input of another op, though an input of theirs
/// goes on, a sentence each: what they computed was lost, or was read as numbers.  Left out are
/// constants; views, which compute nothing; and what is computed last, as a second result is.
std::vector<std::string> unused_results(const std::vector<Trace::Event>& events,
                                        const std::vector<Tensor>& outputs);

/// Where numbers that were read (item(), data(), array()) come back as a constant: the first op
/// with an input, or a number of its own, that moves with the function's inputs although no graph
/// leads to it.  Empty if there is none.
std::string copied_value(const TensorFunction& f, const std::vector<Tensor>& inputs);

/// Puts both, of the function that a report is of, into its notes and its message.
void add_hidden(GradcheckReport& report, const TensorFunction& f,
                const std::vector<Tensor>& inputs);

}  // namespace xgrad::detail
