// Memory that the ranks of one node share: an MPI-3 window.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {

// Every rank owns a segment of the same length and can load from and store to all of them.
class Window {
 public:
  // Collective over `communicator`, whose ranks must share memory. The segment of each rank begins
  // at a page; its pages are touched by that rank, and are huge pages where the system has them and
  // the segments together fill one. Throws Unsupported with what is missing, on every rank, if a
  // rank cannot allocate.
  Window(MPI_Comm communicator, std::size_t bytes);
  // Collective. During an exception the memory stays until the process ends, because other ranks
  // may not come here.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  std::byte* segment() const { return segments_[static_cast<std::size_t>(rank_)]; }  // of this rank
  std::size_t bytes() const { return bytes_; }
  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(segments_.size()); }

  // The element of another rank's segment at the offset that `here` has in this rank's.
  template <class T>
  T* of(int rank, T* here) const {
    const auto offset = reinterpret_cast<const std::byte*>(here) - segment();
    return reinterpret_cast<T*>(segments_[static_cast<std::size_t>(rank)] + offset);
  }
  bool contains(const void* here) const {
    const auto* at = static_cast<const std::byte*>(here);
    return at >= segment() && at < segment() + bytes_;
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t bytes_;
  std::byte* huge_pages_ = nullptr;  // where the segments are mapped again; nullptr: nowhere
  int rank_ = 0;
  std::vector<std::byte*> segments_;  // [rank]
};

// Gives memory to all pages of a mapping. False where the system has none: a store to such a page
// would be a SIGBUS. True where the system cannot tell (before Linux 5.14).
bool reserve_pages(std::byte* memory, std::size_t bytes);

// The ranks of `communicator` that share memory with this one, in the same order. The caller frees
// it.
MPI_Comm node_of(MPI_Comm communicator);

}  // namespace stepladder::all_reduce
