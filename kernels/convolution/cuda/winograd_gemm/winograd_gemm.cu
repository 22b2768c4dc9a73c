// Fewer multiplications: Winograd's convolution on tiles of 8 x 8 or 6 x 6 elements, in all three
// directions. A 5 x 5 kernel needs 64 products for a tile of 4 x 4 outputs where the definition has 400, a
// 3 x 3 kernel 64 for 6 x 6 where it has 324. The rest are transforms, which the channels share: of each
// image once for all filters, of each filter once for all images. In between stand matrix products, one
// for each position of the tile and each group, which are a single launch:
//
//     images  -> [positions, source channels, tiles]  ─┐
//     filters -> [positions, source channels, target]  ┴─> [positions, target channels, tiles] -> images
//
// backward_data is the same with the filters turned round. In backward_weights a tile of dy takes the
// filter's place: [positions, out, tiles] · [positions, tiles, in], with the sum over the tiles in parts
// where there are few blocks.
//
// Expected, on an H200 against implicit_gemm, both at 60 % of the FMA peak: mnist_cnn.conv2, 64 images: 7 us
// of products instead of 32, but 50 MB of matrices written and read in the L2 cache, some 10 us, and three
// launches more: 1.5 times. cifar_cnn.conv2 2.5, AlexNet's conv2 3.5 times, its 3 x 3 layers 1.8 to 2. With
// one input channel less than 1: nothing shares the transforms of the output.
// The price is accuracy, as on the CPU (winograd.cpp): the same bound.
#include <algorithm>

#include "kernels/convolution/cuda/winograd_gemm/position_products.hpp"
#include "kernels/convolution/cuda/winograd_gemm/tiles.hpp"
#include "kernels/convolution/winograd_size.hpp"

namespace stepladder::convolution {
namespace {

// A workspace of at most a sixteenth of the device's memory: larger batches take turns, some images at a
// time.
int images_at_once(const Problem& p, std::int64_t floats_of_an_image) {
  const std::int64_t most = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(cuda_memory_bytes() / 16 / sizeof(float)) / floats_of_an_image);
  const std::int64_t turns = (p.batch + most - 1) / most;
  return static_cast<int>((p.batch + turns - 1) / turns);
}

DeviceMemory matrices(const PositionMatrices& m, std::int64_t count) {
  return device_memory(sizeof(float) * static_cast<std::size_t>(count * m.size()));
}

Planes source_planes(const Correlation& c) {
  return {c.rows.source, c.columns.source, c.rows.origin, c.columns.origin, c.source};
}
Planes target_planes(const Correlation& c) {
  return {c.rows.target, c.columns.target, 0, 0, c.target};
}

float* floats(const DeviceMemory& memory) { return static_cast<float*>(memory.get()); }

Grid threads_for(const PositionMatrices& m) { return {blocks_for(m.size()), block_threads}; }
Grid threads_for(const TilePatches& patches) {
  return {blocks_for(patches.threads()), block_threads};
}

// What the directions share: images cut into tiles of outputs x outputs, some images at a time.
template <int pairs, int kernel>
class WinogradPlan : public Plan {
 protected:
  static constexpr int tile = WinogradPoints<float, pairs>::tile, positions = tile * tile;
  static constexpr int outputs = tile - kernel + 1;

  WinogradPlan(const Problem& p, const Correlation& c)
      : c_(c),
        tiles_(c.rows.target, c.columns.target, outputs),
        images_(images_at_once(p, std::int64_t{positions} * c.groups *
                                      (c.source_channels + c.target_channels) * tiles_.of_image)),
        sources_(c.groups * c.source_channels, std::int64_t{images_} * tiles_.of_image),
        targets_(c.groups * c.target_channels, std::int64_t{images_} * tiles_.of_image),
        source_patches_(sources_, c.channels_last),
        target_patches_(targets_, c.channels_last),
        source_memory_(matrices(sources_, positions)),
        target_memory_(matrices(targets_, positions)) {}

  // work(source, target, images): the images that take this turn, and how many.
  template <class Work>
  void for_images(float* source, float* target, const Work& work) const {
    for (int first = 0; first < c_.batch; first += images_)
      work(source + std::int64_t{first} * c_.source.image,
           target + std::int64_t{first} * c_.target.image, std::min(images_, c_.batch - first));
  }

  void transform_source(const float* source, int images) const {
    launch(planes_to_tiles_kernel<TransformSource<pairs>>, threads_for(source_patches_), sources_,
           source_patches_, tiles_, source_planes(c_), images, source, floats(source_memory_));
  }

