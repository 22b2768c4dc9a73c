// Every fault that a convolution rung may have is found, in the directions where it can occur.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/convolution/convolution.hpp"
#include "tests/verdict.hpp"

namespace stepladder::convolution {
namespace {

Problem problem_of(Direction direction) {
  return {.direction = direction,
          .batch = 3,
          .in_channels = 4,
          .height = 7,
          .width = 6,
          .out_channels = 6,
          .kernel_h = 3,
          .kernel_w = 2,
          .stride_h = 2,
          .stride_w = 1,
          .pad_h = 1,
          .pad_w = 1,
          .groups = 2};
}
constexpr Direction directions[] = {Direction::forward, Direction::backward_data,
                                    Direction::backward_weights};

// Indices of one product: image, output channel and pixel, input channel of the group, and position
// in the kernel.
struct Product {
  std::int64_t n, o, row, column, i, r, s;
};

std::int64_t x_index(const Problem& p, const Product& at) {
  const std::int64_t channel = at.o / p.group_out() * p.group_in() + at.i;
  const std::int64_t h = at.row * p.stride_h - p.pad_h + at.r,
                     w = at.column * p.stride_w - p.pad_w + at.s;
  return ((at.n * p.in_channels + channel) * p.height + h) * p.width + w;
}
std::int64_t w_index(const Problem& p, const Product& at) {
  return ((at.o * p.group_in() + at.i) * p.kernel_h + at.r) * p.kernel_w + at.s;
}
std::int64_t y_index(const Problem& p, const Product& at) {
  return ((at.n * p.out_channels + at.o) * p.out_h() + at.row) * p.out_w() + at.column;
}

template <class Visit>
void for_each_product(const Problem& p, const Visit& visit) {
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t o = 0; o < p.out_channels; ++o)
      for (std::int64_t row = 0; row < p.out_h(); ++row)
        for (std::int64_t column = 0; column < p.out_w(); ++column)
          for (std::int64_t i = 0; i < p.group_in(); ++i)
            for (std::int64_t r = 0; r < p.kernel_h; ++r)
              for (std::int64_t s = 0; s < p.kernel_w; ++s) {
                const std::int64_t h = row * p.stride_h - p.pad_h + r,
                                   w = column * p.stride_w - p.pad_w + s;
                if (h >= 0 && h < p.height && w >= 0 && w < p.width)
                  visit(Product{n, o, row, column, i, r, s});
              }
}

float* result(const Problem& p, const Operands& t) {
  return p.direction == Direction::forward         ? t.y
         : p.direction == Direction::backward_data ? t.x
                                                   : t.w;
}
std::int64_t result_count(const Problem& p) {
  return p.direction == Direction::forward         ? p.y_count()
         : p.direction == Direction::backward_data ? p.x_count()
                                                   : p.w_count();
}
void clear(const Problem& p, const Operands& t) {
  std::fill_n(result(p, t), result_count(p), 0.0F);
}

// Adds the product at its indices in the three operands, one of which is the result.
void add(const Problem& p, const Operands& t, std::int64_t x, std::int64_t w, std::int64_t y) {
  if (p.direction == Direction::forward) t.y[y] += t.x[x] * t.w[w];
  if (p.direction == Direction::backward_data) t.x[x] += t.y[y] * t.w[w];
  if (p.direction == Direction::backward_weights) t.w[w] += t.x[x] * t.y[y];
}
void add(const Problem& p, const Operands& t, const Product& at) {
  add(p, t, x_index(p, at), w_index(p, at), y_index(p, at));
}

void convolve(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) { add(p, t, at); });
}

void last_column_left_out(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) {
    if (at.column < p.out_w() - 1) add(p, t, at);
  });
}

void last_image_left_out(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) {
    if (at.n < p.batch - 1) add(p, t, at);
  });
}

// A mathematical convolution, with the kernel flipped.
void kernel_turned_round(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) {
    Product turned = at;
    turned.r = p.kernel_h - 1 - at.r;
    turned.s = p.kernel_w - 1 - at.s;
    add(p, t, x_index(p, at), w_index(p, turned), y_index(p, at));
  });
}

// Rows and columns of the kernel exchanged.
void kernel_transposed(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) {
    const std::int64_t w = ((at.o * p.group_in() + at.i) * p.kernel_w + at.s) * p.kernel_h + at.r;
    add(p, t, x_index(p, at), w, y_index(p, at));
  });
}

