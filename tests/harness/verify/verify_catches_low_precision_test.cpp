// Every fault that a low_precision rung may have is found: in the tails of rows and of k, in the
// signs of integers, in sums that are too narrow, and in the bits behind k.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/low_precision/formats.hpp"
#include "tests/verdict.hpp"

namespace stepladder::low_precision {
namespace {

constexpr Problem problem_in(Format format) {
  return {.m = 7, .n = 19, .k = 133, .format = format};
}

// The product with one thing changed: `widened` gets the elements of A and of B as floats.
template <class Change>
void multiply(const Problem& p, const Operands& o, const Change& change) {
  std::vector<float> a(static_cast<std::size_t>(p.m * p.k)), b(static_cast<std::size_t>(p.n * p.k));
  widen(p, o.a, p.m, true, a.data());
  widen(p, o.b, p.n, false, b.data());
  change(a, b);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += double{a[static_cast<std::size_t>(i * p.k + l)]} *
               double{b[static_cast<std::size_t>(j * p.k + l)]};
      o.c[i * p.n + j] = static_cast<float>(sum);
    }
}

using Floats = std::vector<float>;

void correct(const Problem& p, const Operands& o) {
  multiply(p, o, [](Floats&, Floats&) {});
}
void last_product_left_out(const Problem& p, const Operands& o) {
  multiply(p, o, [&](Floats& a, Floats&) {
    for (std::int64_t i = 0; i < p.m; ++i) a[static_cast<std::size_t>((i + 1) * p.k - 1)] = 0;
  });
}
void last_neuron_left_out(const Problem& p, const Operands& o) {
  Problem fewer = p;
  std::vector<float> c(static_cast<std::size_t>(p.m * --fewer.n));
  multiply(fewer, {.a = o.a, .b = o.b, .c = c.data()}, [](Floats&, Floats&) {});
  for (std::int64_t i = 0; i < p.m; ++i)
    std::copy_n(c.data() + i * fewer.n, fewer.n, o.c + i * p.n);
}
// Activations above 127 as negative numbers.
void signed_activations(const Problem& p, const Operands& o) {
  multiply(p, o, [](Floats& a, Floats&) {
    for (float& value : a) value = value > 127 ? value - 256 : value;
  });
}
void a_bit_less(const Problem& p, const Operands& o) {
  multiply(p, o, [](Floats& a, Floats&) {
    for (float& value : a)
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xfffe0000U);
  });
}
// As if bits behind k stood for -1 in both operands.
void counts_padding(const Problem& p, const Operands& o) {
  correct(p, o);
  for (std::int64_t i = 0; i < p.m * p.n; ++i) o.c[i] += static_cast<float>(8 * row_bytes(p) - p.k);
}
// As vpmaddubsw does: the sum of two neighbouring products is limited to 16 bits.
void saturates(const Problem& p, const Operands& o) {
  const auto* a = static_cast<const std::uint8_t*>(o.a);
  const auto* b = static_cast<const std::int8_t*>(o.b);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < p.n; ++j) {
      std::int32_t sum = 0;
      for (std::int64_t l = 0; l < p.k; l += 2) {
        std::int32_t pair = a[i * p.k + l] * b[j * p.k + l];
        if (l + 1 < p.k) pair += a[i * p.k + l + 1] * b[j * p.k + l + 1];
        sum += std::clamp(pair, -32768, 32767);
      }
      o.c[i * p.n + j] = static_cast<float>(sum);
    }
}
void sums_in_bf16(const Problem& p, const Operands& o) {
  correct(p, o);
  for (std::int64_t i = 0; i < p.m * p.n; ++i) o.c[i] = static_cast<float>(Bf16{bf16_of(o.c[i])});
}
void writes_past_c(const Problem& p, const Operands& o) {
  correct(p, o);
  o.c[p.m * p.n] = 0;
}
void changes_b(const Problem& p, const Operands& o) {
  correct(p, o);
  static_cast<std::byte*>(const_cast<void*>(o.b))[row_bytes(p)] ^= std::byte{1};
}

struct Fault {
  const char* name;
  std::vector<Format> formats;
  Factory<LowPrecision> factory;
  const char* reason;
};

const std::vector<Format> all{Format::bf16, Format::fp16, Format::int8, Format::binary};
const Fault faults[] = {
    {"broken_k", all, plan_of<last_product_left_out>, "c["},
    {"broken_n", all, plan_of<last_neuron_left_out>, "c["},
    {"broken_sign", {Format::int8}, plan_of<signed_activations>, "c["},
    {"broken_pairs", {Format::int8}, plan_of<saturates>, "c["},
    {"broken_precision", {Format::bf16, Format::fp16}, plan_of<a_bit_less>, "c["},
    {"broken_sums", {Format::bf16, Format::fp16, Format::int8}, plan_of<sums_in_bf16>, "c["},
    {"broken_padding", {Format::binary}, plan_of<counts_padding>, "c["},
    {"broken_past", all, plan_of<writes_past_c>, "c was written out of bounds, "},
    {"broken_input", all, plan_of<changes_b>, "input b was changed"},
};

TEST(VerifyCatchesLowPrecision, Faults) {
  for (const Fault& fault : faults)
    for (const Format format : fault.formats)
      EXPECT_TRUE(is_caught<LowPrecision>(
          problem_in(format), unregistered<LowPrecision>(fault.name, fault.factory), fault.reason))
          << name_of(format);
}

TEST(VerifyCatchesLowPrecision, NothingInCorrectKernels) {
  for (const Format format : all) {
    EXPECT_TRUE(first_rungs_pass<LowPrecision>(problem_in(format)));
    EXPECT_TRUE(passes<LowPrecision>(problem_in(format), plan_of<correct>));
  }
}

// Between repetitions, so that a rung that remembers its results is found.
TEST(LowPrecision, ElementsOfAllFormatsCanBeChanged) {
  for (const Format format : all) {
    const std::unique_ptr<Case> owned = filled_case<LowPrecision>(problem_in(format));
    const Variant variant = unregistered<LowPrecision>("correct", plan_of<correct>);
    const auto runner = owned->plan(variant, {});
    const auto hash = [&] {
      runner->run(0);
      return owned->result_hash(*variant.info, 0);
    };
    const std::uint64_t before = hash();
    owned->change(*variant.info, 0, 1, 16);
    EXPECT_NE(hash(), before) << name_of(format);
    owned->restore(*variant.info, 0);
    EXPECT_EQ(hash(), before) << name_of(format);
  }
}

// A k of several blocks, and rows and columns of one more than tiles.
TEST(LowPrecision, RungsKeepSumsBetweenBlocks) {
  for (const Format format : all)
    for (const Problem& problem : {Problem{.m = 33, .n = 49, .k = 9000, .format = format},
                                   Problem{.m = 1, .n = 1, .k = 20000, .format = format}}) {
      const std::unique_ptr<Case> owned = make_case<LowPrecision>(problem, "test", "test");
      std::vector<Variant> here;
      for (const Variant& variant : low_precision_type().variants())
        if (variant.why_unavailable.empty()) here.push_back(variant);
      for (const Verdict& verdict : verdicts_of(*owned, here, 2))
        EXPECT_NE(verdict.outcome, Outcome::failed) << shape(problem) << verdict.reason;
    }
}

}  // namespace
}  // namespace stepladder::low_precision
