// The rungs that gather strided pixels or have several short rows in a tile, with every stride up
// to one more than the vector code takes, and rows that end before, at and after whole vectors.
// Random problems have strides of 1 to 4. And every rung where no filter element reaches dx or some
// meet nothing but padding, and direct_tile where the weights, their sums and dy take several
// blocks; and the rungs on AMX with more channels than random problems have.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::convolution {
namespace {

class ConvolutionStrides : public testing::TestWithParam<const char*> {};

TEST_P(ConvolutionStrides, Pass) {
  int ran = 0;
  const std::vector<Variant> rungs = rungs_named(convolution_type(), GetParam());
  for (const char* direction : {"forward", "backward_data"})
    for (int stride = 1; stride <= 9; ++stride)
      for (const int columns : {1, 7, 8, 15, 16, 17, 33})
        for (const int kernel : {1, 3})
          for (const int threads : {1, 2})  // pointwise does not take 3 x 3
            ran += expect_passed(
                convolution_type(),
                fmt::format("2x3x5x{0}x9x{1}x{1} stride_h=2 stride_w={2} pad_h={3} pad_w={3} "
                            "direction={4}",
                            (columns - 1) * stride + kernel - kernel / 2, kernel, stride,
                            kernel / 2, direction),
                rungs, threads);
  EXPECT_GE(ran, 2 * 9 * 7);
}

TEST(Convolution, IsZeroWhereNoFilterElementReaches) {
  for (const int threads : {1, 2})
    EXPECT_GT(
        expect_passed(convolution_type(),
                      "1x18x1x38x14x1x4 stride_h=2 stride_w=2 pad_h=1 direction=backward_data",
                      own_rungs(convolution_type()), threads),
        0);
}

// Columns 0 and 2 of the filters lie in the padding of every output. New memory is NaN here, so
// that a rung of a library that leaves them unwritten fails; rungs of bf16 need AVX512_BF16.
TEST(Convolution, IsZeroForFilterElementsThatMeetOnlyPadding) {
  const auto rungs = rungs_here(convolution_type(), [](const VariantInfo& info) {
    return info.place == Place::cpu && !info.over_ranks;
  });
  mallopt(M_PERTURB, 0x100);  // allocated bytes are 0xff
  for (const char* layout : {"nchw", "nchw16c"})
    for (const int channels : {1, 6})
      for (const int threads : {1, 2})
        EXPECT_GT(
            expect_passed(convolution_type(),
                          fmt::format("3x{}x15x1x16x3x3 stride_h=2 stride_w=2 pad_h=1 pad_w=1 "
                                      "direction=backward_weights layout={}",
                                      channels, layout),
                          rungs, threads),
            0);
  mallopt(M_PERTURB, 0);
}

// 5 x 5 images, 3 x 3 filters: weights of 400 source channels pass L2 in two parts. With 45 images
// tile rows take two blocks, and so does dy; with 3, threads pack the parts that they need. Three
// threads end within images.
TEST(ConvolutionDirectTile, PassesBlocks) {
  const std::vector<Variant> rungs = rungs_named(convolution_type(), "direct_tile");
  int ran = 0;
  for (const char* shape :
       {"3x400x5x5x32x3x3 direction=forward", "3x32x5x5x400x3x3 direction=backward_data",
        "45x400x5x5x32x3x3 direction=forward", "45x32x5x5x400x3x3 direction=backward_data",
        "1x400x5x5x64x3x3 direction=forward", "1x70x5x5x400x3x3 direction=backward_data",
        "45x5x5x5x48x3x3 direction=backward_weights", "45x5x5x5x64x3x3 direction=backward_weights"})
    for (const int threads : {1, 2, 3})
      ran += expect_passed(convolution_type(), std::string(shape) + " pad_h=1 pad_w=1", rungs,
                           threads);
  EXPECT_GE(ran, 3 * 8);
}

// backward_data with strides: every class of pixels packs late, in several passes; some classes do,
// so that none packs late; two groups pack late.
TEST(ConvolutionDirectTile, PassesClassesOfPixelsThatSharePacking) {
  const std::vector<Variant> rungs = rungs_named(convolution_type(), "direct_tile");
  constexpr auto direction = Direction::backward_data;
  int ran = 0;
  for (const Problem& of : {Problem{direction, 1, 64, 5, 5, 900, 5, 5, 2, 2, 2, 2},
                            {direction, 3, 64, 5, 5, 900, 5, 5, 2, 2, 2, 2},
                            {direction, 1, 70, 9, 9, 400, 3, 3, 2, 2, 1, 1},
                            {direction, 1, 128, 5, 5, 1800, 5, 5, 2, 2, 2, 2, 2}})
    for (const int threads : {1, 2, 3}) ran += expect_passed<Convolution>(of, rungs, threads);
  EXPECT_GE(ran, 4 * 3);
}

// Pixels at the ends of a row, which have padding at one side, or at both where the map is narrower
// than the kernel; padding that is wider than the kernel; kernel rows that are divided.
TEST(ConvolutionDirectTile, PassesTapsInPaddingOfTheColumns) {
  std::vector<Variant> rungs = rungs_named(convolution_type(), "direct_tile");
  std::ranges::move(rungs_named(convolution_type(), "direct_tile_bf16"), std::back_inserter(rungs));
  int ran = 0, problems = 0;
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights})
    for (const std::int64_t kernel : {3, 5, 7, 19, 33})
      for (const std::int64_t width : {kernel - 1, kernel + 1, 2 * kernel})
        for (const std::int64_t stride : {1, 2, 4})
          for (const std::int64_t pad : {kernel / 2, kernel - 1, kernel + 1})
            for (const std::int64_t channels : {3, 20, 40}) {
              const Problem problem{direction, 1,      channels, 2,      width, channels,
                                    2,         kernel, 1,        stride, 1,     pad};
              ran += expect_passed<Convolution>(problem, rungs, 1);
              ++problems;
            }
  EXPECT_GE(ran, problems);
}

// Several groups of lines and phases of a stride, an odd batch, threads that end within images,
// more threads than pairs of images, padding larger than the kernel, taps as slots.
TEST(ConvolutionAmx, PassesGroupsOfLinesAndPhases) {
  std::vector<Variant> rungs = rungs_named(convolution_type(), "direct_amx");
  if (rungs.empty()) GTEST_SKIP() << "this CPU has no AMX";
  std::ranges::move(rungs_named(convolution_type(), "direct_int8_amx"), std::back_inserter(rungs));
  int ran = 0;
  for (const Direction direction :
       {Direction::forward, Direction::backward_data, Direction::backward_weights})
    for (const Problem& of : {Problem{direction, 5, 70, 11, 20, 33, 3, 5, 2, 3, 1, 2},
                              {direction, 3, 96, 9, 9, 64, 3, 3, 2, 2, 1, 1, 2},
                              {direction, 2, 40, 6, 5, 17, 2, 3, 1, 1, 4, 40},
                              {direction, 4, 7, 30, 30, 20, 9, 9, 2, 2, 4, 4},
                              {direction, 3, 3, 12, 33, 20, 5, 5, 1, 1, 2, 2}})
      for (const int threads : {1, 3, 4}) ran += expect_passed<Convolution>(of, rungs, threads);
  EXPECT_EQ(ran, 5 * 3 * (3 + 1));
}

INSTANTIATE_TEST_SUITE_P(All, ConvolutionStrides,
                         testing::Values("direct_pixels", "direct_tile", "openmp", "pointwise"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stepladder::convolution
