// The codes of the compressed all-reduce rungs, on plain vectors and without ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/all_reduce/mpi/compressed/byte_planes.hpp"
#include "kernels/all_reduce/mpi/compressed/largest_elements.hpp"
#include "kernels/all_reduce/mpi/compressed/low_rank.hpp"
#include "kernels/all_reduce/mpi/compressed/narrow_floats.hpp"
#include "kernels/all_reduce/mpi/compressed/sign_code.hpp"

namespace stepladder::all_reduce {
namespace {

using Values = std::vector<float>;

Values uniform(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  Values values(count);
  for (float& v : values) v = draw(random);
  return values;
}

double norm(const Values& values) {
  double sum = 0;
  for (const float v : values) sum += double{v} * double{v};
  return std::sqrt(sum);
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// --- 16 bits -------------------------------------------------------------------------------------

TEST(NarrowFloats, Fp16DecodesByFormula) {
  for (std::uint32_t code = 0; code < 0x8000; ++code) {
    const auto exponent = static_cast<int>(code >> 10);
    const double fraction = (code & 0x3ff) / 1024.0;
    const float decoded = float_of_fp16(static_cast<std::uint16_t>(code));
    if (exponent == 31)
      EXPECT_EQ(std::isnan(decoded), fraction != 0);
    else
      EXPECT_EQ(decoded, exponent == 0 ? std::ldexp(fraction, -14)
                                       : std::ldexp(1 + fraction, exponent - 15));
    EXPECT_EQ(bits(float_of_fp16(static_cast<std::uint16_t>(code | 0x8000))) ^ bits(decoded),
              0x80000000u);
  }
}

// Between two neighbours the nearer one, and halfway the one with an even last bit.
TEST(NarrowFloats, Fp16RoundsToNearestEven) {
  for (std::uint16_t code = 0; code < 0x7bff; ++code) {
    const float low = float_of_fp16(code);
    const float high = float_of_fp16(static_cast<std::uint16_t>(code + 1));
    const float middle = (low + high) / 2;
    EXPECT_EQ(fp16_of(low), code);
    EXPECT_EQ(fp16_of(-low), code | 0x8000);
    EXPECT_EQ(fp16_of(middle), code + (code & 1));
    EXPECT_EQ(fp16_of(std::nextafter(middle, low)), code);
    EXPECT_EQ(fp16_of(std::nextafter(middle, high)), code + 1);
  }
  EXPECT_EQ(fp16_of(65519.0f), 0x7bff);
  EXPECT_EQ(fp16_of(65520.0f), 0x7c00);
}

TEST(NarrowFloats, Fp16InstructionsAndFormulasAgree) {
  if (!has_fp16_instructions()) GTEST_SKIP() << "this CPU has no F16C";
  std::mt19937 random(1);
  Values values;
  for (int i = 0; i < 100003; ++i)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 100003; ++i)
    values.push_back(std::ldexp(static_cast<float>(random() % 8192), int(random() % 40) - 30));
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint16_t> by_instruction(values.size()), by_formula(values.size());
  to_fp16(values.data(), count, 0.25f, by_instruction.data(), true);
  to_fp16(values.data(), count, 0.25f, by_formula.data(), false);
  EXPECT_EQ(by_instruction, by_formula);
  Values decoded(values.size()), decoded_by_formula(values.size());
  from_fp16(by_formula.data(), count, 4, decoded.data(), true);
  from_fp16(by_formula.data(), count, 4, decoded_by_formula.data(), false);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(bits(decoded[i]), bits(decoded_by_formula[i])) << by_formula[i];
}

TEST(NarrowFloats, Bf16RoundsToNearestEven) {
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const auto low_bits = static_cast<std::uint32_t>(random()) & 0xffff0000u;
    if ((low_bits & 0x7f800000u) >= 0x7f000000u) continue;
    const Values values{std::bit_cast<float>(low_bits), std::bit_cast<float>(low_bits + 0x7fff),
                        std::bit_cast<float>(low_bits + 0x8000),
                        std::bit_cast<float>(low_bits + 0x8001)};
    std::uint16_t code[4];
    Bf16::encode(values.data(), 4, code);
    const std::uint32_t low = low_bits >> 16;
    EXPECT_EQ(code[0], low);
    EXPECT_EQ(code[1], low);
    EXPECT_EQ(code[2], low + (low & 1));
    EXPECT_EQ(code[3], low + 1);
  }
  const Values special{std::bit_cast<float>(0x7fffffffu), std::bit_cast<float>(0xff800001u),
                       std::numeric_limits<float>::infinity()};
  std::uint16_t code[3];
  Values decoded(3);
  Bf16::encode(special.data(), 3, code);
  Bf16::decode(code, 3, decoded.data());
  EXPECT_TRUE(std::isnan(decoded[0]) && std::isnan(decoded[1]));
  EXPECT_EQ(decoded[2], special[2]);
}

TEST(NarrowFloats, Fp16ScaleFollowsTheBlock) {
  for (const float size : {1e-30f, 1e-8f, 1.0f, 1e6f, 1e38f}) {
    Values values = uniform(2500, 3);
    for (float& v : values) v *= size;
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::uint16_t> code(static_cast<std::size_t>(Fp16::code_length(count)));
    Values decoded(values.size());
    Fp16::encode(values.data(), count, code.data());
    Fp16::decode(code.data(), count, decoded.data());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_LE(std::abs(decoded[i] - values[i]), 0x1p-11f * std::abs(values[i]) + 0x1p-40f * size);
  }
  Values zeros(3), decoded(3, 1.0f);
  std::uint16_t code[4];
  Fp16::encode(zeros.data(), 3, code);
  Fp16::decode(code, 3, decoded.data());
  EXPECT_EQ(decoded, zeros);
}

// The chain of one chunk through the ring: a rounding per hop. Largest error over 5 u sum|x|.
template <class Format>
double worst_error_of_ring(int ranks, double u, std::size_t count) {
  std::vector<double> sum(count), magnitude(count);
  std::vector<std::uint16_t> code(
      static_cast<std::size_t>(Format::code_length(static_cast<std::int64_t>(count))));
  std::vector<std::uint16_t> next(code.size());
  for (int rank = 0; rank < ranks; ++rank) {
    const Values values = uniform(count, static_cast<unsigned>(1000 * ranks + rank));
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += double{values[i]};
      magnitude[i] += std::abs(double{values[i]});
    }
    if (rank == 0)
      Format::encode(values.data(), static_cast<std::int64_t>(count), code.data());
    else
      Format::add_and_encode(code.data(), values.data(), static_cast<std::int64_t>(count),
                             next.data()),
          code.swap(next);
  }
  Values result(count);
  Format::decode(code.data(), static_cast<std::int64_t>(count), result.data());
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i)
    worst = std::max(worst, std::abs(double{result[i]} - sum[i]) / (5 * u * magnitude[i]));
  return worst;
}

