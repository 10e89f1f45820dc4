// A slower network between the ranks of one machine, for extras/mpi/README.md: a library that is loaded
// before MPI (LD_PRELOAD) and takes the place of its MPI_Isend, MPI_Irecv and MPI_Testall.
//
//   SLOW_NETWORK_LATENCY_US=50 SLOW_NETWORK_GBIT_S=1 LD_PRELOAD=libxgrad_slow_network.so mpirun ...
//
// Each rank has a wire on which its messages go out one after another; a message of b bytes keeps
// it for b / bandwidth and is there a latency later.  The time at which it is there travels at its
// end: the ranks share a clock.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

namespace {

struct Message {
  std::vector<std::byte> bytes;  // and the time
  void* to = nullptr;            // of one that is received
};
std::map<MPI_Request, Message> under_way;
double wire_free = 0;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double number(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atof(text);
}

std::size_t size_of(int n, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<std::size_t>(n) * static_cast<std::size_t>(size);
}

bool there(const MPI_Request& request) {
  const auto at = under_way.find(request);
  if (at == under_way.end())
    return true;
  int complete = 0;
  PMPI_Request_get_status(request, &complete, MPI_STATUS_IGNORE);
  const Message& message = at->second;
  if (complete == 0 || message.to == nullptr)
    return complete != 0;
  double arrival = 0;
  std::memcpy(&arrival, message.bytes.data() + message.bytes.size() - sizeof(double),
              sizeof(double));
  return now() >= arrival;
}

}  // namespace

extern "C" int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag,
                         MPI_Comm world, MPI_Request* request) {
  static const double latency = number("SLOW_NETWORK_LATENCY_US") * 1e-6,
                      bandwidth = number("SLOW_NETWORK_GBIT_S") * 1e9 / 8;
  const std::size_t size = size_of(n, type);
  Message message{.bytes = std::vector<std::byte>(size + sizeof(double))};
  wire_free = std::max(wire_free, now()) + (bandwidth > 0 ? double(size) / bandwidth : 0);
  const double arrival = wire_free + latency;
  std::memcpy(message.bytes.data(), data, size);
  std::memcpy(message.bytes.data() + size, &arrival, sizeof(double));
  const int code = PMPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()),
                              MPI_BYTE, to, tag, world, request);
  under_way[*request] = std::move(message);
  return code;
}

extern "C" int MPI_Irecv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm world,
                         MPI_Request* request) {
  Message message{.bytes = std::vector<std::byte>(size_of(n, type) + sizeof(double)), .to = data};
  const int code = PMPI_Irecv(message.bytes.data(), static_cast<int>(message.bytes.size()),
                              MPI_BYTE, from, tag, world, request);
  under_way[*request] = std::move(message);
  return code;
}

extern "C" int MPI_Testall(int n, MPI_Request* requests, int* all, MPI_Status* statuses) {
  *all = std::all_of(requests, requests + n, there) ? 1 : 0;
  for (int i = 0; *all != 0 && i < n; ++i)
    if (const auto at = under_way.find(requests[i]); at != under_way.end()) {
      if (const Message& message = at->second; message.to != nullptr)
        std::memcpy(message.to, message.bytes.data(), message.bytes.size() - sizeof(double));
      under_way.erase(at);
    }
  return *all != 0 ? PMPI_Testall(n, requests, all, statuses) : MPI_SUCCESS;
}
