// The direct convolution in chwn, the layout of cuda-convnet [50]: lanes are images.
//
//   tile of one output pixel: 6 output channels x 4 vectors of images, in registers (with fewer
//   images 8 x 3, 12 x 2, 16 x 1)
//
//          x of a tap             AVX-512, per tap: 4 vector loads of x and 6 broadcasts of weights
//          x0    x1    x2    x3   for 24 FMAs. 24 accumulators, 4 vectors of x and 1 weight take
//    w0    acc   acc   acc   acc  29 of 32 registers (6 x 2 with 16 registers).
//    …     …     …     …     …
//    w5    acc   acc   acc   acc  w is [channels, kernel_h, kernel_w, out_channels]: the weights of
//                                 a tap are neighbours, and nothing is packed or transposed.
//
// All images read the same pixel: a tap in the padding is skipped for all lanes, whatever the
// stride. Input channels are taken a few at a time, so that their window and their weights stay in
// L1 while all output channels use them. Expected: the peak less those loads if whole vectors of
// images exist, even with 1 or 3 input channels. With a batch of 1, 15 of 16 lanes are idle.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/common/cpu/partial_vector.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

class DirectChwn final : public Plan {
 public:
  DirectChwn(const Problem& p, const Resources& resources)
      : p_(p), x_(p.x_strides()), w_(p.w_strides()), y_(p.y_strides()) {
    if (p.direction != Direction::forward) throw Unsupported("supports forward only");
    threads_ = resources.threads;
    image_blocks_ = ceil_div(p.batch, max_vectors * lanes);
    chunk_ = std::max<std::int64_t>(1, chunk_taps / (p.kernel_h * p.kernel_w));
  }

  void run(const Operands& o) override {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) {
      const Range items = partition(image_blocks_ * p_.groups * p_.out_h(), threads_, thread);
      for (std::int64_t item = items.begin; item < items.end; ++item) {
        const std::int64_t block = item / p_.out_h();
        row(o, block / p_.groups, block % p_.groups, item % p_.out_h());
      }
    }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t max_vectors = vector_registers == 32 ? 4 : 2;
  static constexpr std::int64_t chunk_taps = 80;  // x and w: 20 KiB each, of 64 output channels
  // Output channels of a tile: 24 accumulators with 32 registers, 12 with 16, and at most 16
  // weights of a tap, one cache line.
  static constexpr std::int64_t max_channels(std::int64_t vectors) {
    return std::min<std::int64_t>(16, 6 * max_vectors / vectors);
  }

  // The taps of one output pixel, of some input channels; those in the padding are left out.
  struct Taps {
    const float *x, *w;  // of the first tap: the first image, the first output channel
    std::int64_t channels, rows, columns;
    const Strides &x_strides, &w_strides;
  };
  // A tile adds its products to these elements of y.
  struct Target {
    float* y;
    std::int64_t channel;  // stride
    std::int64_t images;   // of the last vector
    bool is_empty;         // nothing has been added before
  };
  using Tile = void (*)(const Taps&, const Target&);

  // Null for tiles of more than max_channels().
  template <std::int64_t Channels, std::int64_t Vectors>
  static constexpr Tile tile_of() {
    if constexpr (Channels <= max_channels(Vectors))
      return &tile<Channels, Vectors>;
    else
      return nullptr;
  }

