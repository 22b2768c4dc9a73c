// Measured ceilings of the machine: peak FLOP rate, and bandwidth of each cache level and of
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

struct Ceiling {
  // fma_peak; on the device also tf32_peak, of its tensor cores; stream_read, stream_triad (2 reads, 1 write), stream_copy, stream_write; in place:
  // stream_update (2 reads, 1 write), stream_scale (1 read, 1 write)
  std::string name;
  std::string unit;   // GFLOP/s or GB/s
  int threads = 1;    // 0: the device
  std::string level;  // L1, L2, L3, DRAM or device; empty for a peak
  double value = 0;
};

struct CacheSizes {
  std::size_t l1 = 0, l2 = 0, l3 = 0;  // bytes of one instance; 0 when there is none
};

// Measures on `threads` OpenMP threads, in about a third of a second for each ceiling; with 0
// threads on the device, if there is one.
std::vector<Ceiling> measure_ceilings(const CacheSizes& caches, int threads);

// The roof of a problem: the longer of its time at FMA peak, and the time of its bytes at the
// bandwidth of the level that holds its operands, with the nearest mix of reads and writes.
struct Roof {
  std::string name;    // "fma_peak", "stream_copy_L2" and so on
  double seconds = 0;  // a lower bound of the time
};
Roof roof_of(const ProblemInfo& problem, double operand_bytes, bool cold, int threads,
             const CacheSizes& caches, const std::vector<Ceiling>& ceilings);

// The same on the device, in its memory, with the peak of the arithmetic that the variant uses:
// fma_peak for fp32, tf32_peak for tf32. A variant that has fp32 accuracy from operands in TF32
// (3xTF32: precision fp32 with an operand_error) computes three products for each of the problem's:
// its peak is tf32_peak/3, or fma_peak where that is higher, since the same results can be had
// without tensor cores. None where the peak is not measured.
Roof device_roof_of(const ProblemInfo& problem, const VariantInfo& variant,
                    const std::vector<Ceiling>& ceilings);

}  // namespace stepladder
