// A warp-specialized product on Hopper's tensor cores (CUTLASS, "Efficient GEMM in CUDA"):
//
//     TMA → ring of stages in shared memory → wgmma → accumulators in registers → C
//
//     producer     one thread issues the TMA copies and waits only for empty stages
//     consumers    two warpgroups, 64 rows of a tile of C each; each loads its rows of the register
//                  operand for the next half of a stage while the products of this half run
//     blocks       one per multiprocessor, persistent: the producer prefetches the next tile while
//                  the consumers store this one
//     cluster      its blocks compute tiles of C below each other; each loads a part of the shared
//                  operand and multicasts it to all
//
// The README describes the operand layouts and clusters. Accumulators: see
// kernels/common/cuda/wgmma_accumulators.hpp. Only .cu files include this.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/pack.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/tensor_map_cache.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/wgmma_ring.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/wgmma/raster.hpp"

namespace stepladder::matmul {

struct WgmmaParams {
  Problem problem;
  Operands operands;
  Raster tiles;                // a row of tiles is cluster · WgmmaTile::rows rows of C
  int steps;                   // of WgmmaTile::tile_k along K
  std::int64_t shared_extent;  // rows of each part of the shared operand
  bool c_allows_vectors;
};

template <class Accumulators, int cluster>
class WgmmaTile {
 public:
  static constexpr int warpgroup = warpgroup_threads, consumers = 2,
                       threads = (1 + consumers) * warpgroup;
  static constexpr int rows = 64 * consumers;                  // x of the register operand
  static constexpr int columns = Accumulators::columns;        // x of the shared operand …
  static constexpr int columns_per_block = columns / cluster;  // … and those that one block loads
  static constexpr int tile_k = swizzled_row;                  // K of a stage

  struct Stage {
    // K-contiguous: [128, 32]; otherwise four boxes [32, 32], each of 32 x
    float register_operand[rows * tile_k];
    float shared_operand[Accumulators::parts][columns * tile_k];  // [parts, columns, 32]
  };
  static constexpr int stages = (192 << 10) / sizeof(Stage);
  struct Ring {
    Stage stage[stages];
    Barrier full[stages], empty[stages];
  };

  static __device__ void initialise(Ring& ring) {
    for (Barrier& full : ring.full) full.initialise(1);
    for (Barrier& empty : ring.empty) empty.initialise(cluster * consumers * warpgroup / 32);
    fence_barrier_init();
  }

  // k_contiguous: layout of the register operand.
  template <bool k_contiguous>
  static __device__ void produce(Ring& ring, const TensorMap& register_map,
                                 const TensorMap& shared_map, const WgmmaParams& params) {
    const int rank = static_cast<int>(cluster_rank());
    RingPosition<stages> at;
    for (unsigned tile = blockIdx.x / cluster; tile < params.tiles.count();
         tile += gridDim.x / cluster) {
      const auto [row, column] = params.tiles.position(tile);
      const int x = (static_cast<int>(row) * cluster + rank) * rows;
      const int y = static_cast<int>(column) * columns + rank * columns_per_block;
      for (int step = 0; step < params.steps; ++step, at.advance()) {
        Stage& stage = ring.stage[at.stage];
        Barrier& full = ring.full[at.stage];
        ring.empty[at.stage].wait(at.parity ^ 1);  // returns at once in the first round
        full.arrive_and_expect_tx(sizeof(Stage));
        if constexpr (k_contiguous)
          load_box(stage.register_operand, register_map, x, step * tile_k, full);
        else
          for (int box = 0; box < rows; box += swizzled_row)
            load_box(stage.register_operand + box * tile_k, register_map, step * tile_k, x + box,
                     full);
        for (int part = 0; part < Accumulators::parts; ++part)
          load_shared_box(stage.shared_operand[part] + rank * columns_per_block * tile_k,
                          shared_map, y + part * static_cast<int>(params.shared_extent),
                          step * tile_k, full);
      }
    }
  }

