// Stands in for kernels/common/cpu/aligned.cpp. Where no data is touched, all large arrays are one
// block of memory at slightly different addresses: 1,024 ranks with three vectors of 232 MiB would
// need 700 GiB. SMPI knows the block as shared and copies no messages within it. The linker sends
// calls of free here (--wrap), because the owners of arrays call it.
#include <smpi/smpi.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"
#include "simulation/arithmetic.hpp"

namespace {

constexpr std::size_t large = std::size_t{1} << 16U;
constexpr std::size_t longest = std::size_t{1} << 30U;  // of an array
constexpr std::size_t addresses = std::size_t{1} << 14U;

struct Block {
  std::byte* begin;
  std::size_t given = 0;  // the number of arrays so far

  Block() : begin(static_cast<std::byte*>(SMPI_SHARED_MALLOC(size))) {}
  bool contains(const void* memory) const { return memory >= begin && memory < begin + size; }
  void* next() { return begin + given++ % addresses * stepladder::cache_line; }

  static constexpr std::size_t size = longest + addresses * stepladder::cache_line;
};

Block& block() {
  static Block all;
  return all;
}

bool is_simulated() { return !stepladder::simulation::arithmetic().computes; }

}  // namespace

extern "C" {
void __real_free(void* memory);
void __wrap_free(void* memory) {
  if (!is_simulated() || !block().contains(memory)) __real_free(memory);
}
}

namespace stepladder {

void* allocate_aligned(std::size_t bytes) {
  const std::size_t whole = round_up(std::max<std::size_t>(bytes, 1), cache_line);
  if (is_simulated() && whole >= large) {
    if (whole > longest) throw std::bad_alloc{};
    return block().next();
  }
  void* memory = std::aligned_alloc(cache_line, whole);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

}  // namespace stepladder
