#include "kernels/all_reduce/mpi/window.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <string>

#include "kernels/all_reduce/mpi/huge_pages.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr std::size_t page = 4096;

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older headers lack the name
#endif

// Where MPI libraries keep their shared memory.
std::string folder_of_windows() {
  const char* named = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  return named != nullptr && *named != '\0' ? named : "/dev/shm";
}

// Bytes; the largest number where there is no limit or no such folder.
std::uint64_t free_in(const std::string& folder) {
  struct statvfs system {};
  if (statvfs(folder.c_str(), &system) != 0 || system.f_blocks == 0)
    return std::numeric_limits<std::uint64_t>::max();
  return std::uint64_t{system.f_bavail} * system.f_frsize;
}

int on_any_rank(int value, MPI_Comm communicator) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, communicator);
  return value;
}

[[noreturn]] void throw_too_small(std::uint64_t free, std::uint64_t needed, int ranks) {
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 0x1p20; };
  throw Unsupported(fmt::format(
      "{} has {:.1f} MiB free, but a window of {} ranks needs {:.1f} MiB of it: make it "
      "larger (containers: --shm-size)",
      folder_of_windows(), mib(free), ranks, mib(needed)));
}

}  // namespace

bool reserve_pages(std::byte* memory, std::size_t bytes) {
  return bytes == 0 || madvise(memory, bytes, MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
}

// One rank asks for all memory and the others query its base: simulators return the base of rank 0
// for every rank, and one mapping is contiguous everywhere.
Window::Window(MPI_Comm communicator, std::size_t bytes) : bytes_(round_up(bytes, page)) {
  int ranks = 1;
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks);
  std::size_t all = bytes_ * static_cast<std::size_t>(ranks);
  const bool large = all >= huge_page;
  if (large) all = round_up(all, huge_page);
  const std::size_t room = all + (large ? huge_page : page);
  // Where rank 0 cannot allocate, Open MPI lets the others wait for it without end. It asks for 5 %
  // more than the window, and for lines of its own.
  const std::uint64_t needed = room + room / 16 + (std::size_t{1} << 20U);
  std::uint64_t free = free_in(folder_of_windows());
  MPI_Bcast(&free, 1, MPI_UINT64_T, 0, communicator);
  if (free < needed) throw_too_small(free, needed, ranks);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  void* mine = nullptr;
  const int status = MPI_Win_allocate_shared(rank_ == 0 ? static_cast<MPI_Aint>(room) : 0, 1,
                                             MPI_INFO_NULL, communicator, &mine, &window_);
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_ARE_FATAL);
  if (on_any_rank(status != MPI_SUCCESS ? 1 : 0, communicator) != 0)
    throw_too_small(free, needed, ranks);
  MPI_Aint size = 0;
  int unit = 1;
  void* base = nullptr;
  MPI_Win_shared_query(window_, 0, &size, &unit, &base);
  // Every process maps the memory at another address, but at the same offset within a page.
  auto* first = static_cast<std::byte*>(base);
  first += round_up(reinterpret_cast<std::uintptr_t>(base), page) -
           reinterpret_cast<std::uintptr_t>(base);
  if (large) {
    std::uint64_t skipped = rank_ == 0 ? bytes_to_huge_page(first) : 0;
    MPI_Bcast(&skipped, 1, MPI_UINT64_T, 0, communicator);  // the segments must begin alike
    first += skipped;
  }
  const auto segment_at = [&](int rank) { return first + static_cast<std::size_t>(rank) * bytes_; };
  // Others use the folder too: what is free now may be less.
  if (on_any_rank(reserve_pages(segment_at(rank_), bytes_) ? 0 : 1, communicator) != 0) {
    MPI_Win_free(&window_);
    throw_too_small(free_in(folder_of_windows()), needed, ranks);
  }
  std::memset(segment_at(rank_), 0, bytes_);
  MPI_Barrier(communicator);
  if (large) {
    if (rank_ == 0) huge_pages_ = map_in_huge_pages(first, all);
    MPI_Barrier(communicator);  // one rank forms the pages, then the others map them
    if (rank_ != 0) huge_pages_ = map_in_huge_pages(first, all);
    if (huge_pages_ != nullptr) first = huge_pages_;
  }
  for (int rank = 0; rank < ranks; ++rank) segments_.push_back(segment_at(rank));
}

Window::~Window() {
  int ended = 0;
  MPI_Finalized(&ended);
  if (ended != 0 || std::uncaught_exceptions() > 0) return;
  if (huge_pages_ != nullptr) munmap(huge_pages_, round_up(bytes_ * segments_.size(), huge_page));
  MPI_Win_free(&window_);
}

MPI_Comm node_of(MPI_Comm communicator) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  return node;
}

}  // namespace stepladder::all_reduce
