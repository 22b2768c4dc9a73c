// What the machine can do at best, measured: the top of every chart and the roof of every row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

struct Ceiling {
  std::string
      name;  // fma_peak; stream_read, stream_triad (2 reads, 1 write), stream_copy, stream_write;
             // in place: stream_update (2 reads, 1 write), stream_scale (1 read, 1 write)
  std::string unit;   // GFLOP/s or GB/s
  int threads = 1;    // 0: of the device
  std::string level;  // L1, L2, L3 or DRAM, or device; empty for fma_peak
  double value = 0;
};

struct CacheSizes {
  std::size_t l1 = 0, l2 = 0, l3 = 0;  // bytes of one instance; 0 when there is none
};

// Measures on `threads` OpenMP threads; about a third of a second each. With 0 threads, on the device;
// nothing where there is none.
std::vector<Ceiling> measure_ceilings(const CacheSizes& caches, int threads);

// The roof that binds a problem: its time at FMA peak, or that of its bytes at the bandwidth of the level its
// operands fit, at the nearest mix of reads and writes; whichever is longer.
struct Roof {
  std::string name;    // "fma_peak", or "stream_copy_L2" and so on
  double seconds = 0;  // no run can be much faster
};
Roof roof_of(const ProblemInfo& problem, double operand_bytes, bool cold, int threads,
             const CacheSizes& caches, const std::vector<Ceiling>& ceilings);

// Likewise on the device, in its memory. None for a narrower precision than fp32, whose peak is not
// measured.
Roof device_roof_of(const ProblemInfo& problem, const std::string& precision,
                    const std::vector<Ceiling>& ceilings);

}  // namespace stepladder
