// Every fault that an average_pool rung may have is found: in the divisor, at the border, and in
// the sums of overlapping windows.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "harness/problem/suites.hpp"
#include "kernels/average_pool/average_pool.hpp"
#include "tests/verdict.hpp"

namespace stepladder::average_pool {
namespace {

// Windows overlap and reach into the padding.
constexpr Problem forward_problem{.direction = Direction::forward,
                                  .batch = 2,
                                  .channels = 3,
                                  .height = 9,
                                  .width = 7,
                                  .window_h = 3,
                                  .window_w = 2,
                                  .stride_h = 2,
                                  .stride_w = 1,
                                  .pad_h = 1,
                                  .pad_w = 1};
constexpr Problem in_direction(Direction direction, Count count = Count::include_padding) {
  Problem p = forward_problem;
  p.direction = direction;
  p.count = count;
  return p;
}
constexpr Problem backward_problem = in_direction(Direction::backward);
constexpr Problem forward_exclude = in_direction(Direction::forward, Count::exclude_padding);
constexpr Problem backward_exclude = in_direction(Direction::backward, Count::exclude_padding);

// How a faulty rung differs from a correct one.
struct Faults {
  bool divides_by_the_rows = false;
  std::int64_t columns_left_out = 0;  // of a window
  bool reads_past_the_row = false;    // the right padding is the next row of x
  bool last_image_left_out = false;
};

// Calls visit(index in y, index in x, divisor) for every position inside a plane.
template <Faults faults = Faults{}, class Visit>
void for_each(const Problem& p, const Visit& visit) {
  std::int64_t out = 0;
  const std::int64_t planes = p.planes() - (faults.last_image_left_out ? p.channels : 0);
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = 0; i < p.out_h(); ++i)
      for (std::int64_t j = 0; j < p.out_w(); ++j, ++out) {
        const std::int64_t top = i * p.stride_h - p.pad_h, left = j * p.stride_w - p.pad_w;
        const std::int64_t rows =
            std::min(p.height, top + p.window_h) - std::max<std::int64_t>(0, top);
        const std::int64_t columns =
            std::min(p.width, left + p.window_w) - std::max<std::int64_t>(0, left);
        const std::int64_t divisor = faults.divides_by_the_rows          ? rows
                                     : p.count == Count::include_padding ? p.window_h * p.window_w
                                                                         : rows * columns;
        const std::int64_t end = faults.reads_past_the_row ? p.width + 1 : p.width;
        for (std::int64_t r = std::max<std::int64_t>(0, top);
             r < std::min(p.height, top + p.window_h); ++r)
          for (std::int64_t s = std::max<std::int64_t>(0, left);
               s < std::min(end, left + p.window_w - faults.columns_left_out); ++s)
            visit(out, std::min((plane * p.height + r) * p.width + s, p.x_count() - 1),
                  static_cast<float>(divisor));
      }
}

template <Faults faults = Faults{}>
void pool(const Problem& p, const Operands& o) {
  if (p.direction == Direction::forward) {
    std::vector<float> divisors(static_cast<std::size_t>(p.y_count()), 1.0F);
    const std::int64_t images = faults.last_image_left_out ? p.batch - 1 : p.batch;
    std::fill_n(o.y, p.y_count() / p.batch * images, 0.0F);
    for_each<faults>(p, [&](std::int64_t out, std::int64_t in, float divisor) {
      o.y[out] += o.x[in];
      divisors[static_cast<std::size_t>(out)] = divisor;
    });
    for (std::int64_t i = 0; i < p.y_count(); ++i) o.y[i] /= divisors[static_cast<std::size_t>(i)];
  } else {
    std::fill_n(o.x, p.x_count(), 0.0F);
    for_each<faults>(p, [&](std::int64_t out, std::int64_t in, float divisor) {
      o.x[in] += o.y[out] / divisor;
    });
  }
}

void other_count(const Problem& p, const Operands& o) {
  Problem other = p;
  other.count = p.count == Count::include_padding ? Count::exclude_padding : Count::include_padding;
  pool(other, o);
}
void sums_only(const Problem& p, const Operands& o) {
  pool(p, o);
  for (std::int64_t i = 0; i < p.y_count(); ++i)
    o.y[i] *= static_cast<float>(p.window_h * p.window_w);
}
void writes_past_values(const Problem& p, const Operands& o) {
  pool(p, o);
  o.y[p.y_count()] = 0;
}
void writes_before_gradients(const Problem& p, const Operands& o) {
  pool(p, o);
  o.x[-1] = 0;
}
void changes_x(const Problem& p, const Operands& o) {
  pool(p, o);
  o.x[p.x_count() - 1] = 0.25F;
}
void returns_nan(const Problem& p, const Operands& o) {
  pool(p, o);
  o.y[3] = std::numeric_limits<float>::quiet_NaN();
}
void throws(const Problem&, const Operands&) { throw std::runtime_error("no window"); }
// Right where windows do not overlap.
void overwrites(const Problem& p, const Operands& o) {
  std::fill_n(o.x, p.x_count(), 0.0F);
  for_each(p,
           [&](std::int64_t out, std::int64_t in, float divisor) { o.x[in] = o.y[out] / divisor; });
}
void not_cleared(const Problem& p, const Operands& o) {
  for_each(
      p, [&](std::int64_t out, std::int64_t in, float divisor) { o.x[in] += o.y[out] / divisor; });
}
void scales_dy(const Problem& p, const Operands& o) {
  pool(p, o);
  o.y[0] /= 2;
  o.y[1] += 1;
}

std::span<float> dx(const Problem& p, const Operands& o) {
  return {o.x, static_cast<std::size_t>(p.x_count())};
}

const Fault<AveragePool> faults[] = {
    {"broken_count", forward_problem, plan_of<other_count>, "y["},
    {"broken_count", forward_exclude, plan_of<other_count>, "y["},
    {"broken_count", backward_problem, plan_of<other_count>, "dx["},
    {"broken_count", backward_exclude, plan_of<other_count>, "dx["},
    {"broken_divisor", forward_exclude, plan_of<pool<Faults{.divides_by_the_rows = true}>>, "y["},
    {"broken_divisor", backward_exclude, plan_of<pool<Faults{.divides_by_the_rows = true}>>, "dx["},
    {"broken_sum", forward_problem, plan_of<sums_only>, "y["},
    {"broken_column", forward_problem, plan_of<pool<Faults{.columns_left_out = 1}>>, "y["},
    {"broken_column", backward_problem, plan_of<pool<Faults{.columns_left_out = 1}>>, "dx["},
    {"broken_padding", forward_problem, plan_of<pool<Faults{.reads_past_the_row = true}>>, "y["},
    {"broken_padding", backward_problem, plan_of<pool<Faults{.reads_past_the_row = true}>>, "dx["},
    {"broken_batch", forward_problem, plan_of<pool<Faults{.last_image_left_out = true}>>, "y["},
    {"broken_past", forward_problem, plan_of<writes_past_values>, "y was written out of bounds, "},
    {"broken_before", backward_problem, plan_of<writes_before_gradients>,
     "dx was written out of bounds, "},
    {"broken_input", forward_problem, plan_of<changes_x>, "input x was changed"},
    {"broken_nan", forward_problem, plan_of<returns_nan>, "y[0, 0, 0, 3] is nan; expected"},
    {"broken_throws", forward_problem, plan_of<throws>, "threw: no window"},
    {"broken_overlap", backward_problem, plan_of<overwrites>, "dx["},
    {"broken_accumulates", backward_problem, plan_of<not_cleared>, "dx[0, 0, 0, 0] is "},
    {"broken_input", backward_problem, plan_of<scales_dy>, "input dy was changed"},
    {"broken_stale", backward_problem, make_plan<AveragePool, StaleResult<AveragePool, pool<>, dx>>,
     "a later run of the plan: dx["},
};

TEST(VerifyCatchesAveragePool, Faults) {
  for (const auto& fault : faults) EXPECT_TRUE(fault.is_caught());
}

TEST(VerifyCatchesAveragePool, NothingInCorrectKernels) {
  for (const Problem& problem :
       {forward_problem, backward_problem, forward_exclude, backward_exclude}) {
    EXPECT_TRUE(first_rungs_pass<AveragePool>(problem));
    EXPECT_TRUE(passes<AveragePool>(problem, plan_of<pool<>>));
  }
}

// Where every divisor is a power of two, results are compared bit for bit.
TEST(VerifyAveragePool, TheExactTierNeedsDivisorsThatArePowersOfTwo) {
  const auto has_exact_tier = [](const char* shape) {
    return shape_problems(average_pool_type(), shape, 1).front()->has_exact_tier();
  };
  EXPECT_TRUE(has_exact_tier("1x1x8x8x4x2x2x2x2x0"));
  EXPECT_TRUE(has_exact_tier("1x1x8x8x4x2x2x2x2x0 count=exclude_padding"));   // 2 or 4 rows inside
  EXPECT_FALSE(has_exact_tier("1x1x8x8x4x2x2x2x1x0 count=exclude_padding"));  // 3 rows inside
  EXPECT_TRUE(has_exact_tier("1x1x8x8x4x2x2x2x1x0"));
  EXPECT_FALSE(has_exact_tier("1x1x8x8x3x2x2x2x1x0"));
}

}  // namespace
}  // namespace stepladder::average_pool
