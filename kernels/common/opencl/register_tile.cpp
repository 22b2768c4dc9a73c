#include "kernels/common/opencl/register_tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/common/opencl/plan.hpp"

namespace stepladder::opencl {
namespace {

// CPUs want few work-items with long vectors and many rows, GPUs many small ones.
constexpr RegisterTile candidates[] = {
    {.local_x = 1, .local_y = 1, .rows = 8, .width = 16, .step = 64},
    {.local_x = 4, .local_y = 8, .rows = 8, .width = 16, .step = 64},
    {.local_x = 8, .local_y = 8, .rows = 6, .width = 8, .step = 64},
    gpu_tile,
    {.local_x = 16, .local_y = 16, .rows = 8, .width = 8, .step = 8},
};

double seconds_of(const std::function<void()>& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {  // the first one may compile
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

Range RegisterTile::items() const {
  return {static_cast<std::size_t>(local_x), static_cast<std::size_t>(local_y)};
}

Range RegisterTile::elements() const {
  return {items().columns * static_cast<std::size_t>(width),
          items().rows * static_cast<std::size_t>(rows)};
}

std::string RegisterTile::options() const {
  return fmt::format("-DLOCAL_X={} -DLOCAL_Y={} -DROWS={} -DWIDTH={} -DSTEP={}", local_x, local_y,
                     rows, width, step);
}

std::string RegisterTile::name() const {
  return fmt::format("{}x{} work-items of {}x{}, K in steps of {}", local_y, local_x, rows, width,
                     step);
}

const RegisterTile& fastest_tile(
    const std::string& kernel, int threads,
    const std::function<std::function<void()>(const RegisterTile&)>& plan) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, const RegisterTile*> chosen;
  const std::lock_guard lock(mutex);
  const RegisterTile*& fastest = chosen[{kernel, threads}];
  if (fastest != nullptr) return *fastest;
  double shortest = std::numeric_limits<double>::infinity();
  for (const RegisterTile& candidate : candidates) {
    try {
      if (const double seconds = seconds_of(plan(candidate)); seconds < shortest)
        shortest = seconds, fastest = &candidate;
    } catch (const Unsupported&) {  // of the device, whatever the sizes
      throw;
    } catch (const std::runtime_error&) {
      // such as too little local memory: another one may run
    }
  }
  if (fastest == nullptr) throw Unsupported("the device runs none of the tile sizes");
  return *fastest;
}

}  // namespace stepladder::opencl
