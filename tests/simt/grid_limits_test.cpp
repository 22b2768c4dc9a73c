// Plans refuse problems that exceed the limits of grids or of 32-bit indices. No operands are
// allocated here.
#include <gtest/gtest.h>

#include <string>

#include "kernels/common/cuda/launch.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder {
namespace {

using convolution::Convolution, convolution::Direction, matmul::Matmul;

// Why the CUDA rung refuses the problem; empty if it does not.
template <class Primitive>
std::string refusal(const std::string& rung, const typename Primitive::Problem& problem) {
  for (const detail::Entry& entry : detail::entries(Primitive::name)) {
    if (entry.info->place != Place::cuda || entry.info->name != rung) continue;
    try {
      plan_variant<Primitive>(entry, problem, {});
      return "";
    } catch (const Unsupported& reason) {
      return reason.what();
    }
  }
  ADD_FAILURE() << "no rung " << rung;
  return "";
}

// 1 x 1 filters on images of 1 x 1.
convolution::Problem of_channels(Direction direction, std::int64_t in, std::int64_t out,
                                 std::int64_t groups = 1) {
  return {.direction = direction,
          .batch = 1,
          .in_channels = in,
          .height = 1,
          .width = 1,
          .out_channels = out,
          .kernel_h = 1,
          .kernel_w = 1,
          .groups = groups};
}

constexpr std::int64_t most = 65535;  // blocks along y or z
constexpr const char* y_or_z = "along y and z CUDA supports at most 65535";

TEST(GridLimits, SharedMemoryHasABlockForEachSourceChannelOfTheWeights) {
  const auto of = [](std::int64_t channels) {
    return refusal<Convolution>("shared_memory",
                                of_channels(Direction::backward_weights, channels, 1));
  };
  EXPECT_EQ(of(most), "");
  EXPECT_EQ(of(most + 1), std::string("needs a grid of 1 x 65536 x 1 blocks; ") + y_or_z);
}

TEST(GridLimits, SharedMemoryHasABlockForEachTileOfPixels) {
  for (const bool along_rows : {false, true}) {
    convolution::Problem p = of_channels(Direction::forward, 1, 1);
    std::int64_t& extent = along_rows ? p.height : p.width;
    extent = 8 * most;
    EXPECT_EQ(refusal<Convolution>("shared_memory", p), "");
    ++extent;
    EXPECT_NE(refusal<Convolution>("shared_memory", p).find(y_or_z), std::string::npos);
  }
}

// A tile of 2^16 x 2^16 elements; filters of 2^14 x 2^13, for 36 channels each.
TEST(GridLimits, SharedMemoryCountsTheElementsOfATileIn64Bits) {
  convolution::Problem tile = of_channels(Direction::forward, 1, 1);
  tile.height = tile.width = tile.kernel_h = tile.kernel_w = 2;
  tile.stride_h = tile.stride_w = 9362;
  convolution::Problem filters = of_channels(Direction::forward, 1, 1);
  filters.height = filters.kernel_h = 1 << 14;
  filters.width = filters.kernel_w = 1 << 13;
  for (const convolution::Problem& p : {tile, filters}) {
    const std::string why = refusal<Convolution>("shared_memory", p);
    EXPECT_NE(why.find("needs 1"), std::string::npos) << why;  // 17 and 19 GB
    EXPECT_NE(why.find(" bytes of shared memory per block"), std::string::npos) << why;
  }
}

TEST(GridLimits, ImplicitGemmHasABlockForEachGroupAndTileOfChannels) {
  for (const char* const rung : {"implicit_gemm", "tf32_implicit_gemm", "implicit_gemm_split_k"})
    for (const auto direction :
         {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      if (std::string(rung) == "implicit_gemm_split_k" && direction != Direction::backward_weights)
        continue;
      const std::int64_t groups = most + 1, channels = 32 * most + 1;
      EXPECT_EQ(refusal<Convolution>(rung, of_channels(direction, most, most, most)), "");
      EXPECT_NE(
          refusal<Convolution>(rung, of_channels(direction, groups, groups, groups)).find(y_or_z),
          std::string::npos)
          << rung;
      const bool forward = direction != Direction::backward_data;
      EXPECT_NE(refusal<Convolution>(
                    rung, of_channels(direction, forward ? 1 : channels, forward ? channels : 1))
                    .find(y_or_z),
                std::string::npos)
          << rung;
    }
}

TEST(GridLimits, WinogradHasABlockForEachTileOfChannels) {
  convolution::Problem p = of_channels(Direction::forward, 1, 32 * most + 1);
  p.kernel_h = p.kernel_w = 3;
  p.pad_h = p.pad_w = 1;
  EXPECT_NE(refusal<Convolution>("winograd_gemm", p).find(y_or_z), std::string::npos);
  p.in_channels = p.out_channels = p.groups = std::int64_t{1} << 26;  // 2^32 matrices
  EXPECT_EQ(refusal<Convolution>("winograd_gemm", p),
            "supports at most 134217728 tiles and filters");
}

// The last tile would reach beyond 2^31 - 1, and so would the pixels of padding.
TEST(GridLimits, IndicesBeyondTheLastElementFitIntoAnInt) {
  convolution::Problem last_tile = of_channels(Direction::forward, 1, 1);
  last_tile.batch = (std::int64_t{1} << 31) - 100;
  convolution::Problem padding = of_channels(Direction::forward, 1, 1);
  padding.height = padding.width = 32768;
  padding.pad_h = padding.pad_w = 8192;
  padding.stride_h = padding.stride_w = 2;
  for (const convolution::Problem& p : {last_tile, padding})
    for (const char* const rung :
         {"shared_memory", "implicit_gemm", "tf32_implicit_gemm", "tf32_wgmma", "tf32x3_wgmma"})
      EXPECT_EQ(refusal<Convolution>(rung, p),
                "supports operands of at most 2147482624 elements, with their padding")
          << rung;
}

TEST(GridLimits, WgmmaCountsFilterElementsOfPaddedChannels) {
  convolution::Problem p = of_channels(Direction::forward, 1, 1);
  p.height = p.width = p.kernel_h = p.kernel_w = 24000;
  for (const char* const rung : {"tf32_wgmma", "tf32x3_wgmma"})
    EXPECT_NE(refusal<Convolution>(rung, p).find("padded to four"), std::string::npos) << rung;
}

TEST(GridLimits, TheTmaHasCoordinatesOf32Bits) {
  for (const char* const rung :
       {"tf32_wgmma", "tf32x3_wgmma", "tf32_wgmma_cluster", "tf32x3_wgmma_cluster"})
    EXPECT_EQ(refusal<Matmul>(rung, {.m = (std::int64_t{1} << 29) + 4, .n = 4, .k = 4}),
              "a dimension exceeds 2^29, but coordinates of the TMA have 32 bits");
}

TEST(GridLimits, BlocksAlongXAreCountedIn64Bits) {
  EXPECT_EQ(blocks_for(std::int64_t{0x7fffffff} * 256), 0x7fffffffU);
  EXPECT_THROW(blocks_for(std::int64_t{0x7fffffff} * 256 + 1), Unsupported);
  EXPECT_THROW(blocks_for(std::int64_t{1} << 40), Unsupported);
}

}  // namespace
}  // namespace stepladder
