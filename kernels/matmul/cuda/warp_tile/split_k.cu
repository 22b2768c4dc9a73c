// warp_tile for the thin products of a small network. A C of 64 x 512 is four tiles: 128 of 132
// multiprocessors would stand idle while four walk along the whole of k. So k is cut too: the
// blocks of a slice of k write their sums to a workspace of their own, and a second kernel adds the
// slices, always in the same order, so that every run gives the same bits (atomic additions would
// not). Expected gain over warp_tile: near to the number of slices where C has few tiles, none
// where it has more than the GPU multiprocessors; the workspace costs 8 bytes for each sum and
// slice.
//
//     slice 0, slice 1, … of k → workspace [slices, m, n] → C [m, n]
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/partial_sum.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/warp_tile/warp_tile.hpp"
#include "kernels/matmul/cuda/split_k.hpp"

namespace stepladder::matmul {
namespace {

constexpr int tile = WarpTile::tile;

// o.c is the workspace, and p without an epilogue, where there is more than one slice.
template <bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(WarpTile::threads, 2)
    multiply_kernel(Problem p, Operands o, Split split) {
  const Corner corner = tile_start<tile, tile>(p, blockIdx.x);
  const int slice = static_cast<int>(blockIdx.y);
  WarpTile sums;
  sums.multiply<!transpose_a, transpose_b, vectors>(factor_a(p, o), factor_b(p, o), corner,
                                                    split.first_step(slice), split.steps_of(slice));
  o.c += slice * p.m * p.n;
  sums.for_each_four([&](int i, int j, const float* four) {
    store_neighbours<4, vectors>(p, o, corner.row + i, corner.column + j, four);
  });
}

// parts: [slices, m, n]
__global__ void add_kernel(Problem p, Operands o, const float* parts, int slices) {
  const std::int64_t t = thread_index(), count = p.m * p.n;
  if (t >= count) return;
  store(p, o, t / p.n, t % p.n, sum_of_parts(parts, slices, count, t));
}

class SplitPlan final : public Plan {
 public:
  explicit SplitPlan(const Problem& problem)
      : p_(problem),
        split_(split_into(
            slices_for(p_, WarpTile::depth, tiles_of<tile, tile>(p_), cuda_multiprocessors()), p_,
            WarpTile::depth)),
        parts_(
            device_memory(split_.slices == 1 ? 0 : split_.slices * p_.m * p_.n * sizeof(float))) {}

  void run(const Operands& o) override {
    float* const parts = static_cast<float*>(parts_.get());
    Problem product = p_;
    Operands to = o;
    if (parts != nullptr) {
      product.epilogue = Epilogue::none;
      to.c = parts;
    }
    const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
      launch(multiply_kernel<transpose_a, transpose_b, vectors>,
             {dim3(tiles_of<tile, tile>(p_), split_.slices), WarpTile::threads}, product, to,
             split_);
    };
    choose(start, p_.transpose_a, p_.transpose_b, tile_in_vectors(p_, to));
    if (parts != nullptr)
      launch(add_kernel, {blocks_for(p_.m * p_.n), block_threads}, p_, o, parts, split_.slices);
  }

 private:
  Problem p_;
  Split split_;
  DeviceMemory parts_;  // [slices, m, n]; none for one slice
};

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_compute_capability(80);
  require_32_bit_offsets(problem);
  return std::make_unique<SplitPlan>(problem);
}

constexpr VariantInfo info{
    .name = "split_k",
    .technique = Technique::cuda,
    .builds_on = "warp_tile",
    .adds = "k is cut into slices, so that a C of few tiles still fills the GPU",
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul
