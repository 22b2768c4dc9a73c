// forward on operands quantized to int8, for inference, without unfolding: prepare() quantizes the
// weights, a step for each output channel; run() quantizes x, a step for each image and group.
//
//   element of x       4 channels of a pixel in 32 bits, in planes that hold the padding. With
//                      fewer than 4 channels: 4 of (channel, column of the kernel).
//   vector             16 neighbouring pixels of a plane. What is next to a pixel is next to it for
//                      all taps, so that a tap is one unaligned load. Rows are longer than those
//                      of y, by the padding between two rows, which serves both: the pixels there
//                      are computed and not stored.
//   tile of y          8 channels x 3 vectors of sums in registers; a tap loads 3 vectors and
//                      broadcasts 8 weights for 24 instructions of 64 products
//
// A stride s > 1 has s x s planes, one for each remainder of a row and of a column.
//
// Expected over direct_pixels: up to 4x, less what quantizing x takes.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/narrow/quantize.hpp"
#include "kernels/common/cpu/parts.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/convolution/cpu/positions.hpp"

namespace stepladder::convolution {
namespace {

using namespace narrow;

class DirectInt8 final : public Plan {
 public:
  DirectInt8(const Problem& problem, const Resources& resources)
      : p_(problem),
        at_(forward_correlation(p_), false, p_.group_in() < 4),
        slots_(p_.group_in() * at_.slot_w),
        elements_(ceil_div(slots_, std::int64_t{4})),
        image_(elements_ * at_.all_phases() + at_.behind(3 * lanes)),
        panels_(ceil_div(p_.group_out(), panel)),
        threads_(threads_that_pay(flops(p_), resources.threads)) {
    require_quantized(p_.direction == Direction::forward, slots_ * std::ssize(at_.taps));
    const std::int64_t weights = p_.groups * panels_ * elements_ * std::ssize(at_.taps) * panel;
    weights_ = aligned_array<std::uint32_t>(weights);
    images_.assign(static_cast<std::size_t>(threads_ * image_), zeros);
    channels_.resize(static_cast<std::size_t>(p_.groups * panels_ * panel));
  }

  void prepare(const Operands& o) override {
    const std::int64_t filter = p_.group_in() * p_.kernel_h * p_.kernel_w;
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::int64_t block = 0; block < p_.groups * panels_; ++block)
      for (std::int64_t i = 0; i < panel; ++i) {
        const std::int64_t in_group = block % panels_ * panel + i;
        const bool exists = in_group < p_.group_out();
        pack_channel(
            exists ? o.w + (block / panels_ * p_.group_out() + in_group) * filter : nullptr, filter,
            block, i);
      }
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return correlate(o, 0);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) correlate(o, thread);
  }

 private:
  static constexpr std::int64_t panel = 8;  // output channels
  static constexpr std::uint32_t zeros = 0x80808080;

  struct Channel {
    std::int32_t offset = 0;  // -128 times the sum of its weights
    float step = 0;
  };

  // Channel i of a block of weights; null: of zeros.
  void pack_channel(const float* filter, std::int64_t count, std::int64_t block, std::int64_t i) {
    const Step step = filter == nullptr ? Step{} : step_of(largest_magnitude(filter, count));
    std::int32_t sum = 0;
    std::uint32_t* to = weights_.get() + block * elements_ * std::ssize(at_.taps) * panel + i;
    for (std::int64_t e = 0; e < elements_; ++e)
      for (std::int64_t r = 0; r < p_.kernel_h; ++r)
        for (std::int64_t s = 0; s < at_.taps_w; ++s, to += panel) {
          *to = 0;
          if (filter == nullptr) continue;
          for (std::int64_t j = 0; j < 4 && 4 * e + j < slots_; ++j) {
            const auto [channel, column] = slot(4 * e + j);
            const float weight = filter[(channel * p_.kernel_h + r) * p_.kernel_w + column + s];
            const auto rounded = static_cast<std::int32_t>(std::nearbyint(weight * step.inverse));
            *to |= (static_cast<std::uint32_t>(rounded) & 0xffU) << 8 * j;
            sum += rounded;
          }
        }
    channels_[static_cast<std::size_t>(block * panel + i)] = {-quantized_zero * sum, step.size};
  }

