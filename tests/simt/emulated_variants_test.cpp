// Every emulated CUDA rung passes `verify` on random problems. One test per rung:
// --gtest_filter='*matmul_naive'.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "harness/problem/random.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/convolution/convolution.hpp"
#include "kernels/layers/layers.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "kernels/sgd_update/sgd_update.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"
#include "tests/verdict.hpp"

namespace stepladder {
namespace {

using Cases = std::vector<std::unique_ptr<Case>>;

// Problems that random ones rarely cover, such as multiples of tiles and vectors.
void add_even_cases(const PrimitiveType& type, Random& random, Cases& cases) {
  const auto add = [&]<class Primitive>(Primitive, const typename Primitive::Problem& problem) {
    if (std::string(type.name()) == Primitive::name)
      cases.push_back(make_case<Primitive>(problem, "even", "even." + shape(problem)));
  };
  const auto multiple = [&](std::int64_t of, std::int64_t most) {
    return of * random.integer(1, most / of);
  };
  const auto layout = [&] {
    return random.coin() ? convolution::Layout::nchw : convolution::Layout::nhwc;
  };
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const std::int64_t of : {4, 4, 32, 128})
        add(matmul::Matmul{}, {.m = multiple(of, 260),
                               .n = multiple(of, 260),
                               .k = multiple(of, 130),
                               .transpose_a = transpose_a,
                               .transpose_b = transpose_b,
                               .epilogue = static_cast<matmul::Epilogue>(random.integer(0, 3))});
  // Few rows and columns, large K.
  add(matmul::Matmul{}, {.m = 64, .n = multiple(2, 12), .k = 257});
  add(matmul::Matmul{},
      {.m = 64, .n = multiple(2, 12), .k = 784, .epilogue = matmul::Epilogue::bias});
  for (const auto direction :
       {convolution::Direction::forward, convolution::Direction::backward_data,
        convolution::Direction::backward_weights})
    for (const std::int64_t kernel : {1, 3, 5})
      add(convolution::Convolution{}, {.direction = direction,
                                       .batch = multiple(2, 4),
                                       .in_channels = multiple(8, 40),
                                       .height = multiple(4, 12),
                                       .width = multiple(4, 16),
                                       .out_channels = multiple(16, 64),
                                       .kernel_h = kernel,
                                       .kernel_w = kernel,
                                       .pad_h = kernel / 2,
                                       .pad_w = kernel / 2,
                                       .layout = layout()});
  // Square kernels and a stride of 1, which some rungs require, with all kinds of tails.
  for (const auto direction :
       {convolution::Direction::forward, convolution::Direction::backward_data,
        convolution::Direction::backward_weights})
    for (const std::int64_t kernel : {3, 3, 3, 5, 5, 5}) {
      const std::int64_t groups = random.integer(1, 3);
      add(convolution::Convolution{}, {.direction = direction,
                                       .batch = random.integer(1, 5),
                                       .in_channels = groups * random.integer(1, 14),
                                       .height = random.integer(kernel, 17),
                                       .width = random.integer(kernel, 17),
                                       .out_channels = groups * random.integer(1, 14),
                                       .kernel_h = kernel,
                                       .kernel_w = kernel,
                                       .pad_h = random.integer(0, kernel),
                                       .pad_w = random.integer(0, kernel),
                                       .groups = groups,
                                       .layout = layout()});
    }
  // Batches of which the workspace holds a few images at a time, and fewer in the last pass.
  for (const auto direction :
       {convolution::Direction::forward, convolution::Direction::backward_data,
        convolution::Direction::backward_weights})
    add(convolution::Convolution{}, {.direction = direction,
                                     .batch = 7,
                                     .in_channels = 40,
                                     .height = 12,
                                     .width = 11,
                                     .out_channels = 40,
                                     .kernel_h = 5,
                                     .kernel_w = 5,
                                     .pad_h = 2,
                                     .pad_w = 2,
                                     .layout = layout()});
  // Enough channels, pixels or weights for the largest tiles.
  const auto add_large = [&](convolution::Direction direction, std::int64_t batch,
                             std::int64_t in_channels, std::int64_t out_channels) {
    add(convolution::Convolution{}, {.direction = direction,
                                     .batch = batch,
                                     .in_channels = in_channels,
                                     .height = 8,
                                     .width = 8,
                                     .out_channels = out_channels,
                                     .kernel_h = 5,
                                     .kernel_w = 5,
                                     .pad_h = 2,
                                     .pad_w = 2,
                                     .layout = layout()});
  };
  add_large(convolution::Direction::forward, 8, 1, 256);
  add_large(convolution::Direction::backward_data, 8, 256, 1);
  add_large(convolution::Direction::backward_weights, 1, 16, 256);
  add(convolution::Convolution{},  // so many tiles that their sum is split
      {.direction = convolution::Direction::backward_weights,
       .batch = 12,
       .in_channels = 1,
       .height = 32,
       .width = 47,
       .out_channels = 2,
       .kernel_h = 3,
       .kernel_w = 3,
       .pad_h = 1,
       .pad_w = 1});
  for (const auto direction : {max_pool::Direction::forward, max_pool::Direction::backward})
    for (const std::int64_t window : {2, 2, 3})
      for (const auto epilogue : {max_pool::Epilogue::none, max_pool::Epilogue::bias_relu})
        add(max_pool::MaxPool{}, {.direction = direction,
                                  .batch = 2,
                                  .channels = multiple(4, 8),
                                  .height = multiple(8, 32),
                                  .width = multiple(8, 64),
                                  .window_h = window,
                                  .window_w = window,
                                  .stride_h = 2,
                                  .stride_w = 2,
                                  .epilogue = epilogue});
  for (const std::int64_t pad : {0, 1})  // the windows of the networks; many blocks per channel
    for (const auto direction : {max_pool::Direction::forward, max_pool::Direction::backward})
      add(max_pool::MaxPool{}, {.direction = direction,
                                .batch = 66,
                                .channels = 2,
                                .height = 33,
                                .width = random.integer(30, 40),
                                .window_h = 2 + pad,
                                .window_w = 2 + pad,
                                .stride_h = 2,
                                .stride_w = 2,
                                .pad_h = pad,
                                .pad_w = pad,
                                .epilogue = max_pool::Epilogue::bias_relu});
  for (const int ranks : {2, 3})  // chunks so long that they are split into segments
    add(all_reduce::AllReduce{}, {.operation = all_reduce::Operation::mean,
                                  .count = ranks * (std::int64_t{1} << 18) + 6,
                                  .ranks = ranks,
                                  .gpus = true});
  // Every layer: planes of whole vectors, and so many pixels, channels or images that each thread
  // adds several terms of a sum.
  for (int layer = 0; layer <= static_cast<int>(layers::Layer::softmax_cross_entropy); ++layer)
    for (const auto direction : {layers::Direction::forward, layers::Direction::backward}) {
      const auto kind = static_cast<layers::Layer>(layer);
      if (!layers::has(kind, direction)) continue;
      layers::Problem p{.layer = kind, .direction = direction, .batch = multiple(8, 24)};
      p.channels = random.integer(17, 70);
      if (kind != layers::Layer::softmax_cross_entropy) {
        p.spatial = multiple(4, 400);
        add(layers::Layers{}, p);
      }
      p.batch = random.integer(33, 150);
      p.spatial = 1;
      add(layers::Layers{}, p);
    }
}

bool supports_nhwc(const Variant& variant) { return variant.info->nhwc; }

bool has_epilogue(const Case& problem, const std::string& name) {
  return problem.info().direction.ends_with(name);
}

// Directions of matmul end with these: "forward_bias", "backward_data_relu_gradient".
constexpr const char* matmul_epilogues[] = {"_bias", "_bias_relu", "_relu_gradient"};

struct Emulated {
  const PrimitiveType* type;
  Variant variant;
};
std::ostream& operator<<(std::ostream& out, const Emulated& emulated) {
  return out << emulated.variant.name;
}

std::vector<Emulated> emulated_variants() {
  std::vector<Emulated> all;
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : type->variants())
      if (variant.info->place == Place::cuda) all.push_back({type, variant});
  return all;
}

