// Emulates kernels/common/cuda/wgmma.hpp. Register counts have no effect.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tests/simt/hopper.hpp"

namespace stepladder {

inline void wgmma_fence() { simt::fence_products(); }

inline void fence_shared_writes() {}

inline void wgmma_64x128x8_tf32(float (&d)[64], const std::uint32_t (&a)[4], std::uint64_t b,
                                const simt::Here& place = simt::Here::current()) {
  simt::multiply_later(d, a, b, place);
}

inline void wgmma_64x64x8_tf32(float (&d)[32], const std::uint32_t (&a)[4], std::uint64_t b,
                               const simt::Here& place = simt::Here::current()) {
  simt::multiply_later(d, a, b, place);
}

template <int in_flight = 0>
void wgmma_wait(const simt::Here& place = simt::Here::current()) {
  simt::finish_products(in_flight, place);
}

template <int count>
void fence_accumulators(float (&)[count]) {}

template <int registers>
void warpgroup_reg_dealloc() {}
template <int registers>
void warpgroup_reg_alloc() {}

}  // namespace stepladder
