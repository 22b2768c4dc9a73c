// A problem in any layout equals that in NCHW, up to the layout of its operands: so do the
// references of convolution, pooling and reorder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/reorder/reorder.hpp"
#include "tests/layouts.hpp"

namespace stepladder {
namespace {

template <class Problem>
void expect_same_cost(const Problem& p, const Problem& nchw) {
  EXPECT_EQ(flops(p), flops(nchw)) << name_of(p.layout);
  EXPECT_EQ(bytes_read(p), bytes_read(nchw)) << name_of(p.layout);
  EXPECT_EQ(bytes_written(p), bytes_written(nchw)) << name_of(p.layout);
}

struct Result {
  std::vector<double> value, magnitude;
};

Result convolved(const convolution::Problem& p, std::vector<float> x, std::vector<float> w,
                 std::vector<float> y) {
  using convolution::Direction;
  EXPECT_EQ(p.x_count(), static_cast<std::int64_t>(x.size())) << name_of(p.layout);
  EXPECT_EQ(p.w_count(), static_cast<std::int64_t>(w.size())) << name_of(p.layout);
  EXPECT_EQ(p.y_count(), static_cast<std::int64_t>(y.size())) << name_of(p.layout);
  const std::size_t count = p.direction == Direction::forward         ? y.size()
                            : p.direction == Direction::backward_data ? x.size()
                                                                      : w.size();
  Result result{std::vector<double>(count), std::vector<double>(count)};
  reference(p, {x.data(), w.data(), y.data()}, result.value.data(), result.magnitude.data());
  return result;
}

TEST(Layouts, AConvolutionIsTheSameInAll) {
  using namespace convolution;
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    Problem p{.direction = static_cast<Direction>(round % 3), .batch = random.integer(1, 3)};
    p.groups = random.integer(1, 2);
    p.in_channels = p.groups * random.integer(1, 12);
    p.out_channels = p.groups * random.integer(1, 12);
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
    const std::vector<float> x = integers(random, in), w = integers(random, filters),
                             y = integers(random, out);
    const Result nchw = convolved(p, x, w, y);
    for (const Layout layout : all_layouts) {
      Problem other = p;
      other.layout = layout;
      const Result result = convolved(other, images_in(layout, x, in),
                                      filters_in(layout, w, filters), images_in(layout, y, out));
      const auto expected = [&](const std::vector<double>& values) {
        return p.direction == Direction::backward_weights
                   ? filters_in(layout, values, filters)
                   : images_in(layout, values, p.direction == Direction::forward ? out : in);
      };
      EXPECT_EQ(result.value, expected(nchw.value)) << name_of(layout) << " " << shape(p);
      EXPECT_EQ(result.magnitude, expected(nchw.magnitude)) << name_of(layout) << " " << shape(p);
      expect_same_cost(other, p);
    }
  }
}

// The argmax of the padding channels, planes of zeros, is left out.
std::vector<std::uint8_t> without_padding(std::vector<std::uint8_t> argmax, const Sizes& size,
                                          Layout layout) {
  const std::vector<std::uint8_t> real =
      images_in(layout, std::vector<std::uint8_t>(static_cast<std::size_t>(size.count()), 1), size);
  for (std::size_t i = 0; i < argmax.size(); ++i) argmax[i] = real[i] != 0 ? argmax[i] : 0;
  return argmax;
}

TEST(Layouts, MaxPoolIsTheSameInAll) {
  using namespace max_pool;
  Random random(12);
  for (int round = 0; round < 30; ++round) {
    const auto p = random_windows<Problem>(random);
    const Sizes in{p.batch, p.channels, p.height, p.width};
    const Sizes out{p.batch, p.channels, p.out_h(), p.out_w()};
    const std::vector<float> x = integers(random, in), dy = integers(random, out);
    const auto forward = [](const Problem& q, const std::vector<float>& values,
                            std::vector<std::uint8_t>& argmax) {
      std::vector<double> y(static_cast<std::size_t>(q.y_count()));
      argmax.resize(y.size());
      reference_forward(q, values.data(), nullptr, y.data(), argmax.data());
      return y;
    };
    const auto backward = [](const Problem& q, const std::vector<float>& values,
                             const std::vector<std::uint8_t>& argmax) {
      std::vector<double> dx(static_cast<std::size_t>(q.x_count())), magnitude(dx.size());
      reference_backward(q, values.data(), argmax.data(), nullptr, dx.data(), magnitude.data());
      return dx;
    };
    std::vector<std::uint8_t> argmax;
    const std::vector<double> y = forward(p, x, argmax), dx = backward(p, dy, argmax);
    for (const Layout layout : all_layouts) {
      Problem other = p;
      other.layout = layout;
      std::vector<std::uint8_t> got;
      EXPECT_EQ(forward(other, images_in(layout, x, in), got), images_in(layout, y, out))
          << name_of(layout) << " " << shape(p);
      EXPECT_EQ(without_padding(got, out, layout), images_in(layout, argmax, out))
          << name_of(layout) << " " << shape(p);
      EXPECT_EQ(backward(other, images_in(layout, dy, out), got), images_in(layout, dx, in))
          << name_of(layout) << " " << shape(p);
      expect_same_cost(other, p);
    }
  }
}

TEST(Layouts, AveragePoolIsTheSameInAll) {
  using namespace average_pool;
  Random random(13);
  for (int round = 0; round < 30; ++round) {
    auto p = random_windows<Problem>(random);
    p.count = random.coin() ? Count::include_padding : Count::exclude_padding;
    const Sizes in{p.batch, p.channels, p.height, p.width};
    const Sizes out{p.batch, p.channels, p.out_h(), p.out_w()};
    const std::vector<float> x = integers(random, in), dy = integers(random, out);
    const auto run = [](const Problem& q, bool forward, const std::vector<float>& values) {
      std::vector<double> result(static_cast<std::size_t>(forward ? q.y_count() : q.x_count()));
      std::vector<double> magnitude(result.size());
      (forward ? reference_forward : reference_backward)(q, values.data(), result.data(),
                                                         magnitude.data());
      return result;
    };
    const std::vector<double> y = run(p, true, x), dx = run(p, false, dy);
    for (const Layout layout : all_layouts) {
      Problem other = p;
      other.layout = layout;
      EXPECT_EQ(run(other, true, images_in(layout, x, in)), images_in(layout, y, out))
          << name_of(layout) << " " << shape(p);
      EXPECT_EQ(run(other, false, images_in(layout, dy, out)), images_in(layout, dx, in))
          << name_of(layout) << " " << shape(p);
      expect_same_cost(other, p);
    }
  }
}

TEST(Layouts, ReorderConvertsEachToEach) {
  using namespace reorder;
  Random random(14);
  for (int round = 0; round < 10; ++round) {
    const Sizes size{random.integer(1, 5), random.integer(1, 40), random.integer(1, 6),
                     random.integer(1, 6)};
    const std::vector<float> x = integers(random, size);
    for (const Layout from : all_layouts)
      for (const Layout to : all_layouts) {
        if (from == to) continue;
        const Problem p{size.first, size.channels, size.rows, size.columns, from, to};
        const std::vector<float> expected = images_in(to, x, size);
        std::vector<double> y(static_cast<std::size_t>(p.y_count()));
        reference(p, images_in(from, x, size).data(), y.data());
        EXPECT_EQ(y, std::vector<double>(expected.begin(), expected.end()))
            << direction(p) << " " << shape(p);
      }
  }
}

constexpr VariantInfo plain{.name = "plain", .technique = Technique::serial, .adds = "nothing"};
constexpr VariantInfo both{
    .name = "both", .technique = Technique::cuda, .adds = "nothing", .nhwc = true};
constexpr VariantInfo chwn{
    .name = "chwn", .technique = Technique::simd, .adds = "nothing", .layout = Layout::chwn};

TEST(Layouts, AVariantTakesThoseThatItNamesAndNoOther) {
  const auto is_taken = [](Layout layout, const VariantInfo& info) {
    try {
      require_layout(layout, info);
      return true;
    } catch (const Unsupported& reason) {
      EXPECT_EQ(reason.what(), "supports " + layouts_of(info) + " only");
      return false;
    }
  };
  for (const Layout layout : all_layouts) {
    EXPECT_EQ(is_taken(layout, plain), layout == Layout::nchw);
    EXPECT_EQ(is_taken(layout, both), layout == Layout::nchw || layout == Layout::nhwc);
    EXPECT_EQ(is_taken(layout, chwn), layout == Layout::chwn);
  }
  EXPECT_EQ(layouts_of(both), "NCHW and NHWC");
  EXPECT_THROW(convolution::Convolution::require({.layout = Layout::chwn}, plain), Unsupported);
  EXPECT_THROW(max_pool::MaxPool::require({.layout = Layout::chwn}, plain), Unsupported);
  EXPECT_THROW(average_pool::AveragePool::require({.layout = Layout::chwn}, plain), Unsupported);
}

// The weights of padding channels are zeros, and 0 · infinity is not zero.
TEST(Layouts, PaddingChannelsAreZeroWhateverXHolds) {
  using namespace convolution;
  const Problem p{.batch = 1,
                  .in_channels = 3,
                  .height = 5,
                  .width = 9,
                  .out_channels = 19,
                  .kernel_h = 3,
                  .kernel_w = 3,
                  .layout = Layout::nchw16c};
  const Sizes in{p.batch, p.in_channels, p.height, p.width};
  const Sizes filters{p.out_channels, p.in_channels, p.kernel_h, p.kernel_w};
  const Sizes out{p.batch, p.out_channels, p.out_h(), p.out_w()};
  const auto filled = [](const Sizes& size, float value) {
    return std::vector<float>(static_cast<std::size_t>(size.count()), value);
  };
  std::vector<float> x =
      images_in(p.layout, filled(in, std::numeric_limits<float>::infinity()), in);
  std::vector<float> w = filters_in(p.layout, filled(filters, 1), filters);
  const std::vector<float> is_real = images_in(p.layout, filled(out, 1), out);
  int rungs = 0;
  for (const Variant& variant : convolution_type().variants()) {
    if (variant.info->layout != p.layout || !variant.why_unavailable.empty()) continue;
    ++rungs;
    std::vector<float> y(static_cast<std::size_t>(p.y_count()), 7.0F);
    plan_variant<Convolution>(variant.entry, p, {})->run({x.data(), w.data(), y.data()});
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y[i], is_real[i] != 0 ? std::numeric_limits<float>::infinity() : 0.0F)
          << variant.name << " [" << i << "]";
  }
  EXPECT_GT(rungs, 0);
}

}  // namespace
}  // namespace stepladder