class EmulatedVariant : public testing::TestWithParam<Emulated> {};

TEST_P(EmulatedVariant, PassesRandomProblems) {
  const auto& [type, variant] = GetParam();
  ASSERT_EQ(variant.why_unavailable, "");
  simt::seed_order(1);
  const simt::DeferredStreams deferred;
  constexpr int problems = 30;
  Random random(40, type->name());
  Cases cases;
  for (int i = 0; i < problems; ++i) cases.push_back(type->random_case(random, 1));
  add_even_cases(*type, random, cases);
  int passed = 0, passed_with_epilogue = 0, passed_in_nhwc = 0;
  std::map<std::string, int> passed_matmuls;  // by epilogue
  for (const std::unique_ptr<Case>& problem : cases) {
    const Verdict verdict = verdict_of(*problem, variant);
    EXPECT_NE(verdict.outcome, Outcome::failed)
        << problem->info().direction << " " << problem->info().shape << ": " << verdict.reason;
    if (verdict.outcome != Outcome::passed) continue;
    ++passed;
    passed_with_epilogue += has_epilogue(*problem, "_bias_relu");
    for (const char* const name : matmul_epilogues)
      passed_matmuls[name] += has_epilogue(*problem, name);
    passed_in_nhwc += problem->info().layout == "nhwc";
  }
  EXPECT_GT(passed, 0) << variant.name << " supports none of the problems";
  EXPECT_EQ(passed_with_epilogue > 0, variant.info->epilogue) << variant.name;
  if (std::string(type->name()) == matmul::Matmul::name) {
    for (const auto& [name, count] : passed_matmuls)
      EXPECT_EQ(count > 0, variant.info->epilogue) << variant.name << " with " << name;
  }
  EXPECT_EQ(passed_in_nhwc > 0, supports_nhwc(variant)) << variant.name;
}

// So many tiles that every persistent block computes more than one. (With mma instead of wgmma, the
// emulator takes too long for such problems.)
TEST(EmulatedWgmma, PersistentBlocksComputeSeveralTiles) {
  simt::seed_order(2);
  int rungs = 0;
  for (const auto& [type, variant] : emulated_variants()) {
    if (std::string(type->name()) != matmul::Matmul::name ||
        variant.name.find("_wgmma") == std::string::npos)
      continue;
    ++rungs;
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        EXPECT_TRUE(passes<matmul::Matmul>(
            {.m = 516, .n = 600, .k = 68, .transpose_a = transpose_a, .transpose_b = transpose_b},
            variant));
  }
  EXPECT_GT(rungs, 0);
}

INSTANTIATE_TEST_SUITE_P(Cuda, EmulatedVariant, testing::ValuesIn(emulated_variants()),
                         [](const auto& info) {
                           return std::string(info.param.type->name()) + "_" +
                                  info.param.variant.name;
                         });

}  // namespace
}  // namespace stepladder
