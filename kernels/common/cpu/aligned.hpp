// Memory for plans and operands: cache-line aligned, allocated once, freed with its owner.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace stepladder {

inline constexpr std::size_t cache_line = 64;  // bytes

// Uninitialised, aligned to a cache line, to be released by std::free. From a few MiB on it asks for
// huge pages, where the system gives them to those who ask: a core's table of translations reaches
// some MiB in pages of 4 KiB, and beyond that every page costs a walk through memory. Throws
// std::bad_alloc.
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
