// The plan of variants whose blocks compute a TensorTile each. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tensor_core/tensor_tile.hpp"

namespace stepladder::matmul {

// `blocks`: resident blocks per multiprocessor.
template <class Tile, int blocks, bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(Tile::threads, blocks) tensor_tile_kernel(Problem p, Operands o) {
  const TileOrigin origin = tile_origin<Tile::tile, Tile::tile>(p, blockIdx.x);
  const int steps = static_cast<int>(ceil_div(p.k, Tile::tile_k));
  Tile block_tile;
  block_tile.template multiply<!transpose_a, transpose_b, vectors>(operand_a(p, o), operand_b(p, o),
                                                                   origin, 0, steps);
  block_tile.for_each_pair([&](int i, int j, const float* pair) {
    store_contiguous<2, vectors>(p, o, origin.row + i, origin.column + j, pair);
  });
}

template <class Tile, int blocks>
void multiply_on_tensor_cores(const Problem& p, const Operands& o) {
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(tensor_tile_kernel<Tile, blocks, transpose_a, transpose_b, vectors>,
           {tile_count<Tile::tile, Tile::tile>(p), Tile::threads, Tile::shared_bytes}, p, o);
  };
  dispatch(start, p.transpose_a, p.transpose_b, allows_vectors(p, o));
}

template <class Tile, int blocks>
std::unique_ptr<Plan> make_tensor_plan(const Problem& problem, const Resources& resources) {
  require_tf32();
  require_shared_memory(Tile::shared_bytes);
  require_32_bit_offsets(problem);
  return plan_of<multiply_on_tensor_cores<Tile, blocks>>(problem, resources);
}

}  // namespace stepladder::matmul
