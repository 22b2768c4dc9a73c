// Runs the kernel of a student (the macro SOURCE) in the emulator: verifies it on odd sizes, and
// counts the sectors of 32 bytes that its warps move. Prints "wrong: …", or "sectors: N".
#include SOURCE

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

std::map<std::pair<unsigned, unsigned>, std::set<std::uintptr_t>> sectors;  // (warp, access)
std::vector<unsigned> accesses(stepladder::simt::max_threads);              // of each thread
dim3 block{~0U, ~0U, ~0U};
std::size_t moved = 0;

void end_block() {
  for (const auto& [access, touched] : sectors) moved += touched.size();
  sectors.clear();
  std::fill(accesses.begin(), accesses.end(), 0);
}

// Arrays begin at a multiple of 128 bytes, as on a device.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  explicit Aligned(const Aligned<U>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{128}));
  }
  void deallocate(T* at, std::size_t) { ::operator delete (at, std::align_val_t{128}); }
  bool operator==(const Aligned&) const { return true; }
};
using Lines = std::vector<float, Aligned<float>>;

// Whether the result is right, within the bound of a sum of k + 2 roundings.
bool is_right(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::mt19937 random(static_cast<unsigned>(m * 31 + n * 7 + k));
  std::uniform_real_distribution<float> value(-1, 1);
  Lines a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
  Lines c(static_cast<std::size_t>(m * n), NAN);
  for (float& x : a) x = value(random);
  for (float& x : b) x = value(random);
  const Grid grid = grid_of(m, n);
  const std::size_t threads = std::size_t{grid.threads.x} * grid.threads.y * grid.threads.z;
  if (threads == 0 || threads > stepladder::simt::max_threads ||
      grid.blocks.x * grid.blocks.y * grid.blocks.z == 0) {
    std::printf("wrong: a block has 1 to 1024 threads, not %zu, and a grid at least one block\n",
                threads);
    return false;
  }
  stepladder::simt::run(
      {grid.blocks, grid.threads, 1, 0, [&] {
         multiply(m, n, k, {a.data(), m * k}, {b.data(), k * n}, {c.data(), m * n});
       }});
  end_block();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        const double product = static_cast<double>(a[static_cast<std::size_t>(i * k + l)]) *
                               b[static_cast<std::size_t>(l * n + j)];
        sum += product;
        magnitude += std::abs(product);
      }
      const float found = c[static_cast<std::size_t>(i * n + j)];
      if (!(std::abs(found - sum) <= static_cast<double>(k + 2) * 0x1p-24 * magnitude)) {
        std::printf("wrong: C[%ld, %ld] of a product %ld x %ld x %ld is %g, expected %g\n",
                    static_cast<long>(i), static_cast<long>(j), static_cast<long>(m),
                    static_cast<long>(n), static_cast<long>(k), static_cast<double>(found), sum);
        return false;
      }
    }
  return true;
}

}  // namespace

void count_access(const void* address) {
  if (blockIdx.x != block.x || blockIdx.y != block.y || blockIdx.z != block.z) {
    end_block();
    block = {blockIdx.x, blockIdx.y, blockIdx.z};
  }
  const unsigned thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * static_cast<unsigned>(threadIdx.z));
  sectors[{thread / 32, accesses[thread]++}].insert(reinterpret_cast<std::uintptr_t>(address) / 32);
}

int main(int count, char** arguments) {
  try {
    const long shapes[][3] = {{1, 1, 1},    {5, 7, 3},    {33, 31, 17}, {64, 1, 40},
                              {1, 100, 65}, {40, 48, 64}, {70, 33, 1}};
    for (const auto& shape : shapes)
      if (!is_right(shape[0], shape[1], shape[2])) return 1;
    moved = 0;
    const long size = count > 1 ? std::atol(arguments[1]) : 96;
    if (!is_right(size, size, size)) return 1;
    std::printf("sectors: %zu\n", moved);
  } catch (const std::exception& error) {
    std::printf("wrong: %s\n", error.what());
    return 1;
  }
  return 0;
}
