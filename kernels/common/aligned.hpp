// Workspace for plans: cache-line aligned floats, allocated once, freed with the plan.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace stepladder {

inline constexpr std::size_t cache_line = 64;  // bytes

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using AlignedArray = std::unique_ptr<T[], Free>;

// `count` elements, uninitialised, aligned to a cache line. Throws std::bad_alloc.
template <class T>
AlignedArray<T> aligned_array(std::size_t count) {
  const std::size_t bytes = (count * sizeof(T) + cache_line - 1) / cache_line * cache_line;
  void* memory = std::aligned_alloc(cache_line, bytes == 0 ? cache_line : bytes);
  if (memory == nullptr) throw std::bad_alloc{};
  return AlignedArray<T>(static_cast<T*>(memory));
}

}  // namespace stepladder
