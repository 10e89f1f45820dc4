#pragma once
// The playground's engine for its page: a request and its answer are JSON.
//
// do        | and                                | answers
// evaluate  | formula, leaves                    | shape, html (graph page), gradients, wrong
// check     | formula, leaves                    | ok, message, leaves (a line each), wrong
// answer    | formula, leaves, answers, slopes   | ok, message: are these gradients right?
// start     | text, seed, steps; path            | characters, parameters, step: a transformer
// step      |                                    | step, loss
// sample    | prompt, length                     | text
// attention | prompt                             | characters, layers of heads of weights
// save      | path                               | step: a checkpoint that `xgrad sample` reads
//
// With a path start goes on from that checkpoint.  If it fails the transformer before is kept.
// A leaf with "constant": true gets no gradient; cells are texts, so that "inf" is possible.  In an
// answer's formula g is the gradient that arrives; with "slopes" it is multiplied by g.

#include <string>

namespace playground {

/// The answer; {"error": "..."} in the engine's words, with "unknown" if a name has no value. Never
/// throws.
std::string call(const std::string& request);

}  // namespace playground

/// The same for a page, valid until the next call.
extern "C" const char* xgrad_call(const char* request);
