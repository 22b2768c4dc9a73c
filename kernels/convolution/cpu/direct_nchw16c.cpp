// The direct convolution in nchw16c, the blocked layout of oneDNN [8] and of Georganas et al. [51]:
// lanes are output channels of a block.
//
//   tile of the output: 14 pixels of a row x 2 vectors of channels, in registers
//
//      weights of a tap   AVX-512: two blocks of 16 channels. Per input channel and tap: 2 loads of
//        w0  | w1         weights and, per pixel, 1 broadcast for 2 FMAs. AVX2: one block in two
//   x0   acc | acc        vectors, SSE4.2: half a block, each on 6 pixels.
//   …    …   | …
//   x13  acc | acc        The tile of direct_tile, but the layout is that of the registers:
//
// weights are packed once for all, 16 input channels of a pixel share the cache line that is
// broadcast from, and the finished tile is stored as it is, without a transposition. Expected over
// direct_tile: packing and transposition, 1.05x to 1.2x; more where few taps (1 x 1, few input
// channels) stand against them.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/simd.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/convolution/cpu/valid_range.hpp"

namespace stepladder::convolution {
namespace {

class DirectNchw16c final : public Plan {
 public:
  DirectNchw16c(const Problem& p, const Resources& resources)
      : p_(p), x_(p.x_strides()), w_(p.w_strides()), y_(p.y_strides()) {
    if (p.direction != Direction::forward) throw Unsupported("supports forward only");
    if (p.groups > 1 && p.group_out() % block_channels != 0)
      throw Unsupported("supports groups of whole blocks of 16 output channels only");
    threads_ = resources.threads;
    group_channels_ = stored_channels(p.layout, p.group_out());
    panels_ = ceil_div(group_channels_, panel);
    weights_first_ = panel * p.kernel_h * p.kernel_w > p.height * p.width;
    const std::int64_t segments = ceil_div(p.out_w(), max_pixels);
    for (std::int64_t i = 0; i < segments; ++i) {
      const Range part = partition(p.out_w(), segments, i);
      Segment segment{part.begin, part.end - part.begin, {}};
      for (std::int64_t s = 0; s < p.kernel_w; ++s)
        segment.valid.push_back(valid_range(p.width, segment.pixels, p.stride_w,
                                            part.begin * p.stride_w - p.pad_w + s));
      segments_.push_back(std::move(segment));
    }
  }

  // The larger of an image and the weights of a panel of channels stays in L2, and is read once.
  void run(const Operands& o) override {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) {
      const Range items = partition(p_.batch * p_.groups * panels_ * p_.out_h(), threads_, thread);
      for (std::int64_t item = items.begin; item < items.end; ++item) {
        const std::int64_t rest = item / p_.out_h(), filters = p_.groups * panels_;
        const std::int64_t image = weights_first_ ? rest % p_.batch : rest / filters;
        const std::int64_t block = weights_first_ ? rest / p_.batch : rest % filters;
        row(o, image, block / panels_, block % panels_ * panel, item % p_.out_h());
      }
    }
  }

 private:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t panel = 2 * lanes;  // output channels of a tile
  static constexpr std::int64_t max_pixels =
      vector_registers == 32 ? 14 : 6;  // 28 or 12 accumulators

  // The pixels of a row that one tile computes.
  struct Segment {
    std::int64_t first, pixels;
    std::vector<Range> valid;  // [kernel_w]: the pixels that read x and not padding
  };
  // A row of the output, for one panel of channels.
  struct Row {
    const float* x;              // of the image
    const float* w;              // of the first channel
    float* y;                    // pixel 0 of the first channel
    std::int64_t first_channel;  // of x
    std::int64_t top;            // row of x that kernel row 0 reads; may be in the padding
  };
  using Tile = void (DirectNchw16c::*)(const Row&, const Segment&) const;

  // `first`: channel of the group
  void row(const Operands& o, std::int64_t image, std::int64_t group, std::int64_t first,
           std::int64_t p) const {
    static constexpr auto tiles = []<std::size_t... T>(std::index_sequence<T...>) {
      return std::array<Tile, sizeof...(T)>{&DirectNchw16c::tile<T / 2 + 1, T % 2 + 1>...};
    }
    (std::make_index_sequence<2 * max_pixels>{});
    const std::int64_t channel = group * p_.group_out() + first;
    const std::int64_t vectors = std::min(panel, group_channels_ - first) / lanes;
    const Row at{.x = o.x + x_.plane(image, 0),
                 .w = o.w + w_.plane(channel, 0),
                 .y = o.y + y_.plane(image, channel) + p * y_.row,
                 .first_channel = group * p_.group_in(),
                 .top = p * p_.stride_h - p_.pad_h};
    for (const Segment& segment : segments_)
      (this->*tiles[static_cast<std::size_t>((segment.pixels - 1) * 2 + vectors - 1)])(at, segment);
    clear_padding(at.y, channel);
  }

