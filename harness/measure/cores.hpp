// How the cores of a team of threads stand to each other. On a virtual machine the hypervisor
// changes it from second to second, and the times of rows on several threads change with it.
#pragma once

#include <cstddef>
#include <limits>

namespace stepladder {

// near: one L3 cache holds the cache lines that they exchange. far: lines move between two L3
// caches. shared: two of the threads run on one physical core and divide its units.
enum class Cores { unknown, near, far, shared };
inline const char* name_of(Cores cores) {
  constexpr const char* names[] = {"", "near", "far", "shared"};
  return names[static_cast<std::size_t>(cores)];
}

// A loop of independent multiplications and additions, as many as the units can start in about 10
// us: it takes up to twice as long if another thread uses the same physical core. Seconds.
double time_throughput();

class CoreProbe {
 public:
  CoreProbe();
  // Of an OpenMP team of `threads`, in about 0.1 ms for each thread; unknown below two threads.
  Cores probe(int threads);
  // Whether the machine itself says that two of the program's processors are one physical core.
  // Then shared is no disturbance.
  bool must_share() const { return must_share_; }

 private:
  double alone_ = std::numeric_limits<double>::infinity();  // shortest time_throughput()
  bool must_share_;
};

}  // namespace stepladder
