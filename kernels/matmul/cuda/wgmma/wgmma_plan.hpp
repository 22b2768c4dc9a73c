// A product on Hopper's tensor cores, from the TMA to C, and its plan:
//
//     TMA → a ring of stages in shared memory → wgmma → sums in registers → C
//
//     producer     one thread asks the TMA for box after box and waits only for empty stages
//     consumers    two warpgroups, 64 rows each of a tile of C; while the products of one run, the other
//                  fetches its rows of the first factor into registers
//     blocks       one to a multiprocessor, which takes tile after tile: the producer is in the next
//                  tile while the consumers store this one
//
// Four forms, one way. wgmma reads TF32 from shared memory only along the depth, but a factor in
// registers may come from either layout. So the first factor, which goes through registers, is the
// one that may lie across, and where that is B the product is Cᵀ = op(B)ᵀ op(A)ᵀ, stored turned. Of
// two that lie across (weight gradients) the smaller is laid out anew beforehand; so is what the TMA
// cannot read, rows that are no multiple of 16 bytes.
//
// In a cluster of blocks each takes one of the tiles of C that lie below each other, which have the second
// factor in common. Every block loads its share of each box of it, for all of them; a stage is empty when
// the consumers of all blocks have read it.
//
//     cluster of 2    block 0   tile 2 i        first factor: its own
//                     block 1   tile 2 i + 1    second factor: rows 0 … 127 from block 0, the rest from 1
//
// Sums says how a thread's sums of a tile of 128 x Sums::columns are kept and added to; see
// kernels/common/cuda/wgmma_accumulators.hpp. Only .cu files include this.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/pack.hpp"
#include "kernels/common/cuda/wgmma.hpp"
#include "kernels/common/cuda/wgmma_ring.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/matmul/cuda/operand.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/wgmma/raster.hpp"

namespace stepladder::matmul {

// What a kernel is told.
struct WgmmaWork {
  Problem problem;
  Operands operands;
  Raster tiles;                // of C, in a cluster as many at once as it has blocks
  int steps;                   // of WgmmaTile::depth along k
  std::int64_t second_extent;  // rows of each part of the second factor
  bool c_in_vectors;
};

template <class Sums, int cluster>
class WgmmaTile {
 public:
  static constexpr int warpgroup = warpgroup_threads, consumers = 2,
                       threads = (1 + consumers) * warpgroup;
  static constexpr int rows = 64 * consumers;      // x of the first factor
  static constexpr int columns = Sums::columns;    // x of the second …
  static constexpr int share = columns / cluster;  // … and those that one block loads
  static constexpr int depth = swizzled_row;       // of one stage

  struct Stage {
    // [128, 32] along the depth; else four boxes [32, 32], each of 32 x
    float first[rows * depth];
    float second[Sums::parts][columns * depth];  // [parts, columns, 32]
  };
  static constexpr int stages = (192 << 10) / sizeof(Stage);
  struct Ring {
    Stage stage[stages];
    Barrier full[stages], empty[stages];
  };

  static __device__ void initialise(Ring& ring) {
    for (Barrier& full : ring.full) full.initialise(1);
    for (Barrier& empty : ring.empty) empty.initialise(cluster * consumers * warpgroup / 32);
    publish_barriers();
  }

  template <bool first_along_depth>
  static __device__ void produce(Ring& ring, const TensorMap& first, const TensorMap& second,
                                 const WgmmaWork& work) {
    const int rank = static_cast<int>(cluster_rank());
    RingPosition<stages> at;
    for (unsigned tile = blockIdx.x / cluster; tile < work.tiles.count();
         tile += gridDim.x / cluster) {
      const auto [row, column] = work.tiles.place(tile);
      const int x = (static_cast<int>(row) * cluster + rank) * rows;
      const int y = static_cast<int>(column) * columns + rank * share;
      for (int step = 0; step < work.steps; ++step, at.advance()) {
        Stage& stage = ring.stage[at.stage];
        Barrier& full = ring.full[at.stage];
        ring.empty[at.stage].wait(at.parity ^ 1);  // passes at once in the first round
        full.arrive_and_expect(sizeof(Stage));
        if constexpr (first_along_depth)
          load_box(stage.first, first, x, step * depth, full);
        else
          for (int box = 0; box < rows; box += swizzled_row)
            load_box(stage.first + box * depth, first, step * depth, x + box, full);
        for (int part = 0; part < Sums::parts; ++part)
          load_box_for_all(stage.second[part] + rank * share * depth, second,
                           y + part * static_cast<int>(work.second_extent), step * depth, full);
      }
    }
  }

