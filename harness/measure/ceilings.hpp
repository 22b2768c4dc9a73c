// Measured ceilings of the machine: peak FLOP rate, and bandwidth of each cache level and of
// memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

struct Ceiling {
  // fma_peak, of the widest instruction set of the machine; fma_peak_avx2 and fma_peak_sse42 of
  // narrower ones (SSE multiplies and adds apart); bf16_peak, int8_peak and binary_peak, of the
  // widest instructions that the machine has for these operands; on the device also tf32_peak, of
  // its tensor cores; stream_read, stream_triad (2 reads, 1 write), stream_copy, stream_write; in
  // place: stream_update (2 reads, 1 write), stream_scale (1 read, 1 write)
  std::string name;
  std::string unit;   // GFLOP/s or GB/s
  int threads = 1;    // 0: the device
  std::string level;  // L1, L2, L3, DRAM or device; empty for a peak
  double value = 0;
};

struct CacheSizes {
  std::size_t l1 = 0, l2 = 0, l3 = 0;  // bytes of one instance; 0 when there is none
};

// Measures the ceilings whose names are wanted on `threads` OpenMP threads, in about a third of a
// second for each; with 0 threads all of the device, if there is one.
std::vector<Ceiling> measure_ceilings(
    const CacheSizes& caches, int threads,
    const std::function<bool(const std::string&)>& wanted = [](const std::string&) {
      return true;
    });

// Why the peak of several threads on so many cores of the machine cannot be true beside that of one
// thread, or empty: it lies below 0.6 times that of one for each core, or above 1.25 times for each
// thread.
std::string why_inconsistent(const std::vector<Ceiling>& of_one, const std::vector<Ceiling>& of_all,
                             int cores);

// The roof of a problem: the longer of its time at the peak of its precision (fp16 is widened:
// fma_peak), and the time of its bytes with the nearest mix of reads and writes, each at the
// bandwidth of the level that holds it: L1 holds as many of them as fit into it, L2 those that fit
// into L2 beyond these, and so on. The outermost level that holds any gives the name.
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