TEST(NarrowFloats, ErrorOfTheRingIsBoundedUpTo1024Ranks) {
  for (const int ranks : {2, 3, 4, 5, 8, 16, 64, 256, 1024}) {
    const auto count = static_cast<std::size_t>(ranks > 64 ? 20000 : 200000);
    const double bf16 = worst_error_of_ring<Bf16>(ranks, 0x1p-8, count);
    const double fp16 = worst_error_of_ring<Fp16>(ranks, 0x1p-11, count);
    EXPECT_LE(bf16, 1) << ranks;
    EXPECT_LE(fp16, 1) << ranks;
    EXPECT_GE(bf16, 0.1) << "a bound so loose proves nothing: " << ranks;
    EXPECT_GE(fp16, 0.1) << ranks;
  }
}

// --- Codes with error feedback -------------------------------------------------------------------

// v = values + residual; residual becomes v - C(v), and C(v) is returned.
using Compress = std::function<Values(const Values& values, Values& residual)>;

Values by_sign(const Values& values, Values& residual) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> code(static_cast<std::size_t>(sign_code_bytes(count)));
  encode_signs(values.data(), residual.data(), count, code.data());
  Values decoded(values.size());
  decode_signs(code.data(), count, decoded.data());
  Values added(values.size(), 1.0f);
  add_decoded_signs(code.data(), count, added.data());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(added[i], 1 + decoded[i]);
  return decoded;
}

