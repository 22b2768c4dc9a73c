// A convolution as products on Hopper's tensor cores. The plan of it is that of kernels/matmul/cuda/wgmma/wgmma_plan.hpp,
// but for the first factor, which is gathered:
//
//     source   →  128 threads, 16 bytes at a time  ┐
//     filters  →  the TMA, in boxes                ┴→  a ring of stages  →  wgmma  →  sums  →  target
//
//     producers    a warpgroup that fills stage after stage and waits only for empty ones. Their copies
//                  are asynchronous too, and report to the stage's barrier, as the TMA does
//     consumers    two warpgroups, 64 rows each of a tile, which take the first factor through registers:
//                  it may lie across the depth, and what ordinary threads copied needs no fence
//     blocks       one to a multiprocessor, which takes tile after tile
//
// A Product says which factor is gathered and where sums go: PixelProduct is forward and backward_data,
// TermProduct is backward_weights. Sums: see kernels/common/cuda/wgmma_accumulators.hpp. Only .cu files include this.
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

// What a kernel is told.
template <class Product>
struct WgmmaWork {
  WgmmaTiles tiles;
  Gathering gathering;
  int channels;       // columns of the result in each group
  int second_extent;  // rows of each part of the second factor
  typename Product::Result result;
};

// Rows are pixels of the target, columns its channels.
struct PixelProduct {
  using Gather = GatherPixels;
  struct Result {
    float* at;
    CudaStrides strides;
    std::int64_t part;  // elements from one part of the sum to the next
    bool in_pairs;      // channels are neighbours, and two of them can be written at once
  };

  template <class Sums>
  static __device__ void store(const WgmmaWork<PixelProduct>& work, const WgmmaTiles::Place& place,
                               int own_row, int member, const Sums& sums) {
    float* const to[2] = {row(work, place, own_row), row(work, place, own_row + 8)};
    const int stride = work.result.strides.channel;
#pragma unroll
    for (int i = 0; i < Sums::columns / 2; i += 2) {
      const int channel = place.column * Sums::columns + i / 4 * 8 + 2 * member;
      if (to[i / 2 % 2] == nullptr || channel >= work.channels) continue;
      float* const at = to[i / 2 % 2] + std::int64_t{channel} * stride;
      if (work.result.in_pairs) {
        *reinterpret_cast<float2*>(at) = make_float2(sums.value(i), sums.value(i + 1));
      } else {
        at[0] = sums.value(i);
        if (channel + 1 < work.channels) at[stride] = sums.value(i + 1);
      }
    }
  }

 private:
  // The group's first channel of a pixel; null past the last pixel.
  static __device__ float* row(const WgmmaWork<PixelProduct>& work, const WgmmaTiles::Place& place,
                               int own_row) {
    const Gathering& g = work.gathering;
    const CudaStrides& strides = work.result.strides;
    const int pixel = place.row * wgmma_rows + own_row;
    if (pixel >= g.pixels) return nullptr;
    const auto [image, within] = g.of_image.divide(static_cast<std::uint32_t>(pixel));
    const auto [a, b] = g.of_row.divide(within);
    return work.result.at + place.part * work.result.part +
           static_cast<int>(image) * strides.image +
           (g.rows.first + static_cast<int>(a) * g.rows.step) * strides.row +
           (g.columns.first + static_cast<int>(b) * g.columns.step) * strides.column +
           place.group * work.channels * strides.channel;
  }
};

// Rows are terms of the filters, columns their out channels; each part of the sum has a result.
struct TermProduct {
  using Gather = GatherTerms;
  struct Result {
    float* at;  // [parts, groups, channels, terms]
  };

  template <class Sums>
  static __device__ void store(const WgmmaWork<TermProduct>& work, const WgmmaTiles::Place& place,
                               int own_row, int member, const Sums& sums) {
    const int terms = work.gathering.pieces * piece_channels;
    const int slice = place.part * work.tiles.groups + place.group;
    float* const to = work.result.at + std::int64_t{slice} * work.channels * terms;
#pragma unroll
    for (int i = 0; i < Sums::columns / 2; ++i) {
      const int term = place.row * wgmma_rows + own_row + i / 2 % 2 * 8;
      const int channel = place.column * Sums::columns + i / 4 * 8 + 2 * member + i % 2;
      if (term < terms && channel < work.channels)
        to[std::int64_t{channel} * terms + term] = sums.value(i);
    }
  }
};

