#include "kernels/all_reduce/mpi/compressed/messages.hpp"

#include <algorithm>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr int tag = 9;  // those of Group are lower

}  // namespace

std::int64_t exchange_bytes(const Group& group, const OutgoingBytes& out, const IncomingBytes& in,
                            std::int64_t longest) {
  std::int64_t sent = 0;
  std::int64_t received = 0;
  bool sends = true;
  bool receives = true;
  // The two messages may have different numbers of segments; the shorter one continues with
  // MPI_PROC_NULL.
  while (sends || receives) {
    const std::int64_t out_length = sends ? std::min(longest, out.count - sent) : 0;
    const std::int64_t in_length = receives ? std::min(longest, in.capacity - received) : 0;
    MPI_Status status;
    MPI_Sendrecv(out.bytes + sent, static_cast<int>(out_length), MPI_BYTE,
                 sends ? out.to : MPI_PROC_NULL, tag, in.bytes + received,
                 static_cast<int>(in_length), MPI_BYTE, receives ? in.from : MPI_PROC_NULL, tag,
                 group.communicator(), &status);
    int arrived = 0;
    if (receives) MPI_Get_count(&status, MPI_BYTE, &arrived);
    sent += out_length;
    received += arrived;
    sends = sends && out_length == longest;
    receives = receives && arrived == longest;
  }
  return received;
}

}  // namespace stepladder::all_reduce