  // One row of the output, for a block of images and the channels of a group.
  void row(const Operands& o, std::int64_t image_block, std::int64_t group, std::int64_t p) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{tile_of<T / max_vectors + 1, T % max_vectors + 1>()...};
    }
    (std::make_index_sequence<16 * max_vectors>{});
    const Range images = partition(p_.batch, image_blocks_, image_block, lanes);
    const std::int64_t count = images.end - images.begin;
    const std::int64_t vectors = ceil_div(count, lanes);
    const std::int64_t channel_tiles = ceil_div(p_.group_out(), max_channels(vectors));
    const std::int64_t top = p * p_.stride_h - p_.pad_h;
    const Range rows{std::max<std::int64_t>(0, -top), std::min(p_.kernel_h, p_.height - top)};
    for (std::int64_t c = 0; c < p_.group_in(); c += chunk_)
      for (std::int64_t q = 0; q < p_.out_w(); ++q) {
        const std::int64_t left = q * p_.stride_w - p_.pad_w;
        const Range columns{std::max<std::int64_t>(0, -left),
                            std::min(p_.kernel_w, p_.width - left)};
        for (std::int64_t t = 0; t < channel_tiles; ++t) {
          const Range channels = partition(p_.group_out(), channel_tiles, t);
          const std::int64_t channel = group * p_.group_out() + channels.begin;
          const Taps taps{
              .x = o.x + x_.plane(images.begin, group * p_.group_in() + c) +
                   (top + rows.begin) * x_.row + (left + columns.begin) * x_.column,
              .w = o.w + w_.plane(channel, c) + rows.begin * w_.row + columns.begin * w_.column,
              .channels = std::min(chunk_, p_.group_in() - c),
              .rows = rows.end - rows.begin,
              .columns = columns.end - columns.begin,
              .x_strides = x_,
              .w_strides = w_};
          const Target target{
              .y = o.y + y_.plane(images.begin, channel) + p * y_.row + q * y_.column,
              .channel = y_.channel,
              .images = count - (vectors - 1) * lanes,
              .is_empty = c == 0};
          const std::int64_t size = channels.end - channels.begin;
          tiles[static_cast<std::size_t>((size - 1) * max_vectors + vectors - 1)](taps, target);
        }
      }
  }

  template <std::int64_t Channels, std::int64_t Vectors>
  static void tile(const Taps& taps, const Target& target) {
    constexpr std::make_index_sequence<Channels * Vectors> accumulators;
    constexpr std::make_index_sequence<Vectors> vectors;
    if (target.images == lanes)
      tile<Channels, Vectors, false>(accumulators, vectors, taps, target);
    else
      tile<Channels, Vectors, true>(accumulators, vectors, taps, target);
  }

  // I runs over the accumulators, channel by channel, V over the vectors of images.
  template <std::int64_t Channels, std::int64_t Vectors, bool tail, std::size_t... I,
            std::size_t... V>
  static void tile(std::index_sequence<I...>, std::index_sequence<V...>, const Taps& taps,
                   const Target& target) {
    const std::int64_t images = target.images;
    const auto load = [images](const float* p, std::size_t v) {
      return tail && v == Vectors - 1 ? load_partial(p + v * lanes, images)
                                      : Vector::load_unaligned(p + v * lanes);
    };
    const auto store = [images](float* p, std::size_t v, const Vector& value) {
      if (tail && v == Vectors - 1)
        store_partial(p + v * lanes, value, images);
      else
        value.store_unaligned(p + v * lanes);
    };
    const auto y = [&](std::size_t i) {
      return target.y + static_cast<std::int64_t>(i / Vectors) * target.channel;
    };
    const std::int64_t x_column = taps.x_strides.column, w_column = taps.w_strides.column;
    Vector acc[] = {(target.is_empty ? Vector(0.0F) : load(y(I), I % Vectors))...};
    for (std::int64_t c = 0; c < taps.channels; ++c)
      for (std::int64_t r = 0; r < taps.rows; ++r) {
        const float* x = taps.x + c * taps.x_strides.channel + r * taps.x_strides.row;
        const float* w = taps.w + c * taps.w_strides.channel + r * taps.w_strides.row;
        for (std::int64_t s = 0; s < taps.columns; ++s, x += x_column, w += w_column) {
          const Vector x_s[] = {load(x, V)...};
          ((acc[I] = xsimd::fma(Vector(w[I / Vectors]), x_s[I % Vectors], acc[I])), ...);
        }
      }
    (store(y(I), I % Vectors, acc[I]), ...);
  }

  Problem p_;
  Strides x_, w_, y_;
  int threads_ = 1;
  std::int64_t image_blocks_ = 1;
  std::int64_t chunk_ = 1;  // input channels
};

constexpr VariantInfo info{
    .name = "direct_chwn",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "images on lanes, in layout chwn: no transposition, few input channels cost nothing",
    .idea = Idea::layout,
    .layout = Layout::chwn,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, DirectChwn>};

}  // namespace
}  // namespace stepladder::convolution
