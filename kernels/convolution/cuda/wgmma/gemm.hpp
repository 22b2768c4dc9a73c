// A convolution as an implicit GEMM on Hopper's tensor cores, with the warp-specialized pipeline of
// kernels/matmul/cuda/wgmma/wgmma_plan.hpp. Operand A is gathered by threads instead of the TMA:
//
//     A: source        →  128 threads, cp.async  ┐
//     B: filters or dy →  the TMA, in boxes      ┴→  ring of stages  →  wgmma  →  target
//
//     producer     one warpgroup that fills stages and waits only for empty ones. Its copies are
//                  asynchronous and signal the stage's barrier, as the TMA does
//     consumers    two warpgroups, 64 rows of a tile each. They load A into registers: A may be
//                  M-contiguous, and copies by ordinary threads need no proxy fence
//     blocks       one per multiprocessor, persistent
//
// An Operation says how A is gathered and where accumulators are stored: WgmmaCorrelation is
// forward and backward_data, WgmmaBackwardWeights is backward_weights. Accumulators: see
// kernels/common/cuda/wgmma_accumulators.hpp. Only .cu files include this.
#pragma once

#include <algorithm>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/wgmma_ring.hpp"
#include "kernels/convolution/cuda/wgmma/gather.hpp"
#include "kernels/convolution/cuda/wgmma/tiles.hpp"

namespace stepladder::convolution {

template <class Operation>
struct WgmmaParams {
  WgmmaTiles tiles;
  Im2colOperand a;
  int channels;  // columns of the result in each group
  int b_extent;  // rows of each part of operand B
  typename Operation::Result result;
};

// Rows are pixels of the target, columns its channels.
struct WgmmaCorrelation {
  using Gather = GatherKContiguous;
  struct Result {
    float* data;
    CudaStrides strides;
    std::int64_t split;  // elements between the partial results of consecutive slices
    bool paired_stores;  // two adjacent channels can be written at once
  };

  template <class Accumulators>
  static __device__ void store(const WgmmaParams<WgmmaCorrelation>& p,
                               const WgmmaTiles::Position& tile, int own_row, int member,
                               const Accumulators& accumulators) {
    float* const to[2] = {row(p, tile, own_row), row(p, tile, own_row + 8)};
    const int stride = p.result.strides.channel;
#pragma unroll
    for (int i = 0; i < Accumulators::columns / 2; i += 2) {
      const int channel = tile.column * Accumulators::columns + i / 4 * 8 + 2 * member;
      if (to[i / 2 % 2] == nullptr || channel >= p.channels) continue;
      float* const at = to[i / 2 % 2] + std::int64_t{channel} * stride;
      if (p.result.paired_stores) {
        *reinterpret_cast<float2*>(at) =
            make_float2(accumulators.value(i), accumulators.value(i + 1));
      } else {
        at[0] = accumulators.value(i);
        if (channel + 1 < p.channels) at[stride] = accumulators.value(i + 1);
      }
    }
  }

 private:
  // The group's first channel of a pixel; null beyond the last pixel.
  static __device__ float* row(const WgmmaParams<WgmmaCorrelation>& p,
                               const WgmmaTiles::Position& tile, int own_row) {
    const CudaStrides& strides = p.result.strides;
    const int pixel = tile.row * wgmma_tile_m + own_row;
    if (pixel >= p.a.pixels) return nullptr;
    const auto [image, within] = p.a.by_image.divide(static_cast<std::uint32_t>(pixel));
    const auto [a, b] = p.a.by_row.divide(within);
    return p.result.data + tile.split * p.result.split + static_cast<int>(image) * strides.image +
           (p.a.rows.first + static_cast<int>(a) * p.a.rows.step) * strides.row +
           (p.a.columns.first + static_cast<int>(b) * p.a.columns.step) * strides.column +
           tile.group * p.channels * strides.channel;
  }
};

// Rows are CRS of the filters, columns their out channels. Results are always partials.
struct WgmmaBackwardWeights {
  using Gather = GatherMContiguous;
  struct Result {
    float* data;  // [splits, groups, channels, CRS]
  };

  template <class Accumulators>
  static __device__ void store(const WgmmaParams<WgmmaBackwardWeights>& p,
                               const WgmmaTiles::Position& tile, int own_row, int member,
                               const Accumulators& accumulators) {
    const int crs_count = p.a.crs_chunks * chunk_channels;
    const int matrix = tile.split * p.tiles.groups + tile.group;
    float* const to = p.result.data + std::int64_t{matrix} * p.channels * crs_count;
#pragma unroll
    for (int i = 0; i < Accumulators::columns / 2; ++i) {
      const int crs = tile.row * wgmma_tile_m + own_row + i / 2 % 2 * 8;
      const int channel = tile.column * Accumulators::columns + i / 4 * 8 + 2 * member + i % 2;
      if (crs < crs_count && channel < p.channels)
        to[std::int64_t{channel} * crs_count + crs] = accumulators.value(i);
    }
  }
};

template <class Operation, class Accumulators>
class WgmmaGemm {
 public:
  using Params = WgmmaParams<Operation>;
  static constexpr int consumers = 2, threads = (1 + consumers) * warpgroup_threads;
  static_assert(consumers * 64 == wgmma_tile_m);