template <class Product, class Sums>
class WgmmaProduct {
 public:
  using Work = WgmmaWork<Product>;
  static constexpr int consumers = 2, threads = (1 + consumers) * warpgroup_threads;
  static_assert(consumers * 64 == wgmma_rows);

  struct Stage {
    float first[wgmma_rows * wgmma_depth];                   // as Product::Gather lays it
    float second[Sums::parts][Sums::columns * wgmma_depth];  // [parts, columns, 32]
  };
  // The rest of the multiprocessor's 256 KiB is its first-level cache, which has the pixels that the next taps
  // see again: 124 KiB beside a ring of 128, some 60 beside the 192 of Tf32Sums<256> and Tf32x3Sums<128>,
  // whose stages are larger.
  static constexpr int stages = std::max<int>(4, (128 << 10) / sizeof(Stage));
  struct Ring {
    Stage stage[stages];
    Barrier full[stages], empty[stages];
  };

  static __device__ void initialise(Ring& ring) {
    for (Barrier& full : ring.full) full.initialise(warpgroup_threads + 1);  // and the TMA's
    for (Barrier& empty : ring.empty) empty.initialise(consumers * warpgroup_threads / 32);
    publish_barriers();
  }

  static __device__ void produce(Ring& ring, const TensorMap& second, const Work& work) {
    RingPosition<stages> at;
    for (unsigned tile = blockIdx.x; tile < work.tiles.count(); tile += gridDim.x) {
      const WgmmaTiles::Place place = work.tiles.place(tile);
      const typename Product::Gather gather(work.gathering, place.row, place.group);
      const int column = place.group * work.channels + place.column * Sums::columns;
      for (int step = place.first_step; step < place.last_step; ++step, at.advance()) {
        Stage& stage = ring.stage[at.stage];
        Barrier& full = ring.full[at.stage];
        ring.empty[at.stage].wait(at.parity ^ 1);  // passes at once in the first round
        if (threadIdx.x == 0) {
          full.arrive_and_expect(sizeof stage.second);
          for (int part = 0; part < Sums::parts; ++part)
            load_box(stage.second[part], second, column + part * work.second_extent,
                     step * wgmma_depth, full);
        }
        gather.copy(stage.first, step);
        full.arrive_after_copies();
      }
    }
    commit_copies();
    wait_for_copies<0>();  // no thread ends with copies under way
  }

  static __device__ void consume(Ring& ring, const Work& work) {
    const int thread = static_cast<int>(threadIdx.x) - warpgroup_threads, lane = thread % 32;
    const int own_row = thread / 32 * 16 + lane / 4, member = lane % 4;  // and 8 rows further on
    RingPosition<stages> at;
    for (unsigned tile = blockIdx.x; tile < work.tiles.count(); tile += gridDim.x) {
      const WgmmaTiles::Place place = work.tiles.place(tile);
      Sums sums;
      for (int step = place.first_step; step < place.last_step; ++step, at.advance()) {
        const Stage& stage = ring.stage[at.stage];
        ring.full[at.stage].wait(at.parity);
        add_products<wgmma_depth>(sums, thread, stage.second[0], [&](int row, int l) {
          return Product::Gather::element(stage.first, row, l);
        });
        if (lane == 0) ring.empty[at.stage].arrive();
      }
      sums.use();
      Product::store(work, place, own_row, member, sums);
    }
  }
};

template <class Product, class Sums>
__global__ void __launch_bounds__(WgmmaProduct<Product, Sums>::threads, 1)
    wgmma_kernel([[maybe_unused]] const __grid_constant__ TensorMap second,
                 [[maybe_unused]] const __grid_constant__ WgmmaWork<Product> work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // for older GPUs there is nothing: plans refuse them
  using Blocks = WgmmaProduct<Product, Sums>;
  auto& ring = *dynamic_shared<typename Blocks::Ring>();
  if (threadIdx.x == 0) Blocks::initialise(ring);
  __syncthreads();
  // The 65536 registers are registers_at_start to a thread; (72 + 2 · 216) · 128 are not more.
  if (threadIdx.x < warpgroup_threads) {
    keep_registers<72>();
    Blocks::produce(ring, second, work);
  } else {
    take_registers<216>();
    Blocks::consume(ring, work);
  }
#endif
}

}  // namespace stepladder::convolution
