// What the code of x86-64 and of AArch64 calls differently.
#pragma once

#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

// In front of a function whose plain loop the compiler vectorizes: built for each instruction set,
// of which the widest that the CPU has is chosen when the program starts.
#if defined(__x86_64__)
#define STEPLADDER_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define STEPLADDER_CLONES
#endif

namespace stepladder {

// Between two reads of a loop that waits: leaves the core to its other hardware thread.
inline void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

// A non-temporal store. AArch64 has them for pairs of registers alone, as a hint: a plain store.
inline void stream(float* p, float value) {
#if defined(__x86_64__)
  _mm_stream_si32(reinterpret_cast<int*>(p), std::bit_cast<int>(value));
#else
  *p = value;
#endif
}

// Makes non-temporal stores visible to other threads.
inline void finish_streaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace stepladder
