// TensorTiles with k cut into slices, for a C of few tiles: the blocks of a cluster take the slices of
// one tile, and each adds what all have of some of its rows.
//
//     block    multiplies       gets sums of     adds and stores
//     0        slice 0 of k     rows 0 … 7       rows 0 … 7
//     1        slice 1 of k     rows 8 … 15      rows 8 … 15      …
//
// Or the slices could meet in a workspace, as split_k's do. For 64 x 512 x 784 in eight slices:
//
//     workspace   8 · 131 KB written and read again, 2.1 MB, at 4 to 5 TB/s of the second-level cache 0.5
//                 microseconds; a way there and back, 0.6; and a second kernel, which begins about 1
//                 microsecond after the first
//     cluster     each block sends 14 of its 16 KB to the other seven, and one barrier of the
//                 cluster: about 0.5 microseconds
//
// Beside some 4 microseconds of the first kernel, 2 of them for its launch and 1.5 until its factors are
// there, 2 more or half of one: where launches count, which is where slices are needed, the cluster
// makes 1.3 times the speed. Only .cu files include this.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tensor_core/tensor_tile.hpp"
#include "kernels/matmul/cuda/split_k.hpp"

namespace stepladder::matmul {

// Eight floats more in a row send the pairs of half a warp, 4 of them in each of 4 rows, to 32 banks.
template <class Tile>
struct SplitShared {
  float stages[Tile::shared_bytes / sizeof(float)];
  float parts[Tile::tile][Tile::tile + 8];  // [slices · rows, tile]: what the block gets
};

// `rows` of the tile are added by each block.
template <class Tile, bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(Tile::threads, 2)
    tensor_split_kernel(Problem p, Operands o, Split split, int rows) {
  cluster_arrive();
  const auto slice = static_cast<int>(cluster_rank());
  const Corner corner = tile_start<Tile::tile, Tile::tile>(p, blockIdx.x / split.slices);
  Tile own;
  own.template multiply<!transpose_a, transpose_b, vectors>(
      factor_a(p, o), factor_b(p, o), corner, split.first_step(slice), split.steps_of(slice));

  auto& shared = *dynamic_shared<SplitShared<Tile>>();
  cluster_wait();  // for all to have begun
  own.for_each_two([&](int i, int j, const float* two) {
    const int adder = i * split.slices / Tile::tile;
    float* const part = &shared.parts[slice * rows + i - adder * rows][j];
    *reinterpret_cast<float2*>(shared_of(static_cast<unsigned>(adder), part)) =
        make_float2(two[0], two[1]);
  });
  cluster_sync();  // all have what they add, and none reaches for another any more

  for (int e = 4 * static_cast<int>(threadIdx.x); e < rows * Tile::tile; e += 4 * Tile::threads) {
    const int i = e / Tile::tile, j = e % Tile::tile;
    float four[4] = {};
#pragma unroll 4
    for (int from = 0; from < split.slices; ++from) {
      const float4 part = *reinterpret_cast<const float4*>(&shared.parts[from * rows + i][j]);
      four[0] += part.x, four[1] += part.y, four[2] += part.z, four[3] += part.w;
    }
    store_neighbours<4, vectors>(p, o, corner.row + slice * rows + i, corner.column + j, four);
  }
}

template <class Tile>
void multiply_in_slices(const Problem& p, const Operands& o) {
  const unsigned tiles = tiles_of<Tile::tile, Tile::tile>(p);
  // Powers of two fill the 16 or 18 multiprocessors among which a cluster must find its own.
  const unsigned slices = std::bit_floor(static_cast<unsigned>(std::min(
      slices_for(p, Tile::depth, tiles, cuda_multiprocessors()), most_blocks_of_a_cluster)));
  const Split split = split_into(static_cast<int>(slices), p, Tile::depth);
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(tensor_split_kernel<Tile, transpose_a, transpose_b, vectors>,
           {tiles * slices, Tile::threads, sizeof(SplitShared<Tile>), slices}, p, o, split,
           Tile::tile / split.slices);
  };
  choose(start, p.transpose_a, p.transpose_b, in_vectors(p, o));
}

template <class Tile>
std::unique_ptr<Plan> make_tensor_split_plan(const Problem& problem, const Resources& resources) {
  require_tf32();
  require_clusters(tensor_split_kernel<Tile, false, false, true>);
  require_shared_memory(sizeof(SplitShared<Tile>));
  require_32_bit_offsets(problem);
  return plan_of<multiply_in_slices<Tile>>(problem, resources);
}

}  // namespace stepladder::matmul
