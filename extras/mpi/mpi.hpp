#pragma once

#include <memory>
#include "mpi/communicator.hpp"

namespace xgrad::parallel {

/// MPI's world.
std::shared_ptr<const Communicator> mpi_world();

}  // namespace xgrad::parallel