Values by_top_k(const Values& values, Values& residual) {
  const auto count = static_cast<std::int64_t>(values.size());
  const auto k = static_cast<std::size_t>(top_k_of(count));
  std::vector<std::uint32_t> indices(k);
  Values selected(k), decoded(values.size());
  LargestElements(count).take(values.data(), residual.data(), count, static_cast<std::int64_t>(k),
                              indices.data(), selected.data());
  for (std::size_t i = 0; i < k; ++i) decoded[indices[i]] += selected[i];
  return decoded;
}

// With the state that a plan has.
struct LowRank {
  LowRankShape shape;
  Values p, q;
  std::uint64_t calls = 0;
  explicit LowRank(std::size_t count)
      : shape(static_cast<std::int64_t>(count)),
        p(static_cast<std::size_t>(shape.p_length())),
        q(static_cast<std::size_t>(shape.q_length())) {
    start_low_rank(shape, q.data());
  }
  Values operator()(const Values& values, Values& residual) {
    left_factor(shape, values.data(), residual.data(), q.data(), p.data());
    orthonormalize(shape, ++calls, p.data());
    right_factor(shape, residual.data(), p.data(), q.data());
    subtract_product(shape, p.data(), q.data(), residual.data());
    Values product(values.size());
    low_rank_product(shape, p.data(), q.data(), product.data());
    return product;
  }
};

void expect_contraction(const Compress& compress, const Values& v, double contraction,
                        const std::string& what) {
  Values residual(v.size());
  const Values decoded = compress(v, residual);
  EXPECT_LE(norm(residual), std::sqrt(1 - contraction) * norm(v) * (1 + 1e-6)) << what;
  for (std::size_t i = 0; i < v.size(); ++i)
    ASSERT_NEAR(decoded[i] + residual[i], v[i], 1e-5 * (1 + std::abs(v[i]))) << what << " " << i;
}

std::vector<Values> vectors_of(std::size_t count) {
  std::vector<Values> all{uniform(count, 5)};
  Values spike(count), equal(count, -0.5f), steep(count);
  spike[count / 2] = 3;
  for (std::size_t i = 0; i < count; ++i) steep[i] = std::pow(0.9f, static_cast<float>(i % 97));
  for (const Values& v : {spike, equal, steep}) all.push_back(v);
  return all;
}

TEST(GradientCompression, CodesContract) {
  for (const std::size_t count : {1, 2, 3, 63, 64, 65, 1000, 4097, 70001})
    for (const Values& v : vectors_of(count)) {
      expect_contraction(by_sign, v, sign_contraction, "signs of " + std::to_string(count));
      expect_contraction(by_top_k, v, top_k_contraction, "largest of " + std::to_string(count));
      expect_contraction(LowRank(count), v, low_rank_contraction,
                         "low rank of " + std::to_string(count));
    }
}

TEST(GradientCompression, TopKSelectsExactly) {
  for (const std::size_t count : {1, 64, 65, 1000, 70001})
    for (const Values& v : vectors_of(count)) {
      Values residual(count);
      const Values selected = by_top_k(v, residual);
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(
          order, [&](std::size_t a, std::size_t b) { return std::abs(v[a]) > std::abs(v[b]); });
      Values expected(count);
      for (std::int64_t i = 0; i < top_k_of(static_cast<std::int64_t>(count)); ++i)
        expected[order[static_cast<std::size_t>(i)]] = v[order[static_cast<std::size_t>(i)]];
      EXPECT_EQ(selected, expected) << count;
    }
}

TEST(GradientCompression, BytePlanesJoinToTheSameBits) {
  for (const std::size_t count : {0, 1, 15, 64, 1001}) {
    Values values = uniform(count, 6);
    if (count > 1) values[1] = -0.0f;
    std::vector<std::byte> planes(4 * count);
    Values joined(count);
    split_planes(values.data(), static_cast<std::int64_t>(count), planes.data());
    join_planes(planes.data(), static_cast<std::int64_t>(count), joined.data());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(bits(joined[i]), bits(values[i]));
  }
  const float one = 1;
  std::byte planes[4];
  split_planes(&one, 1, planes);
  EXPECT_EQ(planes[3], std::byte{127}) << "the exponent has a plane of its own";
}