  // The channel, and the column of the kernel if it is unfolded.
  std::pair<std::int64_t, std::int64_t> slot(std::int64_t index) const {
    return {index / at_.slot_w, index % at_.slot_w};
  }

  void correlate(const Operands& o, int thread) {
    const std::int64_t x_size = p_.group_in() * p_.height * p_.width,
                       y_size = p_.out_h() * p_.out_w();
    std::uint32_t* image = images_.data() + thread * image_;
    float step = 0;
    const Range part = partition(p_.batch * p_.groups * panels_, threads_, thread);
    for (std::int64_t item = part.begin; item < part.end; ++item) {
      const std::int64_t of_image = item / panels_, index = item % panels_;
      if (item == part.begin || index == 0) {
        const float* x = o.x + of_image * x_size;
        const Step found = step_of(largest_magnitude(x, x_size));
        quantize(x, found.inverse, image);
        step = found.size;
      }
      const Tiles tiles{.image = image,
                        .step = step,
                        .block = of_image % p_.groups * panels_ + index,
                        .channels = std::min(panel, p_.group_out() - index * panel),
                        .y = o.y + (of_image * p_.group_out() + index * panel) * y_size};
      multiply(tiles);
    }
  }

  // Planes of elements: [elements][phases_h][phases_w][rows][pitch].
  STEPLADDER_DOT_TARGET void quantize(const float* x, float inverse, std::uint32_t* to) const {
    for (std::int64_t e = 0; e < elements_; ++e)
      for (std::int64_t phase_h = 0; phase_h < at_.phases_h; ++phase_h)
        for (std::int64_t phase_w = 0; phase_w < at_.phases_w; ++phase_w)
          for (std::int64_t row = 0; row < at_.rows; ++row, to += at_.pitch) {
            const std::int64_t from = row * p_.stride_h + phase_h - p_.pad_h;
            if (from < 0 || from >= p_.height)
              std::fill_n(to, at_.pitch, zeros);
            else
              quantize_row(x + from * p_.width, e, phase_w, inverse, to);
          }
  }

  STEPLADDER_DOT_INLINE void quantize_row(const float* x, std::int64_t element,
                                          std::int64_t phase_w, float inverse,
                                          std::uint32_t* to) const {
    const __m512 factor = _mm512_set1_ps(inverse);
    for (std::int64_t first = 0; first < at_.pitch; first += lanes) {
      __m512i four[4];
      for (std::int64_t i = 0; i < 4; ++i) {
        four[i] = _mm512_setzero_si512();
        if (4 * element + i >= slots_) continue;
        const auto [channel, column] = slot(4 * element + i);
        four[i] = quantized(load_columns(x + channel * p_.height * p_.width,
                                         first * p_.stride_w + phase_w + column - p_.pad_w),
                            factor);
      }
      _mm512_mask_storeu_epi32(to + first, first_lanes(at_.pitch - first),
                               with_offset(quads(four)));
    }
  }

