#pragma once

#include <memory>
#include <xgrad/parallel/communicator.hpp>

namespace xgrad::parallel {

/// MPI's world; null if xgrad was built without it.
std::shared_ptr<const Communicator> mpi_world();

}  // namespace xgrad::parallel