  // The weights of padding channels are 0, but 0 · x is not 0 if x is infinite or NaN.
  void clear_padding(float* y, std::int64_t channel) const {
    const std::int64_t first = std::max(channel, p_.out_channels);
    const std::int64_t stored = stored_channels(p_.layout, p_.out_channels);
    const std::int64_t last = std::min(channel + panel, stored);
    for (std::int64_t q = 0; q < p_.out_w() && first < last; ++q)
      for (std::int64_t o = first; o < last; ++o)
        y[y_.plane(0, o) - y_.plane(0, channel) + q * y_.column] = 0;
  }

  // I runs over the accumulators, pixel by pixel, V over the vectors of channels.
  template <std::int64_t Pixels, std::int64_t Vectors, bool unit_stride, std::size_t... I,
            std::size_t... V>
  void tile(std::index_sequence<I...>, std::index_sequence<V...>, const Row& row,
            const Segment& segment) const {
    const std::int64_t step = (unit_stride ? 1 : p_.stride_w) * block_channels;
    // A vector is a part of a block, or the second one of two blocks.
    const std::int64_t w_vector = lanes == block_channels ? w_.first_block : lanes;
    const std::int64_t y_vector = lanes == block_channels ? y_.channel_block : lanes;
    const std::int64_t first_row = std::max<std::int64_t>(0, -row.top);
    const std::int64_t last_row = std::min(p_.kernel_h, p_.height - row.top);
    const Range* valid = segment.valid.data();
    Vector acc[] = {((void)I, Vector(0.0F))...};
    for (std::int64_t c = 0; c < p_.group_in(); ++c) {
      const float* channel = row.x + x_.plane(0, row.first_channel + c) +
                             (segment.first * p_.stride_w - p_.pad_w) * x_.column;
      for (std::int64_t r = first_row; r < last_row; ++r) {
        const float* x = channel + (row.top + r) * x_.row;
        const float* w = row.w + c * w_.channel + r * w_.row;
        for (std::int64_t s = 0; s < p_.kernel_w; ++s, x += block_channels, w += block_channels) {
          const Vector w_s[] = {
              Vector::load_unaligned(w + static_cast<std::int64_t>(V) * w_vector)...};
          const auto first = static_cast<std::size_t>(valid[s].begin);
          const auto last = static_cast<std::size_t>(valid[s].end);
          if (first == 0 && last == Pixels)
            ((acc[I] = xsimd::fma(Vector(x[static_cast<std::int64_t>(I / Vectors) * step]),
                                  w_s[I % Vectors], acc[I])),
             ...);
          else
            ((I / Vectors >= first && I / Vectors < last
                  ? void(acc[I] =
                             xsimd::fma(Vector(x[static_cast<std::int64_t>(I / Vectors) * step]),
                                        w_s[I % Vectors], acc[I]))
                  : void()),
             ...);
        }
      }
    }
    float* y = row.y + segment.first * block_channels;
    (acc[I].store_unaligned(y + static_cast<std::int64_t>(I / Vectors) * block_channels +
                            static_cast<std::int64_t>(I % Vectors) * y_vector),
     ...);
  }

  template <std::int64_t Pixels, std::int64_t Vectors>
  void tile(const Row& row, const Segment& segment) const {
    constexpr std::make_index_sequence<Pixels * Vectors> accumulators;
    constexpr std::make_index_sequence<Vectors> vectors;
    if (p_.stride_w == 1)
      tile<Pixels, Vectors, true>(accumulators, vectors, row, segment);
    else
      tile<Pixels, Vectors, false>(accumulators, vectors, row, segment);
  }

  Problem p_;
  Strides x_, w_, y_;
  int threads_ = 1;
  std::int64_t group_channels_ = 0, panels_ = 1;  // of one group
  bool weights_first_ = false;                    // all images after each other, for a panel
  std::vector<Segment> segments_;
};

constexpr VariantInfo info{
    .name = "direct_nchw16c",
    .technique = Technique::openmp,
    .builds_on = "direct_tile",
    .adds = "blocks of 16 channels in memory, as in the registers: no packing, no transposition",
    .idea = Idea::layout,
    .layout = Layout::nchw16c,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<Convolution, DirectNchw16c>};

}  // namespace
}  // namespace stepladder::convolution
