// Split-K for backward_weights. dw has few elements, and each is a sum over all pixels of the
// batch: for 64 x 32 filters of 5 x 5, implicit_gemm has 26 blocks of its smallest tile, a fifth of
// an H200's multiprocessors. Here the pixels are divided into slices. Each slice has blocks and a
// partial dw of its own, and a second kernel adds the partials. Without atomics and in a fixed
// order, every run gives the same bits. The extra traffic is 8 bytes per weight and slice.
//
//     pixels   |  slice 0  |  slice 1  |  slice 2  |  …        dw = dw 0 + dw 1 + dw 2 + …
//                  dw 0        dw 1        dw 2
//
// Expected: 4 to 10 times implicit_gemm on the networks' layers, in proportion to the
// multiprocessors that it leaves idle; more for a first layer, whose dw is one tile; near 1 where
// dw is large, as in AlexNet.
#include <algorithm>

#include "kernels/convolution/cuda/add_partials.hpp"
#include "kernels/convolution/cuda/implicit_gemm/backward_weights.hpp"

namespace stepladder::convolution {
namespace {

class SplitKPlan final : public Plan {
 public:
  explicit SplitKPlan(const Problem& p) : gemm_(p), w_count_(p.w_count()) {
    // Two waves of blocks of the middle tile, but slices long enough to be worth adding.
    constexpr std::int64_t tile_rows = 64, tile_columns = 64, waves = 2, min_pixels = 256;
    const std::int64_t blocks = p.groups * std::int64_t{blocks_for(p.group_out(), tile_rows)} *
                                blocks_for(p.w_count() / p.out_channels, tile_columns);
    const std::int64_t wanted = waves * cuda_multiprocessors() / blocks;
    gemm_.set_splits(static_cast<int>(std::clamp<std::int64_t>(
        wanted, 1, std::max<std::int64_t>(1, gemm_.pixels() / min_pixels))));
    partials_ = device_memory(sizeof(float) * static_cast<std::size_t>(gemm_.splits() * w_count_));
  }

  void run(const Operands& o) override {
    auto* partials = static_cast<float*>(partials_.get());
    gemm_.run(o, partials);
    add_partials(partials, gemm_.splits(), w_count_, o.w);
  }

 private:
  BackwardWeightsGemm<FmaTiles> gemm_;
  std::int64_t w_count_;
  DeviceMemory partials_;  // [splits, w_count]
};

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  if (p.direction != Direction::backward_weights)
    throw Unsupported(
        "splits the sum of backward_weights only; other directions have enough blocks");
  require_int_indices(p);
  return std::make_unique<SplitKPlan>(p);
}

constexpr VariantInfo info{
    .name = "implicit_gemm_split_k",
    .technique = Technique::cuda,
    .builds_on = "implicit_gemm",
    .adds = "split-K for backward_weights: slices of the pixels in parallel, then added in order",
    .idea = Idea::threads,
    .nhwc = true,
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