  template <bool first_along_depth, bool turned>
  static __device__ void consume(Ring& ring, const WgmmaWork& work) {
    const int thread = static_cast<int>(threadIdx.x) - warpgroup, lane = thread % 32;
    const int group = lane / 4, member = lane % 4;
    const int own_row = thread / 32 * 16 + group;  // and 8 further on
    const auto rank = static_cast<int>(cluster_rank());
    RingPosition<stages> at;
    for (unsigned tile = blockIdx.x / cluster; tile < work.tiles.count();
         tile += gridDim.x / cluster) {
      Sums sums;
      for (int step = 0; step < work.steps; ++step, at.advance()) {
        const Stage& stage = ring.stage[at.stage];
        ring.full[at.stage].wait(at.parity);
        add_products<depth>(sums, thread, stage.second[0], [&](int x, int l) {
          return element_of_first<first_along_depth>(stage, x, l);
        });
        if (lane < cluster) release(ring.empty[at.stage], lane);
      }

      sums.use();
      const auto [tile_row, tile_column] = work.tiles.place(tile);
#pragma unroll
      for (int i = 0; i < columns / 2; i += 2) {
        const std::int64_t x =
            (std::int64_t{tile_row} * cluster + rank) * rows + own_row + i / 2 % 2 * 8;
        const std::int64_t y = std::int64_t{tile_column} * columns + i / 4 * 8 + 2 * member;
        const float two[2] = {sums.value(i), sums.value(i + 1)};
        if constexpr (turned) {
          store(work.problem, work.operands, y, x, two[0]);
          store(work.problem, work.operands, y + 1, x, two[1]);
        } else if (work.c_in_vectors) {
          store_neighbours<2, true>(work.problem, work.operands, x, y, two);
        } else {
          store_neighbours<2, false>(work.problem, work.operands, x, y, two);
        }
      }
    }
  }

 private:
  static __device__ void load_box_for_all(float* to, const TensorMap& map, int row, int column,
                                          Barrier& arrived) {
    if constexpr (cluster == 1)
      load_box(to, map, row, column, arrived);
    else
      load_box_for((1U << cluster) - 1, to, map, row, column, arrived);
  }
  static __device__ void release(Barrier& empty, int block) {
    if constexpr (cluster == 1)
      empty.arrive();
    else
      empty.arrive_at(static_cast<unsigned>(block));
  }

  template <bool along_depth>
  static __device__ float element_of_first(const Stage& stage, int x, int l) {
    if constexpr (along_depth) return stage.first[swizzled(x, l)];
    const float* const box = stage.first + x / swizzled_row * swizzled_row * depth;
    return box[swizzled(l, x % swizzled_row)];
  }
};

template <class Sums, int cluster, bool first_along_depth, bool turned>
__global__ void __launch_bounds__(WgmmaTile<Sums, cluster>::threads, 1)
    wgmma_kernel([[maybe_unused]] const __grid_constant__ TensorMap first,
                 [[maybe_unused]] const __grid_constant__ TensorMap second,
                 [[maybe_unused]] const __grid_constant__ WgmmaWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // for older GPUs there is nothing: plans refuse them
  using Tile = WgmmaTile<Sums, cluster>;
  auto& ring = *dynamic_shared<typename Tile::Ring>();
  if (threadIdx.x == 0) Tile::initialise(ring);
  if constexpr (cluster == 1)
    __syncthreads();
  else
    cluster_sync();
  // The 65536 registers are registers_at_start to a thread; (40 + 2 · 232) · 128 are not more.
  if (threadIdx.x < Tile::warpgroup) {
    keep_registers<40>();
    if (threadIdx.x == 0) Tile::template produce<first_along_depth>(ring, first, second, work);
  } else {
    take_registers<232>();
    Tile::template consume<first_along_depth, turned>(ring, work);
  }
  if constexpr (cluster > 1) cluster_sync();  // no block ends while others write to it
#endif
}

// How a factor gets to the TMA: as it lies, or laid out anew, in every run, into a workspace.
template <int parts>
class WgmmaSource {
 public:
  WgmmaSource(const Factor& factor, bool anew)
      : along_depth_(factor.along_depth || anew),
        pitch_((factor.depth + 3) / 4 * 4),
        space_(device_memory(anew ? parts * factor.extent * pitch_ * sizeof(float) : 0)) {}

