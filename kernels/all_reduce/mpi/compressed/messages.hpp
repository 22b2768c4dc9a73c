// Messages of bytes, whose length the receiver may not know, for the compressed rungs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/all_reduce/mpi/group.hpp"

namespace stepladder::all_reduce {

inline constexpr std::int64_t longest_bytes = std::int64_t{1} << 30;  // of one MPI message

struct OutgoingBytes {
  const std::byte* bytes;  // [count]
  std::int64_t count;
  int to;
};
struct IncomingBytes {
  std::byte* bytes;  // [capacity], must not overlap the outgoing bytes
  std::int64_t capacity;
  int from;
};

// Sends and receives concurrently. Returns the number of bytes received. Messages of `longest`
// bytes and more are sent in segments; the last segment is shorter than `longest`.
std::int64_t exchange_bytes(const Group& group, const OutgoingBytes& out, const IncomingBytes& in,
                            std::int64_t longest = longest_bytes);

}  // namespace stepladder::all_reduce
