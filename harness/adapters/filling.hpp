// Helpers of the adapters: to read suites, to fill operands, and to bound errors.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/adapters/typed_case.hpp"
#include "harness/io/csv.hpp"

namespace stepladder {

// Rejects an operand that no memory could hold, before its size overflows.
inline void expect_countable(const CsvRow& row, const char* operand,
                             std::initializer_list<std::int64_t> sizes) {
  double elements = 1;
  for (const std::int64_t size : sizes) elements *= static_cast<double>(size);
  if (elements > 0x1p48)
    row.fail(fmt::format("{} has {:.3g} elements; expected 2.8e14 at most", operand, elements));
}

// What the text of a column stands for.
template <class Value>
Value read_name(const CsvRow& row, const char* column,
                std::initializer_list<std::pair<const char*, Value>> names) {
  const std::string& text = row.text(column);
  std::string expected;
  for (const auto& name : names) {
    if (text == name.first) return name.second;
    if (!expected.empty()) expected += &name == names.end() - 1 ? " or " : ", ";
    expected += *name.first == '\0' ? "nothing" : name.first;
  }
  row.fail(fmt::format("column {} holds \"{}\"; expected {}", column, text, expected));
}

inline Layout read_layout(const CsvRow& row, const char* column = "layout") {
  return read_name<Layout>(row, column,
                           {{"", Layout::nchw},
                            {"nchw", Layout::nchw},
                            {"nhwc", Layout::nhwc},
                            {"chwn", Layout::chwn},
                            {"nchw16c", Layout::nchw16c}});
}

// The only problem of a line. A problem that its contract excludes is an error of the line.
template <class Primitive>
std::vector<std::unique_ptr<Case>> case_of_row(const CsvRow& row,
                                               const typename Primitive::Problem& problem) {
  if constexpr (requires { validate(problem); }) {
    try {
      validate(problem);
    } catch (const std::invalid_argument& error) {
      row.fail(error.what());
    }
  }
  std::vector<std::unique_ptr<Case>> all;
  all.push_back(make_case<Primitive>(problem, row.text("suite"), row.text("name")));
  return all;
}

// A problem that was drawn, named after what distinguishes it.
template <class Primitive>
std::unique_ptr<Case> random_case_of(const typename Primitive::Problem& problem) {
  std::string name = "random.";
  if constexpr (requires { problem.layout; }) name += std::string(name_of(problem.layout)) + ".";
  return make_case<Primitive>(problem, "random", name + direction(problem) + "." + shape(problem));
}

// A dimension of a random product: mostly small, with odd tails; sometimes 1, or larger than a
// block of a few hundred.
inline std::int64_t random_matrix_size(Random& random) {
  const std::int64_t kind = random.integer(0, 9);
  return kind == 0 ? 1 : kind == 1 ? random.integer(200, 600) : random.integer(1, 100);
}

// Sets padding channels to 0. `values` is [outer, blocks, inner, 16] in layout nchw16c, for x, for
// example, [batch, blocks, height · width, 16]; others have no padding.
inline void clear_padding(Layout layout, std::int64_t outer, std::int64_t channels,
                          std::int64_t inner, float* values) {
  const std::int64_t stored = stored_channels(layout, channels);
  const std::int64_t padding = stored - channels;
  if (padding == 0) return;
  for (std::int64_t i = 0; i < outer; ++i) {
    float* last = values + ((i + 1) * stored - block_channels) * inner;  // block
    for (std::int64_t j = 1; j <= inner; ++j)
      std::fill_n(last + j * block_channels - padding, padding, 0.0F);
  }
}

// Names and cost of a problem, from its primitive's contract.
template <class Problem>
ProblemInfo describe(const char* primitive, const char* layout, const Problem& problem,
                     std::string suite, std::string name) {
  return {.primitive = primitive,
          .direction = direction(problem),
          .suite = std::move(suite),
          .name = std::move(name),
          .shape = shape(problem),
          .layout = layout,
          .flops = flops(problem),
          .bytes_read = bytes_read(problem),
          .bytes_written = bytes_written(problem)};
}

// The value with the last 16 bits of its significand such that bf16, fp16 and TF32 all round it
// towards zero, by a quarter to a half of their last bit. The errors of products do not cancel
// then.
inline float between_narrow_values(float value) {
  if (std::abs(value) < 0x1p-10F) return value;
  constexpr std::uint32_t zeros = 0x9000, ones = 0x4800;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) & ~zeros) | ones);
}