// Every group reads the input channels of the first.
void groups_ignored(const Problem& p, const Operands& t) {
  clear(p, t);
  for_each_product(p, [&](const Product& at) {
    const std::int64_t too_far = at.o / p.group_out() * p.group_in() * p.height * p.width;
    add(p, t, x_index(p, at) - too_far, w_index(p, at), y_index(p, at));
  });
}

void accumulates(const Problem& p, const Operands& t) {
  for_each_product(p, [&](const Product& at) { add(p, t, at); });
}

// Two threads add to one element of the result, and one overwrites the other.
void lost_partial_sum(const Problem& p, const Operands& t) {
  clear(p, t);
  std::int64_t products = 0;
  for_each_product(p, [&](const Product& at) {
    if (++products == 100) clear(p, t);
    add(p, t, at);
  });
}

void out_of_bounds_before(const Problem& p, const Operands& t) {
  convolve(p, t);
  result(p, t)[-4] = 1;
}
void out_of_bounds_past(const Problem& p, const Operands& t) {
  convolve(p, t);
  result(p, t)[result_count(p) + 3] = 1;
}
void changes_input(const Problem& p, const Operands& t) {
  convolve(p, t);
  (p.direction == Direction::forward ? t.w : t.y)[1] += 1;
}
void returns_nan(const Problem& p, const Operands& t) {
  convolve(p, t);
  result(p, t)[1] = std::numeric_limits<float>::quiet_NaN();
}
void throws(const Problem&, const Operands&) { throw std::invalid_argument("no workspace"); }

// Packs the weights (backward_weights: dy) in its first run only.
class StalePacking final : public Plan {
 public:
  StalePacking(const Problem& problem, const Resources&) : p_(problem) {}
  void run(const Operands& t) override {
    const bool packs_w = p_.direction != Direction::backward_weights;
    if (packed_.empty())
      packed_.assign(packs_w ? t.w : t.y, packs_w ? t.w + p_.w_count() : t.y + p_.y_count());
    convolve(p_, packs_w ? Operands{t.x, packed_.data(), t.y} : Operands{t.x, t.w, packed_.data()});
  }

 private:
  Problem p_;
  std::vector<float> packed_;
};

// The result of the direction: "y", "dx" or "dw".
std::string result_name(Direction direction) {
  return direction == Direction::forward         ? "y"
         : direction == Direction::backward_data ? "dx"
                                                 : "dw";
}

struct FaultOfTheResult {
  const char* name;
  Factory<Convolution> factory;
  const char* reason;  // after the name of the result
};
constexpr const char* wrong_element = "[";

const FaultOfTheResult faults[] = {
    {"broken_tail", plan_of<last_column_left_out>, wrong_element},
    {"broken_batch", plan_of<last_image_left_out>, wrong_element},
    {"broken_turned_kernel", plan_of<kernel_turned_round>, wrong_element},
    {"broken_transposed_kernel", plan_of<kernel_transposed>, wrong_element},
    {"broken_groups", plan_of<groups_ignored>, wrong_element},
    {"broken_accumulates", plan_of<accumulates>, "[0, 0, 0, 0] is "},
    {"broken_partial_sum", plan_of<lost_partial_sum>, wrong_element},
    {"broken_before", plan_of<out_of_bounds_before>,
     " was written out of bounds, 13 bytes before its start"},
    {"broken_past", plan_of<out_of_bounds_past>, " was written out of bounds, "},
    {"broken_nan", plan_of<returns_nan>, "[0, 0, 0, 1] is nan; expected"},
};

TEST(VerifyCatchesConvolution, FaultsOfTheResultInEveryDirection) {
  for (const FaultOfTheResult& fault : faults)
    for (const Direction direction : directions)
      EXPECT_TRUE(is_caught<Convolution>(problem_of(direction),
                                         unregistered<Convolution>(fault.name, fault.factory),
                                         result_name(direction) + fault.reason));
}

TEST(VerifyCatchesConvolution, WeightsThatArePackedOnce) {
  for (const Direction direction : directions)
    EXPECT_TRUE(is_caught<Convolution>(
        problem_of(direction),
        unregistered<Convolution>("broken_stale", make_plan<Convolution, StalePacking>),
        "a later run of the plan: " + result_name(direction) + "["));
}

