#include "kernels/common/cpu/aligned.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/out_of_memory.hpp"

namespace stepladder {

void* allocate_aligned(std::size_t bytes) {
  const bool large = bytes >= huge_pages_from;
  const std::size_t alignment = large ? huge_page : cache_line;
  const std::size_t whole = round_up(std::max<std::size_t>(bytes, 1), alignment);
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw OutOfMemory(bytes);
  if (large) madvise(memory, whole, MADV_HUGEPAGE);  // a hint; without it the pages are small
  return memory;
}

}  // namespace stepladder