// A whole number of magnitude `largest` at most. Without 0 where only -1 and 1 are left, so that no
// term of a long sum can be lost unseen.
inline float small_integer(Random& random, std::int64_t largest) {
  if (largest == 1) return random.coin() ? 1.0F : -1.0F;
  return static_cast<float>(random.integer(-largest, largest));
}

// Terms of sums. Exact tier: integers so small that `largest_sum` of ones sums without rounding.
inline void fill_terms(Tier tier, double largest_sum, Random& random, float* values,
                       std::int64_t count) {
  const auto largest = static_cast<std::int64_t>(std::clamp(0x1p24 / largest_sum, 1.0, 64.0));
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = tier == Tier::exact ? small_integer(random, largest) : random.uniform(-1.0F, 1.0F);
}

// Exact tier: integers so small that `terms` products of two of them sum without rounding in fp32.
// Signs are random: more than 2^24 terms of -1 and 1 sum exactly too, in any order that does not
// depend on them. A partial sum of n passes 2^24 with a probability below 2 exp(-2^47 / n): never,
// for what fits into memory.
// Accuracy tier: uniform(-0.5, 1), so that sums grow with their length as the errors of operands in
// a narrower format do: errors that the bound of a long sum would hide otherwise.
inline void fill_values(Tier tier, double terms, Random& random, float* values,
                        std::int64_t count) {
  const auto largest =
      static_cast<std::int64_t>(std::clamp(std::floor(std::sqrt(0x1p24 / terms)), 1.0, 8.0));
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = tier == Tier::exact ? small_integer(random, largest)
                                    : between_narrow_values(random.uniform(-0.5F, 1.0F));
}

// Over ranks: the stream of the values below. All ranks draw the same one.
inline std::uint64_t stream_of_ranks(Random random) {
  return static_cast<std::uint64_t>(
      random.integer(0, std::numeric_limits<std::int64_t>::max() - 1));
}

// A hash of (stream, rank, index), by the finalizer of SplitMix64: every rank can compute the
// values of the others. Exact tier: multiples of `multiple`, up to 16 of them. Accuracy tier: all
// bits of a float in [-1, 1], so that the sum of three values depends on their order.
inline float value_of_rank(Tier tier, std::int64_t multiple, std::uint64_t stream, int rank,
                           std::int64_t i) {
  std::uint64_t h =
      (stream ^ (static_cast<std::uint64_t>(rank) << 40U)) + static_cast<std::uint64_t>(i);
  h = (h ^ (h >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27U)) * 0x94d049bb133111ebULL;
  h ^= h >> 31U;
  if (tier == Tier::accuracy)
    return static_cast<float>(static_cast<std::int32_t>(h >> 32U)) * 0x1p-31F;
  return static_cast<float>(multiple * (static_cast<std::int64_t>(h % 33) - 16));
}

// The error of a sum of n products, over the sum of their magnitudes: the smaller of two bounds.
// u = 2^-24.
// - n u holds for every n and in any order (Jeannerod and Rump 2013).
// - exp(lambda sqrt(n) u + n u^2 / (1 - u)) - 1 holds for roundings that are independent and have
//   mean zero (Higham and Mary 2019). All operands are random, so that roundings are as good as
//   that. A correct sum exceeds it with a probability of 2 exp(-lambda^2 / 2) at most.
// They meet near n = lambda^2.
inline constexpr double lambda = 8;  // a probability of 2.5e-14
inline double rounding_bound(double terms) {
  constexpr double u = 0x1p-24;
  return std::min(terms * u, std::expm1(lambda * std::sqrt(terms) * u + terms * u * u / (1 - u)));
}

// The bound of a sum of `terms` products: 0 in the exact tier.
inline void bound_sums(Tier tier, double terms, const std::vector<double>& magnitude,
                       Expected& expected) {
  expected.bound.resize(magnitude.size());
  const double factor = tier == Tier::exact ? 0.0 : rounding_bound(terms + 2);
  expected.unit = factor;
  for (std::size_t i = 0; i < magnitude.size(); ++i)
    expected.bound[i] =
        std::nextafter(static_cast<float>(factor * magnitude[i]),
                       tier == Tier::exact ? 0.0F : std::numeric_limits<float>::infinity());
}

// For Expected::largest_sum.
inline double largest_sum(Tier tier, double terms, std::span<const float> a,
                          std::span<const float> b) {
  const auto largest = [](std::span<const float> values) {
    double found = 0;
    for (const float value : values) found = std::max(found, std::abs(double{value}));
    return found;
  };
  return tier == Tier::exact ? 0.0 : terms * largest(a) * largest(b);
}

}  // namespace stepladder
