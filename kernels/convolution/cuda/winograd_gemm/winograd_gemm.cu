// Winograd convolution on tiles of 8 x 8 or 6 x 6 elements, in all directions. A 5 x 5 filter needs
// 64 products for a tile of 4 x 4 outputs, where the definition has 400; a 3 x 3 filter needs 64
// for 6 x 6, where it has 324. One batched GEMM, with a matrix product per tile position and group,
// sums over the channels:
//
//     images  -> [positions, source channels, tiles]   ─┐
//     filters -> [positions, source, target channels]  ─┴─> [positions, target channels, tiles]
//                                                           -> images
//
// backward_data is the same with the filters rotated by 180°. In backward_weights tiles of dy
// replace the filters: [positions, out, tiles] · [positions, tiles, in], with split-K over the
// tiles where there are few blocks.
//
// Expected over implicit_gemm on an H200: 1.5 to 3.5 times, less than 1 with one input channel (by
// layer in the README). Errors are larger, with the bound of the CPU's winograd.cpp.
#include <algorithm>

#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cuda/winograd_gemm/batched_gemm.hpp"
#include "kernels/convolution/cuda/winograd_gemm/tiles.hpp"
#include "kernels/convolution/winograd_size.hpp"

namespace stepladder::convolution {
namespace {

// Limits the workspace to a sixteenth of the device's memory: larger batches are processed in
// passes of equal size.
int images_per_pass(const Problem& p, std::int64_t floats_per_image) {
  const std::int64_t most = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(cuda_memory_bytes() / 16 / sizeof(float)) / floats_per_image);
  const std::int64_t passes = ceil_div(p.batch, most);
  return static_cast<int>(ceil_div(p.batch, passes));
}

DeviceMemory matrices(const PositionMatrices& m, std::int64_t count) {
  return device_memory(sizeof(float) * static_cast<std::size_t>(count * m.size()));
}

Planes source_planes(const CudaCorrelation& c) {
  return {c.rows.source, c.columns.source, c.rows.origin, c.columns.origin, c.source};
}
Planes target_planes(const CudaCorrelation& c) {
  return {c.rows.target, c.columns.target, 0, 0, c.target};
}

float* floats(const DeviceMemory& memory) { return static_cast<float*>(memory.get()); }

Grid threads_for(const PositionMatrices& m) { return {blocks_for(m.size()), block_threads}; }
Grid threads_for(const TilePatches& patches) {
  return {blocks_for(patches.threads()), block_threads};
}

// Common to all directions: images are divided into tiles of outputs x outputs pixels.
template <int pairs, int kernel>
class WinogradGemmPlan : public Plan {
 protected:
  static constexpr int tile = WinogradPoints<float, pairs>::tile, positions = tile * tile;
  static constexpr int outputs = tile - kernel + 1;

  WinogradGemmPlan(const Problem& p, const CudaCorrelation& c)
      : c_(c),
        tiles_(c.rows.target, c.columns.target, outputs),
        images_(images_per_pass(p, std::int64_t{positions} * c.groups *
                                       (c.source_channels + c.target_channels) * tiles_.per_image)),
        sources_(c.groups * c.source_channels, std::int64_t{images_} * tiles_.per_image),
        targets_(c.groups * c.target_channels, std::int64_t{images_} * tiles_.per_image),
        source_patches_(sources_, c.channels_last),
        target_patches_(targets_, c.channels_last),
        source_memory_(matrices(sources_, positions)),
        target_memory_(matrices(targets_, positions)) {}

  // Calls work(source, target, images) for each pass, with its first image and number of images.
  template <class Work>
  void for_images(float* source, float* target, const Work& work) const {
    for (int first = 0; first < c_.batch; first += images_)
      work(source + std::int64_t{first} * c_.source.image,
           target + std::int64_t{first} * c_.target.image, std::min(images_, c_.batch - first));
  }

  void transform_source(const float* source, int images) const {
    launch(planes_to_tiles_kernel<InputTransform<pairs>>, threads_for(source_patches_), sources_,
           source_patches_, tiles_, source_planes(c_), images, source, floats(source_memory_));
  }

  CudaCorrelation c_;
  ImageTiles tiles_;
  int images_;                          // per pass
  PositionMatrices sources_, targets_;  // [channels, tiles]
  TilePatches source_patches_, target_patches_;
  DeviceMemory source_memory_, target_memory_;
};

template <int pairs, int kernel>
class WinogradGemmCorrelation final : public WinogradGemmPlan<pairs, kernel> {
  using Base = WinogradGemmPlan<pairs, kernel>;

