#pragma once
// For tests that mpirun starts.

#include <memory>
#include <string>

#include <xgrad/parallel/mpi/data_parallel.hpp>
#include "helpers/tiny_transformer.hpp"

using parallel::DataParallel;

// MPI begins and ends once in a process.
inline const std::shared_ptr<const parallel::Communicator>& all_ranks() {
  static const auto world = parallel::world();
  return world;
}

template <class F>
std::string said_by(const F& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}