  struct Stage {
    float a[wgmma_tile_m * wgmma_tile_k];  // in the layout of Operation::Gather
    float b[Accumulators::parts][Accumulators::columns * wgmma_tile_k];  // [parts, columns, 32]
  };
  // The ring leaves the rest of the multiprocessor's 256 KiB to L1, which serves pixels that
  // several taps share: 124 KiB beside a ring of 128 KiB, 60 KiB beside 192 KiB
  // (Tf32Accumulators<256> and Tf32x3Accumulators<128> have larger stages).
  static constexpr int stages = std::max<int>(4, (128 << 10) / sizeof(Stage));
  struct Ring {
    Stage stage[stages];
    Barrier full[stages], empty[stages];
  };

  static __device__ void initialise(Ring& ring) {
    for (Barrier& full : ring.full) full.initialise(warpgroup_threads + 1);  // and the TMA's
    for (Barrier& empty : ring.empty) empty.initialise(consumers * warpgroup_threads / 32);
    fence_barrier_init();
  }

  static __device__ void produce(Ring& ring, const TensorMap& b, const Params& p) {
    RingPosition<stages> at;
    for (unsigned index = blockIdx.x; index < p.tiles.count(); index += gridDim.x) {
      const WgmmaTiles::Position tile = p.tiles.position(index);
      const typename Operation::Gather gather(p.a, tile.row, tile.group);
      const int b_row = tile.group * p.channels + tile.column * Accumulators::columns;
      for (int step = tile.first_step; step < tile.last_step; ++step, at.advance()) {
        Stage& stage = ring.stage[at.stage];
        Barrier& full = ring.full[at.stage];
        ring.empty[at.stage].wait(at.parity ^ 1);  // returns at once in the first round
        if (threadIdx.x == 0) {
          full.arrive_and_expect_tx(sizeof stage.b);
          for (int part = 0; part < Accumulators::parts; ++part)
            load_box(stage.b[part], b, b_row + part * p.b_extent, step * wgmma_tile_k, full);
        }
        gather.copy(stage.a, step);
        full.arrive_after_copies();
      }
    }
    commit_copies();
    wait_for_copies<0>();  // a thread must not exit with copies in flight
  }

  static __device__ void consume(Ring& ring, const Params& p) {
    const int thread = static_cast<int>(threadIdx.x) - warpgroup_threads, lane = thread % 32;
    const int own_row = thread / 32 * 16 + lane / 4, member = lane % 4;  // and own_row + 8
    RingPosition<stages> started, finished;
    for (unsigned index = blockIdx.x; index < p.tiles.count(); index += gridDim.x) {
      const WgmmaTiles::Position tile = p.tiles.position(index);
      Accumulators accumulators;
      add_products<wgmma_tile_k>(
          accumulators, thread, tile.last_step - tile.first_step,
          [&] {
            const Stage& stage = ring.stage[started.stage];
            ring.full[started.stage].wait(started.parity);
            started.advance();
            return StageOperands(stage.b[0], [&stage](int row, int l) {
              return Operation::Gather::element(stage.a, row, l);
            });
          },
          [&] {
            if (lane == 0) ring.empty[finished.stage].arrive();
            finished.advance();
          });
      accumulators.fence();
      Operation::store(p, tile, own_row, member, accumulators);
    }
  }
};

template <class Operation, class Accumulators>
__global__ void __launch_bounds__(WgmmaGemm<Operation, Accumulators>::threads, 1)
    wgmma_kernel([[maybe_unused]] const __grid_constant__ TensorMap b,
                 [[maybe_unused]] const __grid_constant__ WgmmaParams<Operation> p) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // empty for other GPUs, which plans reject
  using Gemm = WgmmaGemm<Operation, Accumulators>;
  auto& ring = *dynamic_shared<typename Gemm::Ring>();
  if (threadIdx.x == 0) Gemm::initialise(ring);
  __syncthreads();
  // A thread starts with registers_at_start; (72 + 2 · 216) · 128 registers are at most 65536.
  if (threadIdx.x < warpgroup_threads) {
    warpgroup_reg_dealloc<72>();
    Gemm::produce(ring, b, p);
  } else {
    warpgroup_reg_alloc<216>();
    Gemm::consume(ring, p);
  }
#endif
}

}  // namespace stepladder::convolution
