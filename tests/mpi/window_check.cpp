// Windows that the folder of shared memory has no room for are refused on every rank with what is
// missing; Open MPI would let the other ranks wait for rank 0 without end.
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {
namespace {

void check_window_too_large(const MpiSession& session) {
  struct statvfs system {};
  if (statvfs("/dev/shm", &system) != 0 || system.f_blocks == 0) {
    if (session.rank() == 0)
      std::printf("NOT CHECKED: windows that are too large: /dev/shm has no limit\n");
    return;
  }
  const auto free = static_cast<std::size_t>(system.f_bavail) * system.f_frsize;
  const Resources resources{.communicator = session.communicator()};
  std::string refused;
  try {
    const all_reduce::Window window(communicator_of(resources), free + (std::size_t{1} << 30U));
  } catch (const Unsupported& error) {
    refused = error.what();
  }
  expect(refused.starts_with("/dev/shm has ") && refused.find("needs") != std::string::npos,
         "a window larger than /dev/shm is refused, not: " + refused);
}

// A page behind the end of a file is one that a full file system does not give.
void check_reserved_pages() {
  constexpr std::size_t page = 4096;
  const int file = memfd_create("window_check", 0);
  expect(file >= 0 && ftruncate(file, page) == 0, "a file of one page");
  void* const memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  expect(memory != MAP_FAILED, "it is mapped");
  auto* const pages = static_cast<std::byte*>(memory);
  expect(all_reduce::reserve_pages(pages, page), "a page is reserved");
#ifdef MADV_POPULATE_WRITE
  if (madvise(pages, page, MADV_POPULATE_WRITE) == 0)  // else a system that cannot tell
    expect(!all_reduce::reserve_pages(pages, 2 * page), "a page that no memory is left for");
#endif
  munmap(memory, 2 * page);
}

}  // namespace

void check_windows(const MpiSession& session) {
  check_window_too_large(session);
  check_reserved_pages();
}

}  // namespace stepladder::test
