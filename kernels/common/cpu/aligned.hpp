// Memory for plans and operands: cache-line aligned, allocated once, freed with its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace stepladder {

inline constexpr std::size_t cache_line = 64;                    // bytes
inline constexpr std::size_t huge_page = std::size_t{2} << 20U;  // bytes
inline constexpr std::size_t huge_pages_from = 2 * huge_page;    // bytes of an allocation
inline constexpr std::int64_t line_floats = cache_line / sizeof(float);

// Uninitialised memory, aligned to a cache line; release it with std::free. From huge_pages_from on
// it is aligned to huge pages and requests them: with pages of 4 KiB the TLB covers a few MiB, and
// each page beyond that costs a page walk. Throws std::bad_alloc.
void* allocate_aligned(std::size_t bytes);

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], Free>;

// `count` elements, uninitialised. Throws std::bad_alloc.
template <class T>
AlignedArray<T> aligned_array(std::size_t count) {
  return AlignedArray<T>(static_cast<T*>(allocate_aligned(count * sizeof(T))));
}

}  // namespace stepladder
