// TensorTiles with split-K, for a C of few tiles: the blocks of a cluster compute the slices of one
// tile, and each reduces and stores some rows of it.
//
//     block    multiplies       receives and reduces
//     0        slice 0 of K     rows 0 … 7
//     1        slice 1 of K     rows 8 … 15              …
//
// The alternative is a workspace, as in split_k. For 64 x 512 x 784 in eight slices that takes 2 us
// more: 8 · 131 KB written and read, 2.1 MB at the 4 to 5 TB/s of L2, are 0.5 us, a round trip 0.6,
// and a second kernel starts about 1 us after the first. In a cluster each block sends 14 of its 16
// KB to the other seven, and one cluster barrier follows: about 0.5 us. The first kernel takes some
// 4 us, so the cluster is 1.3 times as fast. Only .cu files include this.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/split_k.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tensor_core/tensor_tile.hpp"

namespace stepladder::matmul {

// The padding of eight floats sends the pairs of a half-warp, 4 in each of 4 rows, to 32 banks.
template <class Tile>
struct SplitKSharedStorage {
  float stages[Tile::shared_bytes / sizeof(float)];
  float partials[Tile::tile][Tile::tile + 8];  // [slices · rows, tile], from all blocks
};

// Each block reduces `rows` rows of the tile.
template <class Tile, bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(Tile::threads, 2)
    tensor_split_k_kernel(Problem p, Operands o, SplitK split, int rows) {
  cluster_arrive();
  const auto slice = static_cast<int>(cluster_rank());
  const TileOrigin origin = tile_origin<Tile::tile, Tile::tile>(p, blockIdx.x / split.slices);
  Tile block_tile;
  block_tile.template multiply<!transpose_a, transpose_b, vectors>(
      operand_a(p, o), operand_b(p, o), origin, split.first_step(slice), split.steps_of(slice));

  auto& shared = *dynamic_shared<SplitKSharedStorage<Tile>>();
  cluster_wait();  // all blocks are running
  block_tile.for_each_pair([&](int i, int j, const float* pair) {
    const int owner = i * split.slices / Tile::tile;
    float* const to = &shared.partials[slice * rows + i - owner * rows][j];
    *reinterpret_cast<float2*>(map_shared_rank(to, static_cast<unsigned>(owner))) =
        make_float2(pair[0], pair[1]);
  });
  cluster_sync();  // the partials are complete, and no block accesses another's memory any more

  for (int e = 4 * static_cast<int>(threadIdx.x); e < rows * Tile::tile; e += 4 * Tile::threads) {
    const int i = e / Tile::tile, j = e % Tile::tile;
    float four[4] = {};
#pragma unroll 4
    for (int from = 0; from < split.slices; ++from) {
      const float4 part = *reinterpret_cast<const float4*>(&shared.partials[from * rows + i][j]);
      four[0] += part.x, four[1] += part.y, four[2] += part.z, four[3] += part.w;
    }
    store_contiguous<4, vectors>(p, o, origin.row + slice * rows + i, origin.column + j, four);
  }
}

template <class Tile>
void multiply_split_k(const Problem& p, const Operands& o) {
  const unsigned tiles = tile_count<Tile::tile, Tile::tile>(p);
  // Clusters of a power of two fill the 16 or 18 multiprocessors of a GPC.
  const unsigned slices = std::bit_floor(static_cast<unsigned>(std::min(
      slices_for(p, Tile::tile_k, tiles, cuda_multiprocessors()), max_portable_cluster_size)));
  const SplitK split = split_k(static_cast<int>(slices), p, Tile::tile_k);
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(tensor_split_k_kernel<Tile, transpose_a, transpose_b, vectors>,
           {tiles * slices, Tile::threads, sizeof(SplitKSharedStorage<Tile>), slices}, p, o, split,
           Tile::tile / split.slices);
  };
  dispatch(start, p.transpose_a, p.transpose_b, allows_vectors(p, o));
}

template <class Tile>
std::unique_ptr<Plan> make_tensor_split_k_plan(const Problem& problem, const Resources& resources) {
  require_tf32();
  require_clusters(tensor_split_k_kernel<Tile, false, false, true>);
  require_shared_memory(sizeof(SplitKSharedStorage<Tile>));
  require_32_bit_offsets(problem);
  return plan_of<multiply_split_k<Tile>>(problem, resources);
}

}  // namespace stepladder::matmul
