// The plan of a rung whose blocks compute a TensorTile each. Only .cu files include this.
#pragma once

#include "kernels/common/cuda/plan.hpp"
#include "kernels/matmul/cuda/store.hpp"
#include "kernels/matmul/cuda/tensor_core/tensor_tile.hpp"

namespace stepladder::matmul {

// `blocks` of them are to fit on a multiprocessor.
template <class Tile, int blocks, bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(Tile::threads, blocks) tensor_tile_kernel(Problem p, Operands o) {
  const Corner corner = tile_start<Tile::tile, Tile::tile>(p, blockIdx.x);
  const int steps = static_cast<int>((p.k + Tile::depth - 1) / Tile::depth);
  Tile sums;
  sums.template multiply<!transpose_a, transpose_b, vectors>(factor_a(p, o), factor_b(p, o), corner,
                                                             0, steps);
  sums.for_each_two([&](int i, int j, const float* two) {
    store_neighbours<2, vectors>(p, o, corner.row + i, corner.column + j, two);
  });
}

template <class Tile, int blocks>
void multiply_on_tensor_cores(const Problem& p, const Operands& o) {
  const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
    launch(tensor_tile_kernel<Tile, blocks, transpose_a, transpose_b, vectors>,
           {tiles_of<Tile::tile, Tile::tile>(p), Tile::threads, Tile::shared_bytes}, p, o);
  };
  choose(start, p.transpose_a, p.transpose_b, in_vectors(p, o));
}

template <class Tile, int blocks>
std::unique_ptr<Plan> make_tensor_plan(const Problem& problem, const Resources& resources) {
  require_tf32();
  require_shared_memory(Tile::shared_bytes);
  require_32_bit_offsets(problem);
  return plan_of<multiply_on_tensor_cores<Tile, blocks>>(problem, resources);
}

}  // namespace stepladder::matmul