// Inputs, then zeros: the residual fades, so the outputs sum to the inputs.
TEST(GradientCompression, WhatIsLostComesLater) {
  constexpr std::size_t count = 5000;
  const Values g = uniform(count, 7);
  const Values zero(count);
  LowRank low_rank(count);
  for (const Compress& compress :
       {Compress(by_sign), Compress(by_top_k), Compress(std::ref(low_rank))}) {
    Values residual(count);
    std::vector<double> sum(count);
    for (int call = 0; call < 2000; ++call) {
      const Values out = compress(call < 4 ? g : zero, residual);
      for (std::size_t i = 0; i < count; ++i) sum[i] += double{out[i]};
    }
    EXPECT_LE(norm(residual), 1e-3 * norm(g));
    for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(sum[i], 4 * g[i], 0.02) << i;
  }
}

// --- SGD -----------------------------------------------------------------------------------------

// Four workers, each with its own minimum: f_r(w) = 1/2 (w - w_r)' A (w - w_r), A tridiagonal with
// eigenvalues between 0.2 and 1. Their gradients are not zero at the common minimum, the mean of
// all w_r. Distance from it after SGD with a falling step size, relative to that at the start.
constexpr int workers = 4;
constexpr int steps = 4000;

double distance_after_sgd(const std::vector<Compress>& compress, bool feedback) {
  constexpr std::size_t size = 1000;
  std::vector<Values> minima;
  for (int r = 0; r < workers; ++r) minima.push_back(uniform(size, 10 + static_cast<unsigned>(r)));
  Values w(size, 2), mean(size);
  for (const Values& minimum : minima)
    for (std::size_t i = 0; i < size; ++i) mean[i] += minimum[i] / workers;
  const auto distance = [&] {
    Values difference(size);
    for (std::size_t i = 0; i < size; ++i) difference[i] = w[i] - mean[i];
    return norm(difference);
  };
  const double start = distance();
  std::vector<Values> residuals(workers, Values(size));
  for (int step = 0; step < steps; ++step) {
    const float rate = 0.5f / (1 + static_cast<float>(step) / 50);
    Values sum(size);
    for (std::size_t r = 0; r < workers; ++r) {
      Values difference(size), gradient(size);
      for (std::size_t i = 0; i < size; ++i) difference[i] = w[i] - minima[r][i];
      for (std::size_t i = 0; i < size; ++i)
        gradient[i] = 0.6f * difference[i] - 0.2f * (i > 0 ? difference[i - 1] : 0) -
                      0.2f * (i + 1 < size ? difference[i + 1] : 0);
      if (!feedback) std::ranges::fill(residuals[r], 0.0f);
      const Values sent = compress.empty() ? gradient : compress[r](gradient, residuals[r]);
      for (std::size_t i = 0; i < size; ++i) sum[i] += sent[i];
    }
    for (std::size_t i = 0; i < size; ++i) w[i] -= rate * sum[i] / workers;
  }
  return distance() / start;
}

TEST(GradientCompression, SgdFindsTheMinimumWithFeedbackAlone) {
  const double exact = distance_after_sgd({}, true);
  const std::vector<Compress> sign(workers, by_sign), top_k(workers, by_top_k);
  std::vector<LowRank> states(workers, LowRank(1000));
  std::vector<Compress> low_rank;
  for (LowRank& state : states) low_rank.emplace_back(std::ref(state));
  EXPECT_LE(exact, 1e-5);
  EXPECT_LE(distance_after_sgd(sign, true), 0.01);
  EXPECT_LE(distance_after_sgd(top_k, true), 0.01);
  EXPECT_LE(distance_after_sgd(low_rank, true), 0.01);
  EXPECT_GE(distance_after_sgd(sign, false), 0.2) << "without error feedback";
  EXPECT_GE(distance_after_sgd(top_k, false), 0.2) << "without error feedback";
}

}  // namespace
}  // namespace stepladder::all_reduce
