#include "kernels/all_reduce/mpi/huge_pages.hpp"

#include <sys/mman.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder::all_reduce {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; older headers lack the name
#endif

std::uintptr_t to_huge_page(std::uintptr_t at) { return round_up(at, huge_page) - at; }

}  // namespace

std::size_t bytes_to_huge_page(const std::byte* memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uintptr_t file_offset = 0;
    char sharing = 0;
    constexpr const char* format = "%" SCNxPTR "-%" SCNxPTR " %*3c%c %" SCNxPTR;
    if (std::sscanf(line.c_str(), format, &begin, &end, &sharing, &file_offset) != 4) continue;
    if (at < begin || at >= end) continue;
    const std::uintptr_t offset = file_offset + (at - begin);
    return sharing == 's' ? to_huge_page(offset) : 0;
  }
  return 0;
}

std::byte* map_in_huge_pages(std::byte* memory, std::size_t bytes) {
  const std::size_t room = bytes + huge_page;
  void* const reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(reserved);
  const std::size_t skipped = to_huge_page(reinterpret_cast<std::uintptr_t>(start));
  std::byte* const mapped = start + skipped;
  // An old size of 0 asks for a second mapping, and MADV_COLLAPSE for huge pages now.
  // If mremap fails, it may have unmapped its target, which then is no longer ours.
  const bool second = mremap(memory, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, mapped) != MAP_FAILED;
  if (skipped > 0) munmap(start, skipped);
  munmap(mapped + bytes, huge_page - skipped);
  if (!second) return nullptr;
  if (madvise(mapped, bytes, MADV_COLLAPSE) == 0) return mapped;
  munmap(mapped, bytes);
  return nullptr;
}

}  // namespace stepladder::all_reduce