  bool along_depth() const { return along_depth_; }

  // For boxes of `tile` x along the depth, or of 32 x across it.
  TensorMap prepare(const Factor& f, int tile, OnTheWay numbers) const {
    if (auto* const to = static_cast<float*>(space_.get()); to != nullptr) {
      turn<parts>(f, to, pitch_);
      return tensor_map(to, parts * f.extent, f.depth, pitch_, tile, numbers);
    }
    if (along_depth_) return tensor_map(f.at, f.extent, f.depth, f.depth, tile, numbers);
    return tensor_map(f.at, f.depth, f.extent, f.extent, swizzled_row, numbers);
  }

 private:
  bool along_depth_;
  std::int64_t pitch_;
  DeviceMemory space_;  // [parts, extent, pitch]
};

// Tiles are as wide as Wide's, or as Narrow's where that takes less time.
template <class Wide, class Narrow, int cluster>
class WgmmaPlan final : public Plan {
 public:
  explicit WgmmaPlan(const Problem& problem)
      : p_(problem),
        turned_(is_turned(factor_a(p_, {}), factor_b(p_, {}))),
        first_(first_of({}), !has_aligned_rows(first_of({}))),
        second_(second_of({}), !can_be_second(second_of({}))),
        is_wide_(time<Wide>() <= time<Narrow>()) {}

  void run(const Operands& o) override {
    const auto start = [&]<bool is_wide, bool first_along_depth, bool turned>() {
      using Sums = std::conditional_t<is_wide, Wide, Narrow>;
      using Tile = WgmmaTile<Sums, cluster>;
      const TensorMap first = first_.prepare(first_of(o), Tile::rows, Sums::on_the_way);
      const TensorMap second = second_.prepare(second_of(o), Tile::share, Sums::on_the_way);
      const WgmmaWork work{p_,
                           o,
                           tiles<Sums>(),
                           static_cast<int>((p_.k + Tile::depth - 1) / Tile::depth),
                           second_of(o).extent,
                           in_vectors(o.c, p_.n)};
      launch(wgmma_kernel<Sums, cluster, first_along_depth, turned>,
             {std::min(work.tiles.count(), clusters_) * cluster, Tile::threads,
              sizeof(typename Tile::Ring), cluster == 1 ? 0 : cluster},
             first, second, work);
    };
    choose(start, is_wide_, first_.along_depth(), turned_);
  }

 private:
  static bool has_aligned_rows(const Factor& factor) { return factor.row() % 4 == 0; }
  static bool can_be_second(const Factor& factor) {
    return Wide::parts == 1 && factor.along_depth && has_aligned_rows(factor);
  }
  // Whether B is the first factor.
  static bool is_turned(const Factor& a, const Factor& b) {
    return !can_be_second(b) && (can_be_second(a) || a.extent < b.extent);
  }
  Factor first_of(const Operands& o) const { return turned_ ? factor_b(p_, o) : factor_a(p_, o); }
  Factor second_of(const Operands& o) const { return turned_ ? factor_a(p_, o) : factor_b(p_, o); }

  template <class Sums>
  Raster tiles() const {
    using Tile = WgmmaTile<Sums, cluster>;
    return {blocks_for(first_of({}).extent, cluster * Tile::rows),
            blocks_for(second_of({}).extent, Tile::columns)};
  }
  template <class Sums>
  unsigned time() const {  // that all blocks take, in columns
    return blocks_for(tiles<Sums>().count(), clusters_) * unsigned{Sums::columns};
  }

  Problem p_;
  unsigned clusters_ = static_cast<unsigned>(cuda_multiprocessors() / cluster);  // at once
  bool turned_;
  WgmmaSource<1> first_;
  WgmmaSource<Wide::parts> second_;
  bool is_wide_;
};

template <class Wide, class Narrow, int cluster = 1>
std::unique_ptr<Plan> make_wgmma_plan(const Problem& problem, const Resources&) {
  require_tf32();
  require_hopper();
  require_shared_memory(std::max(sizeof(typename WgmmaTile<Wide, cluster>::Ring),
                                 sizeof(typename WgmmaTile<Narrow, cluster>::Ring)));
  require_wgmma_code(wgmma_kernel<Wide, cluster, true, false>);
  return std::make_unique<WgmmaPlan<Wide, Narrow, cluster>>(problem);
}

}  // namespace stepladder::matmul