// A dw of 25,600 terms that lacks those of one image in 64, by a variant with Winograd's wide
// bound. A bound that grows with the number of terms would accept it.
TEST(VerifyCatchesConvolution, LostTermsOfALongSumUnderANormwiseBound) {
  const Problem problem{.direction = Direction::backward_weights,
                        .batch = 64,
                        .in_channels = 1,
                        .height = 20,
                        .width = 20,
                        .out_channels = 2,
                        .kernel_h = 3,
                        .kernel_w = 3,
                        .pad_h = 1,
                        .pad_w = 1};
  EXPECT_TRUE(is_caught<Convolution>(
      problem, unregistered<Convolution>("broken_batch", plan_of<last_image_left_out>, 512, true),
      "elements wrong"));
  EXPECT_TRUE(passes<Convolution>(
      problem, unregistered<Convolution>("correct", plan_of<convolve>, 512, true)));
}

// y in any layout, by the reference.
void convolve_in_layout(const Problem& p, const Operands& t) {
  std::vector<double> y(static_cast<std::size_t>(p.y_count())), magnitude(y.size());
  reference(p, t, y.data(), magnitude.data());
  std::ranges::copy(y, t.y);
}
// Neighbouring lanes of a vector exchanged: images in chwn, channels in nchw16c.
void lanes_exchanged(const Problem& p, const Operands& t) {
  convolve_in_layout(p, t);
  std::swap(t.y[0], t.y[1]);
}
// The padding channels of the last pixel hold a one, or what was there before.
void padding_of_one(const Problem& p, const Operands& t) {
  convolve_in_layout(p, t);
  t.y[p.y_count() - 1] = 1;
}
void padding_left_out(const Problem& p, const Operands& t) {
  const float before = t.y[p.y_count() - 1];
  convolve_in_layout(p, t);
  t.y[p.y_count() - 1] = before;
}
// Operands taken for those of nchw.
void result_in_nchw(const Problem& p, const Operands& t) {
  Problem plain = p;
  plain.layout = Layout::nchw;
  convolve_in_layout(plain, t);
  std::fill(t.y + plain.y_count(), t.y + p.y_count(), 0.0F);
}

TEST(VerifyCatchesConvolution, FaultsInOtherLayouts) {
  const auto variant = [](const char* name, Factory<Convolution> factory, Layout layout) {
    return unregistered<Convolution>(name, factory, 1.0, false, layout);
  };
  for (const Layout layout : {Layout::nhwc, Layout::chwn, Layout::nchw16c}) {
    Problem p = problem_of(Direction::forward);
    p.layout = layout;
    EXPECT_TRUE(passes<Convolution>(p, variant("correct", plan_of<convolve_in_layout>, layout)))
        << name_of(layout);
    EXPECT_TRUE(is_caught<Convolution>(p, variant("broken_lanes", plan_of<lanes_exchanged>, layout),
                                       "y[0, 0, 0, 0"));
    EXPECT_TRUE(
        is_caught<Convolution>(p, variant("broken_layout", plan_of<result_in_nchw>, layout), "y["));
    if (layout != Layout::nchw16c) continue;
    ASSERT_NE(p.out_channels % 16, 0);
    EXPECT_TRUE(is_caught<Convolution>(
        p, variant("broken_padding", plan_of<padding_of_one>, layout), "is 1; expected 0"));
    EXPECT_TRUE(is_caught<Convolution>(
        p, variant("broken_no_padding", plan_of<padding_left_out>, layout), "nan; expected 0"));
  }
}

TEST(VerifyCatchesConvolution, AnInputThatIsChanged) {
  const Variant variant = unregistered<Convolution>("broken_input", plan_of<changes_input>);
  for (const Direction direction : directions)
    EXPECT_TRUE(is_caught<Convolution>(
        problem_of(direction), variant,
        direction == Direction::forward ? "input w was changed" : "input dy was changed"));
}

TEST(VerifyCatchesConvolution, AnExceptionWithItsText) {
  for (const Direction direction : directions)
    EXPECT_TRUE(is_caught<Convolution>(problem_of(direction),
                                       unregistered<Convolution>("broken_throws", plan_of<throws>),
                                       "threw: no workspace"));
}

TEST(VerifyCatchesConvolution, NothingInCorrectKernels) {
  for (const Direction direction : directions) {
    EXPECT_TRUE(first_rungs_pass<Convolution>(problem_of(direction)));
    EXPECT_TRUE(passes<Convolution>(problem_of(direction), plan_of<convolve>));
  }
}

}  // namespace
}  // namespace stepladder::convolution