  Correlation c_;
  ImageTiles tiles_;
  int images_;                          // of a turn
  PositionMatrices sources_, targets_;  // [channels, tiles]
  TilePatches source_patches_, target_patches_;
  DeviceMemory source_memory_, target_memory_;
};

template <int pairs, int kernel>
class WinogradImages final : public WinogradPlan<pairs, kernel> {
  using Base = WinogradPlan<pairs, kernel>;

 public:
  explicit WinogradImages(const Problem& p)
      : Base(p, correlations(p).front()),
        forward_(p.direction == Direction::forward),
        filters_(c_.groups * c_.source_channels, c_.target_channels),
        filter_memory_(matrices(filters_, Base::positions)) {}

  void run(const Operands& o) override {
    launch(filters_to_matrices_kernel<Evaluate<pairs, kernel>>, threads_for(filters_), filters_, c_,
           o.w, floats(filter_memory_));
    const PositionProducts products{.rows = c_.target_channels,
                                    .columns = targets_.columns,
                                    .depth = c_.source_channels,
                                    .slices = Base::positions * c_.groups,
                                    .parts = 1,
                                    .add = false};
    this->for_images(
        forward_ ? o.x : o.y, forward_ ? o.y : o.x,
        [&](const float* source, float* target, int images) {
          this->transform_source(source, images);
          multiply_positions<false>(products, floats(filter_memory_), floats(this->source_memory_),
                                    floats(this->target_memory_));
          launch(tiles_to_planes_kernel<Combine<pairs, Base::outputs>>,
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
class WinogradFilters final : public WinogradPlan<pairs, kernel> {
  using Base = WinogradPlan<pairs, kernel>;

 public:
  explicit WinogradFilters(const Problem& p)
      : Base(p, from_forward(p)),
        filters_(c_.groups * c_.target_channels, c_.source_channels),
        products_{.rows = c_.target_channels,
                  .columns = c_.source_channels,
                  .depth = targets_.columns,
                  .slices = Base::positions * c_.groups,
                  .parts = parts(),
                  .add = false},
        sum_memory_(matrices(filters_, std::int64_t{products_.parts} * Base::positions)) {}

  void run(const Operands& o) override {
    PositionProducts products = products_;
    this->for_images(o.x, o.y, [&](const float* x, const float* dy, int images) {
      this->transform_source(x, images);
      launch(planes_to_tiles_kernel<Evaluate<pairs, Base::outputs>>,
             threads_for(this->target_patches_), targets_, this->target_patches_, this->tiles_,
             target_planes(c_), images, dy, floats(this->target_memory_));
      multiply_positions<true>(products, floats(this->target_memory_), floats(this->source_memory_),
                               floats(sum_memory_));
      products.add = true;
    });
    launch(matrices_to_filters_kernel<Combine<pairs, kernel>>, threads_for(filters_), filters_, c_,
           products_.parts, floats(sum_memory_), o.w);
  }

 private:
  using Base::c_, Base::targets_;

  static Correlation from_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  // Few channels make few blocks, and their sum over the tiles is long: it is cut into parts, unless their
  // results became more than half the tiles, or the parts short.
  int parts() const {
    constexpr std::int64_t least_tiles = 256, most = 16;
    const std::int64_t tiles = targets_.columns, in = c_.source_channels, out = c_.target_channels;
    return static_cast<int>(std::clamp<std::int64_t>(
        std::min(tiles * (in + out) / (2 * in * out), tiles / least_tiles), 1, most));
  }

  PositionMatrices filters_;  // [out channels, in channels]
  PositionProducts products_;
  DeviceMemory sum_memory_;  // [parts, positions, groups, out channels, in channels]
};

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  require_int_indices(p);
  return with_fewest_products(p, [&]<int pairs, int kernel>() -> std::unique_ptr<Plan> {
    if (p.direction == Direction::backward_weights)
      return std::make_unique<WinogradFilters<pairs, kernel>>(p);
    return std::make_unique<WinogradImages<pairs, kernel>>(p);
  });
}

constexpr VariantInfo info{
    .name = "winograd_gemm",
    .technique = Technique::cuda,
    .builds_on = "implicit_gemm",
    .adds = "4 to 6 times fewer products: tiles transformed, multiplied by position, combined",
    .layouts = "nhwc",
    .place = Place::cuda,
    .bound_factor = 512,
    .normwise = true,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
