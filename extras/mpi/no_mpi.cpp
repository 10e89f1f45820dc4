#include <xgrad/parallel/mpi.hpp>

namespace xgrad::parallel {

std::shared_ptr<const Communicator> mpi_world() { return nullptr; }

}  // namespace xgrad::parallel