  template <bool k_contiguous, bool swap_ab>
  static __device__ void consume(Ring& ring, const WgmmaParams& params) {
    const int thread = static_cast<int>(threadIdx.x) - warpgroup, lane = thread % 32;
    const int group = lane / 4, member = lane % 4;
    const int own_row = thread / 32 * 16 + group;  // and own_row + 8
    const auto rank = static_cast<int>(cluster_rank());
    RingPosition<stages> started, finished;
    for (unsigned tile = blockIdx.x / cluster; tile < params.tiles.count();
         tile += gridDim.x / cluster) {
      Accumulators accumulators;
      add_products<tile_k>(
          accumulators, thread, params.steps,
          [&] {
            const Stage& stage = ring.stage[started.stage];
            ring.full[started.stage].wait(started.parity);
            started.advance();
            return StageOperands(stage.shared_operand[0], [&stage](int x, int l) {
              return register_element<k_contiguous>(stage, x, l);
            });
          },
          [&] {
            if (lane < cluster) release(ring.empty[finished.stage], lane);
            finished.advance();
          });

      accumulators.fence();
      const auto [tile_row, tile_column] = params.tiles.position(tile);
#pragma unroll
      for (int i = 0; i < columns / 2; i += 2) {
        const std::int64_t x =
            (std::int64_t{tile_row} * cluster + rank) * rows + own_row + i / 2 % 2 * 8;
        const std::int64_t y = std::int64_t{tile_column} * columns + i / 4 * 8 + 2 * member;
        const float pair[2] = {accumulators.value(i), accumulators.value(i + 1)};
        if constexpr (swap_ab) {
          store(params.problem, params.operands, y, x, pair[0]);
          store(params.problem, params.operands, y + 1, x, pair[1]);
        } else if (params.c_allows_vectors) {
          store_contiguous<2, true>(params.problem, params.operands, x, y, pair);
        } else {
          store_contiguous<2, false>(params.problem, params.operands, x, y, pair);
        }
      }
    }
  }

 private:
  // Loads a box into shared memory of all blocks of the cluster.
  static __device__ void load_shared_box(float* to, const TensorMap& map, int row, int column,
                                         Barrier& full) {
    if constexpr (cluster == 1)
      load_box(to, map, row, column, full);
    else
      load_box_multicast((1U << cluster) - 1, to, map, row, column, full);
  }
  static __device__ void release(Barrier& empty, int block) {
    if constexpr (cluster == 1)
      empty.arrive();
    else
      empty.arrive_at(static_cast<unsigned>(block));
  }

  template <bool k_contiguous>
  static __device__ float register_element(const Stage& stage, int x, int l) {
    if constexpr (k_contiguous) return stage.register_operand[swizzled(x, l)];
    const float* const box = stage.register_operand + x / swizzled_row * swizzled_row * tile_k;
    return box[swizzled(l, x % swizzled_row)];
  }
};

template <class Accumulators, int cluster, bool k_contiguous, bool swap_ab>
__global__ void __launch_bounds__(WgmmaTile<Accumulators, cluster>::threads, 1)
    wgmma_kernel([[maybe_unused]] const __grid_constant__ TensorMap register_map,
                 [[maybe_unused]] const __grid_constant__ TensorMap shared_map,
                 [[maybe_unused]] const __grid_constant__ WgmmaParams params) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // the kernel is empty for other GPUs, which plans reject
  using Tile = WgmmaTile<Accumulators, cluster>;
  auto& ring = *dynamic_shared<typename Tile::Ring>();
  if (threadIdx.x == 0) Tile::initialise(ring);
  if constexpr (cluster == 1)
    __syncthreads();
  else
    cluster_sync();
  // 65536 registers: registers_at_start per thread at launch, then (40 + 2 · 232) · 128.
  if (threadIdx.x < Tile::warpgroup) {
    warpgroup_reg_dealloc<40>();
    if (threadIdx.x == 0)
      Tile::template produce<k_contiguous>(ring, register_map, shared_map, params);
  } else {
    warpgroup_reg_alloc<232>();
    Tile::template consume<k_contiguous, swap_ab>(ring, params);
  }
  if constexpr (cluster > 1) cluster_sync();  // no block ends while others write to it
#endif
}

// An operand as the TMA reads it: in place, or packed into a workspace in every run.
template <int parts>
class TmaSource {
 public:
  TmaSource(const Operand& operand, bool packs)
      : k_contiguous_(operand.k_contiguous || packs),
        pitch_(round_up(operand.k, 4)),
        packed_(device_memory(packs ? parts * operand.extent * pitch_ * sizeof(float) : 0)) {}

  bool k_contiguous() const { return k_contiguous_; }

  // Packs the operand if necessary. Boxes are box_rows x by 32 l if K-contiguous, else 32 l by 32
  // x. box_rows and rounding are the same in all runs of a plan.
  const TensorMap& prepare(const Operand& operand, int box_rows, TmaRounding rounding) {
    auto* const to = static_cast<float*>(packed_.get());
    if (to != nullptr) pack<parts>(operand, to, pitch_);
    const float* const matrix = to != nullptr ? to : operand.data;
    return maps_.get(matrix, [&] {
      if (!k_contiguous_)
        return tensor_map(matrix, operand.k, operand.extent, operand.extent, swizzled_row,
                          rounding);
      const std::int64_t rows = to != nullptr ? parts * operand.extent : operand.extent;
      const std::int64_t pitch = to != nullptr ? pitch_ : operand.k;
      return tensor_map(matrix, rows, operand.k, pitch, box_rows, rounding);
    });
  }

