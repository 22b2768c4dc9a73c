// The sum of backward_weights in parts. dw has few elements, each of them a sum over all pixels of the
// batch: for 64 x 32 filters of 5 x 5 implicit_gemm has 26 blocks of its smallest tile, a fifth of an
// H200's multiprocessors. Here the pixels are cut into parts, each summed by blocks of its own into a
// dw of its own, and a second kernel adds these. No atomics: the parts are added in their order, so
// that a result repeats bit for bit. The extra traffic is 8 bytes per weight and part.
//
//     pixels   |  part 0  |  part 1  |  part 2  |  …        dw = dw 0 + dw 1 + dw 2 + …
//                 dw 0       dw 1       dw 2
//
// Expected: as many times implicit_gemm as it lacks blocks, 4 to 10 on the networks' layers and more
// for a first layer, whose dw is one tile; near 1 where dw is large, as in AlexNet.
#include <algorithm>

#include "kernels/convolution/cuda/add_partials.hpp"
#include "kernels/convolution/cuda/implicit_gemm/backward_weights.hpp"

namespace stepladder::convolution {
namespace {

class SplitPlan final : public Plan {
 public:
  explicit SplitPlan(const Problem& p) : gradient_(p), w_count_(p.w_count()) {
    // Two rounds of blocks of the middle tile, unless parts became shorter than they cost to add.
    constexpr std::int64_t tile_rows = 64, tile_columns = 64, rounds = 2, least_pixels = 256;
    const std::int64_t blocks = p.groups * std::int64_t{blocks_for(p.group_out(), tile_rows)} *
                                blocks_for(p.w_count() / p.out_channels, tile_columns);
    const std::int64_t wanted = rounds * cuda_multiprocessors() / blocks;
    gradient_.split(static_cast<int>(std::clamp<std::int64_t>(
        wanted, 1, std::max<std::int64_t>(1, gradient_.pixels() / least_pixels))));
    parts_ = device_memory(sizeof(float) * static_cast<std::size_t>(gradient_.parts() * w_count_));
  }

  void run(const Operands& o) override {
    auto* parts = static_cast<float*>(parts_.get());
    gradient_.run(o, parts);
    add_parts(parts, gradient_.parts(), w_count_, o.w);
  }

 private:
  WeightGradient<FmaTiles> gradient_;
  std::int64_t w_count_;
  DeviceMemory parts_;
};

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  if (p.direction != Direction::backward_weights)
    throw Unsupported("cuts the sum of backward_weights only; the others have blocks enough");
  require_int_indices(p);
  return std::make_unique<SplitPlan>(p);
}

constexpr VariantInfo info{
    .name = "implicit_gemm_split_k",
    .technique = Technique::cuda,
    .builds_on = "implicit_gemm",
    .adds = "backward_weights: the sum over pixels in parts that run side by side, added in order",
    .layouts = "nhwc",
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
