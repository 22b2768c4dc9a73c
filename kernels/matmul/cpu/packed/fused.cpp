// Epilogue fusion: bias and ReLU are applied to the tile while it is in registers, which saves
// reading and writing C once more: 8 m n bytes of cache traffic beside 2 m n k FLOPs. The gain is
// large only where k is small:
//
//   separate pass / product = (8 m n / bandwidth) / (2 m n k / peak) = 4 peak / (k bandwidth)
//
// With 64 FLOPs and 32 bytes of L2 per cycle that is 8 / k: 1 % at k = 784.
#include "kernels/common/cpu/simd.hpp"
#include "kernels/matmul/cpu/packed/packed_grid.hpp"

namespace stepladder::matmul {

template class PackedProduct<true>;  // compiled here

namespace {

std::unique_ptr<Plan> fused(const Problem& problem, const Resources& resources) {
  if (problem.epilogue == Epilogue::none)
    throw Unsupported("there is no bias or ReLU to fuse; packed_openmp computes this product");
  return std::make_unique<PackedGrid<true>>(problem, resources);
}

constexpr VariantInfo info{
    .name = "fused",
    .technique = Technique::openmp,
    .builds_on = "packed_openmp",
    .adds = "bias and ReLU applied to the tile before it is stored",
    .idea = Idea::fusion,
    .isa = build_isa,
    .threaded = true,
    .epilogue = true,
};

const Registration registration{info, fused};

}  // namespace
}  // namespace stepladder::matmul