 private:
  bool k_contiguous_;
  std::int64_t pitch_;
  DeviceMemory packed_;  // [parts, extent, pitch]
  TensorMapCache maps_;
};

// Tiles have the width of the Accumulators that are estimated to take the least time.
template <int cluster, class... Accumulators>
class WgmmaPlan final : public Plan {
 public:
  explicit WgmmaPlan(const Problem& problem)
      : p_(problem),
        swap_ab_(swaps(operand_a(p_, {}), operand_b(p_, {}))),
        register_source_(register_operand({}), !has_aligned_rows(register_operand({}))),
        shared_source_(shared_operand({}), !can_be_shared(shared_operand({}))),
        columns_(std::min({std::pair(time<Accumulators>(), Accumulators::columns)...}).second) {}

  void run(const Operands& o) override { (start_if_chosen<Accumulators>(o), ...); }

 private:
  static constexpr int parts = std::max({Accumulators::parts...});  // of the shared operand

  template <class A>
  void start_if_chosen(const Operands& o) {
    if (A::columns != columns_) return;
    const auto start = [&]<bool k_contiguous, bool swap_ab>() {
      using Tile = WgmmaTile<A, cluster>;
      constexpr TmaRounding rounding = A::tma_rounding;
      const TensorMap& register_map =
          register_source_.prepare(register_operand(o), Tile::rows, rounding);
      const TensorMap& shared_map =
          shared_source_.prepare(shared_operand(o), Tile::columns_per_block, rounding);
      const WgmmaParams params{p_,
                               o,
                               tiles<A>(),
                               static_cast<int>(ceil_div(p_.k, Tile::tile_k)),
                               shared_operand(o).extent,
                               allows_vectors(o.c, p_.n)};
      launch(wgmma_kernel<A, cluster, k_contiguous, swap_ab>,
             {std::min(params.tiles.count(), clusters_) * cluster, Tile::threads,
              sizeof(typename Tile::Ring), cluster == 1 ? 0 : cluster},
             register_map, shared_map, params);
    };
    dispatch(start, register_source_.k_contiguous(), swap_ab_);
  }

  static bool has_aligned_rows(const Operand& operand) {
    return operand.leading_dimension() % 4 == 0;
  }
  // Whether wgmma can read the operand from shared memory without packing.
  static bool can_be_shared(const Operand& operand) {
    return parts == 1 && operand.k_contiguous && has_aligned_rows(operand);
  }
  // Whether B is the register operand.
  static bool swaps(const Operand& a, const Operand& b) {
    return !can_be_shared(b) && (can_be_shared(a) || a.extent < b.extent);
  }
  Operand register_operand(const Operands& o) const {
    return swap_ab_ ? operand_b(p_, o) : operand_a(p_, o);
  }
  Operand shared_operand(const Operands& o) const {
    return swap_ab_ ? operand_a(p_, o) : operand_b(p_, o);
  }

  template <class A>
  Raster tiles() const {
    using Tile = WgmmaTile<A, cluster>;
    return {blocks_for(register_operand({}).extent, cluster * Tile::rows),
            blocks_for(shared_operand({}).extent, Tile::columns)};
  }
  // Estimated time: tiles that a cluster computes one after another, times their columns and those
  // that the loads of the register operand cost (a guess).
  template <class A>
  unsigned time() const {
    constexpr unsigned loads = 32;
    return blocks_for(tiles<A>().count(), clusters_) * (A::columns + loads);
  }

  Problem p_;
  unsigned clusters_ = static_cast<unsigned>(cuda_multiprocessors() / cluster);  // resident
  bool swap_ab_;
  TmaSource<1> register_source_;
  TmaSource<parts> shared_source_;
  int columns_;
};

// The TMA's coordinates have 32 bits. They reach beyond the two parts of an operand by a tile.
inline void require_tma_coordinates(const Problem& p) {
  constexpr std::int64_t most = std::int64_t{1} << 29;
  if (p.m > most || p.n > most || p.k > most)
    throw Unsupported("a dimension exceeds 2^29, but coordinates of the TMA have 32 bits");
}

template <int cluster, class Widest, class... Narrower>
std::unique_ptr<Plan> make_wgmma_plan(const Problem& problem, const Resources&) {
  require_tf32();
  require_hopper();
  require_shared_memory(std::max({sizeof(typename WgmmaTile<Widest, cluster>::Ring),
                                  sizeof(typename WgmmaTile<Narrower, cluster>::Ring)...}));
  require_wgmma_code(wgmma_kernel<Widest, cluster, true, false>);
  require_tma_coordinates(problem);
  return std::make_unique<WgmmaPlan<cluster, Widest, Narrower...>>(problem);
}

}  // namespace stepladder::matmul
