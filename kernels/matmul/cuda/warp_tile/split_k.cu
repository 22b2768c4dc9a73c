// warp_tile with split-K, for the thin products of a small network. A C of 64 x 512 has four tiles,
// so 128 of 132 multiprocessors would be idle while four step along all of K. Blocks compute slices
// of K and write partials to a workspace; a second kernel adds them in a fixed order, so every run
// gives the same bits (atomic additions would not). Expected gain over warp_tile: almost the number
// of slices where C has few tiles, none where it has more tiles than the GPU multiprocessors. The
// workspace costs 8 bytes of traffic per element and slice.
//
//     slice 0, slice 1, … of K → workspace [slices, m, n] → C [m, n]
#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/cuda/reduce_partials.hpp"
#include "kernels/matmul/cuda/split_k.hpp"
#include "kernels/matmul/cuda/tile_grid.hpp"
#include "kernels/matmul/cuda/warp_tile/warp_tile.hpp"

namespace stepladder::matmul {
namespace {

constexpr int tile = WarpTile::tile;

// With more than one slice, o.c is the workspace and p has no epilogue.
template <bool transpose_a, bool transpose_b, bool vectors>
__global__ void __launch_bounds__(WarpTile::threads, 2)
    multiply_kernel(Problem p, Operands o, SplitK split) {
  const TileOrigin origin = tile_origin<tile, tile>(p, blockIdx.x);
  const int slice = static_cast<int>(blockIdx.y);
  WarpTile block_tile;
  block_tile.multiply<!transpose_a, transpose_b, vectors>(
      operand_a(p, o), operand_b(p, o), origin, split.first_step(slice), split.steps_of(slice));
  o.c += slice * p.m * p.n;
  block_tile.for_each_four([&](int i, int j, const float* four) {
    store_contiguous<4, vectors>(p, o, origin.row + i, origin.column + j, four);
  });
}

// partials: [slices, m, n]
__global__ void reduce_kernel(Problem p, Operands o, const float* partials, int slices) {
  const std::int64_t t = thread_index(), count = p.m * p.n;
  if (t >= count) return;
  store(p, o, t / p.n, t % p.n, reduce_partials(partials, slices, count, t));
}

class SplitKPlan final : public Plan {
 public:
  explicit SplitKPlan(const Problem& problem)
      : p_(problem),
        split_(split_k(
            slices_for(p_, WarpTile::tile_k, tile_count<tile, tile>(p_), cuda_multiprocessors()),
            p_, WarpTile::tile_k)),
        partials_(
            device_memory(split_.slices == 1 ? 0 : split_.slices * p_.m * p_.n * sizeof(float))) {}

  void run(const Operands& o) override {
    float* const partials = static_cast<float*>(partials_.get());
    Problem product = p_;
    Operands to = o;
    if (partials != nullptr) {
      product.epilogue = Epilogue::none;
      to.c = partials;
    }
    const auto start = [&]<bool transpose_a, bool transpose_b, bool vectors>() {
      launch(multiply_kernel<transpose_a, transpose_b, vectors>,
             {dim3(tile_count<tile, tile>(p_), split_.slices), WarpTile::threads}, product, to,
             split_);
    };
    dispatch(start, p_.transpose_a, p_.transpose_b, tile_allows_vectors(p_, to));
    if (partials != nullptr)
      launch(reduce_kernel, {blocks_for(p_.m * p_.n), block_threads}, p_, o, partials,
             split_.slices);
  }

 private:
  Problem p_;
  SplitK split_;
  DeviceMemory partials_;  // [slices, m, n]; none for one slice
};

std::unique_ptr<Plan> make(const Problem& problem, const Resources&) {
  require_compute_capability(80);
  require_32_bit_offsets(problem);
  return std::make_unique<SplitKPlan>(problem);
}

constexpr VariantInfo info{
    .name = "split_k",
    .technique = Technique::cuda,
    .builds_on = "warp_tile",
    .adds = "split-K: slices of K fill the GPU where C has few tiles",
    .idea = Idea::threads,
    .place = Place::cuda,
    .epilogue = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::matmul
