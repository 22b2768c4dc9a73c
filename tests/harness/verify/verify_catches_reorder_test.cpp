// Faults of a conversion between formats are found: in rounding, ties, saturation, signs and tails;
// and what random numbers do not show, from infinity to zero, is right in every rung.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/reorder/formats.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::reorder {
namespace {

constexpr Problem problem_to(Format format) {
  return {
      .batch = 3, .channels = 5, .height = 7, .width = 11, .to = Layout::nchw, .to_format = format};
}
constexpr Problem problem_from(Format format) {
  Problem p = problem_to(Format::fp32);
  p.from_format = format;
  return p;
}

// Converts with one thing changed: `change` gets the numbers in fp32.
template <auto change, std::int64_t left_out = 0>
void convert(const Problem& p, const Operands& o) {
  for_types(p, [&]<class From, class To>() {
    for (std::int64_t i = 0; i < p.x_count() - left_out; ++i) {
      const From from = static_cast<const From*>(o.x)[i];
      if constexpr (std::is_same_v<From, float>)
        static_cast<To*>(o.y)[i] = converted<To>(change(from));
      else
        static_cast<To*>(o.y)[i] = change(converted<To>(from));
    }
  });
}

float same(float x) { return x; }
// The bits that bf16 lacks are cut off.
float cuts_off(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
}
float cuts_off_decimals(float x) { return std::trunc(x); }
float ties_to_infinity(float x) { return std::nextafter(x, INFINITY); }
float wraps(float x) {
  return static_cast<float>(static_cast<std::int8_t>(static_cast<std::int64_t>(std::rint(x))));
}
float is_unsigned(float y) { return y < 0 ? y + 256 : y; }

constexpr auto correct = convert<same>;
void writes_past_y(const Problem& p, const Operands& o) {
  correct(p, o);
  static_cast<std::uint8_t*>(o.y)[p.y_count() * bytes_of(p.to_format)] ^= 1U;
}

struct Fault {
  const char* name;
  std::vector<Problem> problems;
  Factory<Reorder> factory;
  const char* reason;
};

const std::vector<Problem> all{problem_to(Format::bf16),   problem_to(Format::fp16),
                               problem_to(Format::int8),   problem_from(Format::bf16),
                               problem_from(Format::fp16), problem_from(Format::int8)};
const Fault faults[] = {
    {"broken_tail", all, plan_of<convert<same, 1>>, "y["},
    {"broken_rounding", {problem_to(Format::bf16)}, plan_of<convert<cuts_off>>, "y["},
    {"broken_decimals", {problem_to(Format::int8)}, plan_of<convert<cuts_off_decimals>>, "y["},
    {"broken_ties",
     {problem_to(Format::bf16), problem_to(Format::fp16), problem_to(Format::int8)},
     plan_of<convert<ties_to_infinity>>,
     "y["},
    {"broken_range", {problem_to(Format::int8)}, plan_of<convert<wraps>>, "y["},
    {"broken_sign", {problem_from(Format::int8)}, plan_of<convert<is_unsigned>>, "y["},
    {"broken_past", all, plan_of<writes_past_y>, "y was written out of bounds, "},
};

TEST(VerifyCatchesReorder, FaultsOfConversions) {
  for (const Fault& fault : faults)
    for (const Problem& problem : fault.problems)
      EXPECT_TRUE(is_caught<Reorder>(problem, unregistered<Reorder>(fault.name, fault.factory),
                                     fault.reason))
          << direction(problem);
}

TEST(VerifyCatchesReorder, NothingInCorrectKernels) {
  for (const Problem& problem : all) {
    EXPECT_TRUE(first_rungs_pass<Reorder>(problem));
    EXPECT_TRUE(passes<Reorder>(problem, plan_of<correct>));
  }
}

TEST(VerifyCatchesReorder, ProblemsThatAreNone) {
  EXPECT_THROW(validate({1, 1, 1, 1, Layout::nchw, Layout::nhwc, Format::int8, Format::int8}),
               std::invalid_argument);
  EXPECT_THROW(validate({1, 1, 1, 1, Layout::nchw, Layout::nchw, Format::int8, Format::fp16}),
               std::invalid_argument);
}

// In a whole vector and in a tail, exactly as the reference.
template <class To>
void expect_special(Format format, const std::vector<float>& special) {
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) x.insert(x.end(), special.begin(), special.end());
  Problem p = problem_to(format);
  p.batch = p.channels = p.height = 1;
  p.width = static_cast<std::int64_t>(x.size());
  std::vector<double> expected(x.size());
  reference(p, x.data(), expected.data());
  std::vector<To> y(x.size());
  int ran = 0;
  for (const Variant& variant : own_rungs(reorder_type())) {
    try {
      plan_variant<Reorder>(variant.entry, p, {})->run({x.data(), y.data()});
    } catch (const Unsupported&) {
      continue;
    }
    ++ran;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto got = static_cast<float>(y[i]);
      EXPECT_TRUE(std::isnan(x[i]) ? std::isnan(got) : got == expected[i])
          << variant.name << ", " << direction(p) << " of " << x[i] << " is " << got;
      EXPECT_TRUE(std::is_integral_v<To> || std::signbit(got) == std::signbit(x[i])) << x[i];
    }
  }
  EXPECT_GE(ran, 3);
}

TEST(VerifyCatchesReorder, NoRungsOnSpecialValues) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float largest = std::numeric_limits<float>::max();
  std::vector<float> special{0.0F,     -0.0F,    infinity, -infinity, largest, -largest,
                             65504.0F, 65519.9F, 65520.0F, 1e-40F,    -3e-39F, 0x1p-25F};
  expect_special<std::int8_t>(Format::int8, special);
  special.push_back(NAN);
  expect_special<Bf16>(Format::bf16, special);
  expect_special<Fp16>(Format::fp16, special);
}

// Results in 16 bits are poisoned before a timed call, too. int8 has no number that none may have.
TEST(VerifyCatchesReorder, ResultsThatWereNotWritten) {
  for (const Problem& problem : all) {
    const std::unique_ptr<Case> owned = make_case<Reorder>(problem, "test", "test");
    const Variant variant = unregistered<Reorder>("correct", plan_of<correct>);
    ASSERT_EQ(verdict_of(*owned, variant).outcome, Outcome::passed);
    EXPECT_EQ(owned->poisoned_sample(*variant.info, 0), "") << direction(problem);
    owned->poison_samples(*variant.info, 0);
    EXPECT_EQ(owned->poisoned_sample(*variant.info, 0),
              problem.to_format == Format::int8
                  ? ""
                  : "y[0, 0, 0, 0] was not written when the call returned")
        << direction(problem);
  }
}

}  // namespace
}  // namespace stepladder::reorder