 public:
  explicit WinogradGemmCorrelation(const Problem& p)
      : Base(p, correlations(p).front()),
        forward_(p.direction == Direction::forward),
        filters_(c_.groups * c_.source_channels, c_.target_channels),
        filter_memory_(matrices(filters_, Base::positions)) {}

  void run(const Operands& o) override {
    launch(filters_to_matrices_kernel<FilterTransform<pairs, kernel>>, threads_for(filters_),
           filters_, c_, o.w, floats(filter_memory_));
    const BatchedGemm gemm{.m = c_.target_channels,
                           .n = targets_.columns,
                           .k = c_.source_channels,
                           .batch = Base::positions * c_.groups,
                           .splits = 1,
                           .accumulate = false};
    this->for_images(
        forward_ ? o.x : o.y, forward_ ? o.y : o.x,
        [&](const float* source, float* target, int images) {
          this->transform_source(source, images);
          batched_gemm<false>(gemm, floats(filter_memory_), floats(this->source_memory_),
                              floats(this->target_memory_));
          launch(tiles_to_planes_kernel<OutputTransform<pairs, Base::outputs>>,
                 threads_for(this->target_patches_), targets_, this->target_patches_, this->tiles_,
                 target_planes(c_), images, floats(this->target_memory_), target);
        });
  }

 private:
  using Base::c_, Base::targets_;
  bool forward_;
  PositionMatrices filters_;  // [source channels, target channels]
  DeviceMemory filter_memory_;
};

template <int pairs, int kernel>
class WinogradGemmBackwardWeights final : public WinogradGemmPlan<pairs, kernel> {
  using Base = WinogradGemmPlan<pairs, kernel>;

 public:
  explicit WinogradGemmBackwardWeights(const Problem& p)
      : Base(p, from_forward(p)),
        filters_(c_.groups * c_.target_channels, c_.source_channels),
        gemm_{.m = c_.target_channels,
              .n = c_.source_channels,
              .k = targets_.columns,
              .batch = Base::positions * c_.groups,
              .splits = choose_splits(),
              .accumulate = false},
        partials_(matrices(filters_, std::int64_t{gemm_.splits} * Base::positions)) {}

  void run(const Operands& o) override {
    BatchedGemm gemm = gemm_;
    this->for_images(o.x, o.y, [&](const float* x, const float* dy, int images) {
      this->transform_source(x, images);
      launch(planes_to_tiles_kernel<FilterTransform<pairs, Base::outputs>>,
             threads_for(this->target_patches_), targets_, this->target_patches_, this->tiles_,
             target_planes(c_), images, dy, floats(this->target_memory_));
      batched_gemm<true>(gemm, floats(this->target_memory_), floats(this->source_memory_),
                         floats(partials_));
      gemm.accumulate = true;
    });
    launch(matrices_to_filters_kernel<OutputTransform<pairs, kernel>>, threads_for(filters_),
           filters_, c_, gemm_.splits, floats(partials_), o.w);
  }

 private:
  using Base::c_, Base::targets_;

  static CudaCorrelation from_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  // Few channels make few blocks with a large K. The partials may take at most half the memory of
  // the transformed tiles, and a slice has at least min_tiles tiles.
  int choose_splits() const {
    constexpr std::int64_t min_tiles = 256, max_splits = 16;
    const std::int64_t tiles = targets_.columns, in = c_.source_channels, out = c_.target_channels;
    return static_cast<int>(std::clamp<std::int64_t>(
        std::min(tiles * (in + out) / (2 * in * out), tiles / min_tiles), 1, max_splits));
  }

  PositionMatrices filters_;  // [out channels, in channels]
  BatchedGemm gemm_;
  DeviceMemory partials_;  // [splits, positions, groups, out channels, in channels]
};

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  require_int_indices(p);
  require_gemm_grid(std::max(p.group_in(), p.group_out()), 1);
  return with_fewest_products(p, [&]<int pairs, int kernel>() -> std::unique_ptr<Plan> {
    if (p.direction == Direction::backward_weights)
      return std::make_unique<WinogradGemmBackwardWeights<pairs, kernel>>(p);
    return std::make_unique<WinogradGemmCorrelation<pairs, kernel>>(p);
  });
}

constexpr VariantInfo info{
    .name = "winograd_gemm",
    .technique = Technique::cuda,
    .builds_on = "implicit_gemm",
    .adds = "Winograd: 4 to 6 times fewer products, one batched GEMM over the tile positions",
    .idea = Idea::algorithm,
    .nhwc = true,
    .place = Place::cuda,
    .bound_factor = 512,
    .normwise = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