  // Of a row, each stride_w-th column from `first` on; 0 outside.
  STEPLADDER_DOT_INLINE __m512 load_columns(const float* row, std::int64_t first) const {
    const std::int64_t stride = p_.stride_w;
    const auto inside = static_cast<__mmask16>(
        first_lanes(ceil_div(std::max(p_.width - first, std::int64_t{0}), stride)) &
        ~(first < 0 ? first_lanes(ceil_div(-first, stride)) : __mmask16{0}));
    if (stride == 1) return _mm512_maskz_loadu_ps(inside, row + first);
    return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), inside, multiples(stride), row + first, 4);
  }

  // The pixels of one image, for one panel of channels.
  struct Tiles {
    const std::uint32_t* image;
    float step;
    std::int64_t block, channels;
    float* y;  // of the first channel
  };

  void multiply(const Tiles& at) const {
    const std::int64_t count = std::ssize(at_.pixels);
    const std::int64_t tiles = ceil_div(count, std::int64_t{3});
    for (std::int64_t i = 0; i < tiles; ++i) {
      const Range part = partition(count, tiles, i);
      if (at.channels > 2)
        with_width<panel>(at, part.begin, part.end - part.begin);
      else
        with_width<2>(at, part.begin, part.end - part.begin);
    }
  }

  template <int height>
  void with_width(const Tiles& at, std::int64_t vector, std::int64_t width) const {
    if (width == 3)
      tile<height, 3>(at, vector);
    else if (width == 2)
      tile<height, 2>(at, vector);
    else
      tile<height, 1>(at, vector);
  }

  template <int height, int width>
  STEPLADDER_DOT_TARGET void tile(const Tiles& at, std::int64_t vector) const {
    const Channel* channels = channels_.data() + at.block * panel;
    __m512i sums[height][width];
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < width; ++j) sums[i][j] = _mm512_set1_epi32(channels[i].offset);
    const std::int64_t taps = std::ssize(at_.taps);
    const std::uint32_t* weights = weights_.get() + at.block * elements_ * taps * panel;
    const std::uint32_t* plane = at.image + vector * lanes;
    for (std::int64_t e = 0; e < elements_; ++e, plane += at_.all_phases())
      for (std::int64_t t = 0; t < taps; ++t, weights += panel) {
        const std::uint32_t* from = plane + at_.taps[static_cast<std::size_t>(t)];
        __m512i pixels[width];
#pragma GCC unroll 3
        for (int j = 0; j < width; ++j) pixels[j] = _mm512_loadu_si512(from + j * lanes);
#pragma GCC unroll 8
        for (int i = 0; i < height; ++i) {
          const __m512i weight = _mm512_set1_epi32(static_cast<int>(weights[i]));
#pragma GCC unroll 3
          for (int j = 0; j < width; ++j) sums[i][j] = DotInt8::add(sums[i][j], pixels[j], weight);
        }
      }
    const std::int64_t y_size = p_.out_h() * p_.out_w();
#pragma GCC unroll 8
    for (int i = 0; i < height; ++i) {
      if (i == at.channels) return;
      const __m512 step = _mm512_set1_ps(channels[i].step), of_image = _mm512_set1_ps(at.step);
#pragma GCC unroll 3
      for (int j = 0; j < width; ++j) {
        const Positions::Pixels& pixels = at_.pixels[static_cast<std::size_t>(vector + j)];
        const __m512 results =
            _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[i][j]), of_image), step);
        _mm512_mask_storeu_ps(at.y + i * y_size + pixels.first, first_lanes(pixels.count),
                              _mm512_maskz_compress_ps(pixels.stored, results));
      }
    }
  }

  Problem p_;
  Positions at_;           // columns of the kernel are slots where channels are few
  std::int64_t slots_;     // channels of a group, or (channel, column)
  std::int64_t elements_;  // of four slots
  std::int64_t image_, panels_;
  int threads_;
  AlignedArray<std::uint32_t> weights_;  // [groups][panels][elements][taps][panel]
  std::vector<std::uint32_t> images_;    // [threads][image]
  std::vector<Channel> channels_;        // [groups][panels][panel]
};

constexpr VariantInfo info{
    .name = "direct_int8",
    .technique = Technique::openmp,
    .builds_on = "direct_pixels",
    .adds = "operands quantized to int8, weights once; four channels in a lane: dot products",
    .idea = Idea::dot_products,
    .precision = Precision::int8,
    .threaded = true,
    .prepacked = true,
    .quantization_error = 2.0 / 127 + 1.0 / (127 * 127),
};
static_assert(info.quantization_error == quantization_error);

const Registration registration{info, make_plan<Convolution, DirectInt8>};

}  // namespace
}  // namespace stepladder::convolution
