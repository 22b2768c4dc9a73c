// A convolution in NHWC equals that in NCHW, up to the layout of its operands.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {
namespace {

struct Sizes {
  std::int64_t first, channels, rows, columns;
  std::int64_t count() const { return first * channels * rows * columns; }
};

// nchw: [first, channels, rows, columns] -> [first, rows, columns, channels]
template <class Number>
std::vector<Number> channels_last(const std::vector<Number>& nchw, const Sizes& size) {
  std::vector<Number> nhwc;
  for (std::int64_t n = 0; n < size.first; ++n)
    for (std::int64_t h = 0; h < size.rows; ++h)
      for (std::int64_t w = 0; w < size.columns; ++w)
        for (std::int64_t c = 0; c < size.channels; ++c)
          nhwc.push_back(nchw[static_cast<std::size_t>(
              ((n * size.channels + c) * size.rows + h) * size.columns + w)]);
  return nhwc;
}

std::vector<float> numbers(Random& random, const Sizes& size) {
  std::vector<float> all(static_cast<std::size_t>(size.count()));
  for (float& one : all) one = static_cast<float>(random.integer(-9, 9));
  return all;
}

struct Result {
  std::vector<double> value, magnitude;
};
Result result_of(const Problem& p, std::vector<float> x, std::vector<float> w,
                 std::vector<float> y) {
  const std::size_t count = p.direction == Direction::forward         ? y.size()
                            : p.direction == Direction::backward_data ? x.size()
                                                                      : w.size();
  Result result{std::vector<double>(count), std::vector<double>(count)};
  reference(p, {x.data(), w.data(), y.data()}, result.value.data(), result.magnitude.data());
  return result;
}

TEST(ConvolutionLayout, TheReferenceInNhwcEqualsThatInNchw) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    Problem p{.direction = static_cast<Direction>(round % 3), .batch = random.integer(1, 3)};
    p.groups = random.integer(1, 2);
    p.in_channels = p.groups * random.integer(1, 4);
    p.out_channels = p.groups * random.integer(1, 4);
    p.kernel_h = random.integer(1, 4);
    p.kernel_w = random.integer(1, 4);
    p.stride_h = random.integer(1, 3);
    p.stride_w = random.integer(1, 3);
    p.pad_h = random.integer(0, 2);
    p.pad_w = random.integer(0, 2);
    p.height = random.integer(p.kernel_h, 9);
    p.width = random.integer(p.kernel_w, 9);
    const Sizes in{p.batch, p.in_channels, p.height, p.width};
    const Sizes filters{p.out_channels, p.group_in(), p.kernel_h, p.kernel_w};
    const Sizes out{p.batch, p.out_channels, p.out_h(), p.out_w()};
    const std::vector<float> x = numbers(random, in), w = numbers(random, filters),
                             y = numbers(random, out);

    const Result nchw = result_of(p, x, w, y);
    Problem last = p;
    last.layout = Layout::nhwc;
    const Result nhwc =
        result_of(last, channels_last(x, in), channels_last(w, filters), channels_last(y, out));

    const Sizes& size = p.direction == Direction::forward         ? out
                        : p.direction == Direction::backward_data ? in
                                                                  : filters;
    EXPECT_EQ(nhwc.value, channels_last(nchw.value, size)) << direction(p) << " " << shape(p);
    EXPECT_EQ(nhwc.magnitude, channels_last(nchw.magnitude, size)) << direction(p);
  }
}

TEST(ConvolutionLayout, AVariantWithoutNhwcRejectsIt) {
  const Problem nchw, nhwc{.layout = Layout::nhwc};
  constexpr VariantInfo plain{.name = "plain", .technique = Technique::serial, .adds = "nothing"};
  constexpr VariantInfo both{
      .name = "both", .technique = Technique::cuda, .adds = "nothing", .nhwc = true};
  EXPECT_NO_THROW(Convolution::require(nchw, plain));
  EXPECT_THROW(Convolution::require(nhwc, plain), Unsupported);
  EXPECT_NO_THROW(Convolution::require(nchw, both));
  EXPECT_NO_THROW(Convolution::require(nhwc, both));
}

}  // namespace
}  // namespace stepladder::convolution
