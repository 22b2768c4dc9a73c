// A NaN is not hidden: the ReLU of NaN is NaN in every rung, so that a training that has gone wrong
// shows in its loss.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(NanPropagates, ThroughAReluInWholeVectorsAndTails) {
  constexpr std::int64_t count = 37;
  const layers::Problem problem{.layer = layers::Layer::relu, .batch = 1, .channels = count};
  for (const Variant& variant : own_rungs(layers_type()))
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<float> x(count, -1.0F), y(count, 5.0F);
      x[at] = nan;
      plan_variant<layers::Layers>(variant.entry, problem, {})->run({.x = x.data(), .y = y.data()});
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_TRUE(i == at ? std::isnan(y[i]) : y[i] == 0)
            << variant.name << ": relu(" << x[i] << ") is " << y[i];
    }
}

TEST(NanPropagates, ThroughTheEpilogueOfAProduct) {
  int rungs = 0;
  // Wide and narrow, plain and transposed: some rungs compute the transposed product.
  for (const matmul::Problem& shape :
       {matmul::Problem{5, 37, 3}, {37, 5, 3}, {5, 37, 3, false, true}, {37, 5, 3, true, false}})
    for (const Variant& variant : own_rungs(matmul_type())) {
      const bool is_forward = !shape.transpose_a && !shape.transpose_b;
      if (!variant.info->epilogue) continue;
      if (variant.info->quantization_error > 0 && !is_forward) continue;  // made for inference
      ++rungs;
      matmul::Problem p = shape;
      p.epilogue = matmul::Epilogue::bias_relu;
      const auto size = [](std::int64_t a, std::int64_t b) {
        return static_cast<std::size_t>(a * b);
      };
      std::vector<float> a(size(p.m, p.k), 1.0F), b(size(p.k, p.n), -1.0F);
      std::vector<float> c(size(p.m, p.n), 5.0F), bias(size(p.n, 1), 0.0F);
      const std::int64_t row = p.m - 1;
      a[size(1, p.transpose_a ? row : row * p.k)] = nan;  // of l = 0
      const auto plan = plan_variant<matmul::Matmul>(variant.entry, p, {});
      const matmul::Operands operands{a.data(), b.data(), c.data(), bias.data()};
      plan->prepare(operands);
      plan->run(operands);
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          const float value = c[size(1, i * p.n + j)];
          EXPECT_TRUE(i == row ? std::isnan(value) : value == 0)
              << variant.name << " " << matmul::shape(p) << ": c[" << i << ", " << j << "] is "
              << value;
        }
    }
  EXPECT_GT(rungs, 0);
}

// Where no value of a window is larger than the smallest one, its position must not lie in padding:
// backward would add outside of the plane.
TEST(MaxPoolOfNoNumbers, HasItsPositionsInsideThePlane) {
  int rungs = 0;
  for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::chwn, Layout::nchw16c})
    for (const std::int64_t stride : {1, 2})
      for (const float value : {nan, -std::numeric_limits<float>::infinity()})
        for (const Variant& variant : own_rungs(max_pool_type())) {
          const max_pool::Problem p{.batch = 2,
                                    .channels = 16,
                                    .height = 21,
                                    .width = 35,
                                    .window_h = 3,
                                    .window_w = 3,
                                    .stride_h = stride,
                                    .stride_w = stride,
                                    .pad_h = 1,
                                    .pad_w = 1,
                                    .layout = layout};
          std::vector<float> x(static_cast<std::size_t>(p.x_count()), value);
          std::vector<float> y(static_cast<std::size_t>(p.y_count()));
          std::vector<std::uint8_t> argmax(y.size(), 255);
          try {
            const auto plan = plan_variant<max_pool::MaxPool>(variant.entry, p, {});
            plan->run({.x = x.data(), .y = y.data(), .argmax = argmax.data()});
          } catch (const Unsupported&) {
            continue;
          }
          ++rungs;
          const Strides of_y = p.y_strides();
          int outside = 0;
          for (std::int64_t n = 0; n < p.batch; ++n)
            for (std::int64_t c = 0; c < p.channels; ++c)
              for (std::int64_t i = 0; i < p.out_h(); ++i)
                for (std::int64_t j = 0; j < p.out_w(); ++j) {
                  const int position = argmax[static_cast<std::size_t>(
                      of_y.plane(n, c) + i * of_y.row + j * of_y.column)];
                  const std::int64_t row = i * p.stride_h - p.pad_h + position / p.window_w;
                  const std::int64_t column = j * p.stride_w - p.pad_w + position % p.window_w;
                  outside += position >= p.window_h * p.window_w || row < 0 || row >= p.height ||
                             column < 0 || column >= p.width;
                }
          EXPECT_EQ(outside, 0) << variant.name << " of " << value << ", " << max_pool::shape(p);
        }
  EXPECT_GT(rungs, 0);
}

}  // namespace
}  // namespace stepladder
