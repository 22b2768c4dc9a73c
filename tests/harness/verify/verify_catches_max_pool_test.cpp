// Every fault that a max_pool rung may have is found: in values, arg-max and scattered gradients,
// and in the epilogue: bias, ReLU and its mask, and the gradient of the bias.
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/max_pool/max_pool.hpp"
#include "tests/verdict.hpp"

namespace stepladder::max_pool {
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
constexpr Problem backward_problem = [] {
  Problem p = forward_problem;
  p.direction = Direction::backward;
  return p;
}();

constexpr Problem with_epilogue(Problem p) {
  p.epilogue = Epilogue::bias_relu;
  return p;
}
constexpr Problem forward_bias_relu = with_epilogue(forward_problem);
constexpr Problem backward_bias_relu = with_epilogue(backward_problem);

// How a faulty rung differs from a correct one.
struct Faults {
  bool last_of_equals = false, starts_at_zero = false, places_by_column = false;
  bool last_image_left_out = false;
};

template <Faults faults = Faults{}>
void pool(const Problem& p, const Operands& o) {
  const std::int64_t out_h = p.out_h(), out_w = p.out_w();
  const std::int64_t planes = p.planes() - (faults.last_image_left_out ? p.channels : 0);
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        float best = faults.starts_at_zero ? 0 : -std::numeric_limits<float>::infinity();
        std::int64_t place = 0;
        for (std::int64_t r = 0; r < p.window_h; ++r)
          for (std::int64_t s = 0; s < p.window_w; ++s) {
            const std::int64_t row = i * p.stride_h - p.pad_h + r,
                               column = j * p.stride_w - p.pad_w + s;
            if (row < 0 || row >= p.height || column < 0 || column >= p.width) continue;
            const float value = o.x[(plane * p.height + row) * p.width + column];
            if (value > best || (faults.last_of_equals && value == best)) {
              best = value;
              place = faults.places_by_column ? s * p.window_h + r : r * p.window_w + s;
            }
          }
        o.y[(plane * out_h + i) * out_w + j] = best;
        o.argmax[(plane * out_h + i) * out_w + j] = static_cast<std::uint8_t>(place);
      }
}

void writes_before_places(const Problem& p, const Operands& o) {
  pool(p, o);
  o.argmax[-1] = 0;
}
void writes_past_values(const Problem& p, const Operands& o) {
  pool(p, o);
  o.y[p.y_count()] = 0;
}
void changes_x(const Problem& p, const Operands& o) {
  pool(p, o);
  o.x[p.x_count() - 1] = 0.25F;
}
void returns_nan(const Problem& p, const Operands& o) {
  pool(p, o);
  o.y[3] = std::numeric_limits<float>::quiet_NaN();
}
void places_unwritten(const Problem& p, const Operands& o) {
  std::vector<std::uint8_t> elsewhere(static_cast<std::size_t>(p.y_count()));
  pool(p, {o.x, o.y, elsewhere.data()});
}
void throws(const Problem&, const Operands&) { throw std::runtime_error("no window"); }

std::int64_t place_in_x(const Problem& p, const Operands& o, std::int64_t plane, std::int64_t i,
                        std::int64_t j) {
  const std::int64_t place = o.argmax[(plane * p.out_h() + i) * p.out_w() + j];
  const std::int64_t row = i * p.stride_h - p.pad_h + place / p.window_w;
  return (plane * p.height + row) * p.width + j * p.stride_w - p.pad_w + place % p.window_w;
}

template <class Scatter>
void scatter(const Problem& p, const Operands& o, const Scatter& each) {
  for (std::int64_t plane = 0; plane < p.planes(); ++plane)
    for (std::int64_t i = 0; i < p.out_h(); ++i)
      for (std::int64_t j = 0; j < p.out_w(); ++j)
        each(o.x[place_in_x(p, o, plane, i, j)], o.y[(plane * p.out_h() + i) * p.out_w() + j]);
}

void correct_backward(const Problem& p, const Operands& o) {
  std::fill_n(o.x, p.x_count(), 0.0F);
  scatter(p, o, [](float& dx, float dy) { dx += dy; });
}
// Right where windows do not overlap.
void overwrites(const Problem& p, const Operands& o) {
  std::fill_n(o.x, p.x_count(), 0.0F);
  scatter(p, o, [](float& dx, float dy) { dx = dy; });
}
void not_cleared(const Problem& p, const Operands& o) {
  scatter(p, o, [](float& dx, float dy) { dx += dy; });
}
void changes_places(const Problem& p, const Operands& o) {
  correct_backward(p, o);
  o.argmax[0] ^= 1;
}

std::int64_t channel_of(const Problem& p, std::int64_t index) {  // of an element of y
  return index / (p.out_h() * p.out_w()) % p.channels;
}

float relu(float value) { return std::max(0.0F, value); }
float bias_relu(float y, float bias) { return relu(y + bias); }
float without_bias(float y, float) { return relu(y); }
float without_relu(float y, float bias) { return y + bias; }
float relu_before_bias(float y, float bias) { return relu(y) + bias; }

// With the bias of a channel `shift` further.
template <auto finish, std::int64_t shift = 0>
void pool_then(const Problem& p, const Operands& o) {
  pool(p, o);
  for (std::int64_t i = 0; i < p.y_count(); ++i)
    o.y[i] = finish(o.y[i], o.bias[(channel_of(p, i) + shift) % p.channels]);
}

// passes(dy, y) and counts(dy, y): whether a window's gradient goes to dx, and to dbias.
template <auto passes, auto counts>
void gradients(const Problem& p, const Operands& o) {
  std::fill_n(o.x, p.x_count(), 0.0F);
  std::fill_n(o.dbias, p.channels, 0.0F);
  const float* y = o.forward_y;
  scatter(p, o, [&](float& dx, float dy) { dx += passes(dy, *y++) ? dy : 0; });
  for (std::int64_t i = 0; i < p.y_count(); ++i)
    o.dbias[channel_of(p, i)] += counts(o.y[i], o.forward_y[i]) ? o.y[i] : 0;
}
bool is_positive(float, float y) { return y > 0; }
bool is_anything(float, float) { return true; }
bool is_not_positive(float, float y) { return y <= 0; }
bool has_positive_gradient(float dy, float) { return dy > 0; }

constexpr auto correct_gradients = gradients<is_positive, is_positive>;
void last_image_not_summed(const Problem& p, const Operands& o) {
  correct_gradients(p, o);
  std::fill_n(o.dbias, p.channels, 0.0F);
  for (std::int64_t i = 0; i < p.y_count() / p.batch * (p.batch - 1); ++i)
    o.dbias[channel_of(p, i)] += o.forward_y[i] > 0 ? o.y[i] : 0;
}
void dbias_not_cleared(const Problem& p, const Operands& o) {
  std::vector<float> sums(o.dbias, o.dbias + p.channels);
  correct_gradients(p, o);
  for (std::int64_t c = 0; c < p.channels; ++c) o.dbias[c] += sums[static_cast<std::size_t>(c)];
}
void masks_in_place(const Problem& p, const Operands& o) {
  correct_gradients(p, o);
  for (std::int64_t i = 0; i < p.y_count(); ++i)
    if (!(o.forward_y[i] > 0)) o.y[i] = 0;
}

std::span<float> dx(const Problem& p, const Operands& o) {
  return {o.x, static_cast<std::size_t>(p.x_count())};
}

const Fault<MaxPool> faults[] = {
    {"broken_ties", forward_problem, plan_of<pool<Faults{.last_of_equals = true}>>, "argmax["},
    {"broken_negatives", forward_problem, plan_of<pool<Faults{.starts_at_zero = true}>>, "y["},
    {"broken_places", forward_problem, plan_of<pool<Faults{.places_by_column = true}>>, "argmax["},
    {"broken_batch", forward_problem, plan_of<pool<Faults{.last_image_left_out = true}>>, "y["},
    {"broken_before", forward_problem, plan_of<writes_before_places>,
     "argmax was written out of bounds, 1 bytes before its start"},
    {"broken_past", forward_problem, plan_of<writes_past_values>, "y was written out of bounds, "},
    {"broken_input", forward_problem, plan_of<changes_x>, "input x was changed"},
    {"broken_nan", forward_problem, plan_of<returns_nan>, "y[0, 0, 0, 3] is nan; expected"},
    {"broken_unwritten", forward_problem, plan_of<places_unwritten>,
     "argmax[0, 0, 0, 0] is 255; expected"},
    {"broken_throws", forward_problem, plan_of<throws>, "threw: no window"},
    {"broken_overlap", backward_problem, plan_of<overwrites>, "dx["},
    {"broken_accumulates", backward_problem, plan_of<not_cleared>, "dx[0, 0, 0, 0] is "},
    {"broken_input", backward_problem, plan_of<changes_places>, "input argmax was changed"},
    {"broken_stale", backward_problem,
     make_plan<MaxPool, StaleResult<MaxPool, correct_backward, dx>>,
     "a later run of the plan: dx["},
    {"broken_bias", forward_bias_relu, plan_of<pool_then<without_bias>>, "y["},
    {"broken_relu", forward_bias_relu, plan_of<pool_then<without_relu>>, "y["},
    {"broken_order", forward_bias_relu, plan_of<pool_then<relu_before_bias>>, "y["},
    {"broken_channel", forward_bias_relu, plan_of<pool_then<bias_relu, 1>>, "y["},
    {"broken_plain", forward_bias_relu, plan_of<pool<>>, "y["},
    {"broken_mask", backward_bias_relu, plan_of<gradients<is_anything, is_anything>>, "dx["},
    {"broken_sign", backward_bias_relu, plan_of<gradients<is_not_positive, is_not_positive>>,
     "dx["},
    {"broken_mask_of_dy", backward_bias_relu,
     plan_of<gradients<has_positive_gradient, has_positive_gradient>>, "dx["},
    {"broken_sum", backward_bias_relu, plan_of<gradients<is_positive, is_anything>>, "dbias["},
    {"broken_batch_sum", backward_bias_relu, plan_of<last_image_not_summed>, "dbias["},
    {"broken_sum_accumulates", backward_bias_relu, plan_of<dbias_not_cleared>, "dbias[0] is "},
    {"broken_dy", backward_bias_relu, plan_of<masks_in_place>, "input dy was changed"},
    {"broken_plain", backward_bias_relu, plan_of<correct_backward>, "dx["},
};

TEST(VerifyCatchesMaxPool, Faults) {
  for (const auto& fault : faults) EXPECT_TRUE(fault.is_caught());
}

TEST(VerifyCatchesMaxPool, NothingInCorrectKernels) {
  const std::pair<Problem, Factory<MaxPool>> correct[] = {
      {forward_problem, plan_of<pool<>>},
      {backward_problem, plan_of<correct_backward>},
      {forward_bias_relu, plan_of<pool_then<bias_relu>>},
      {backward_bias_relu, plan_of<correct_gradients>}};
  for (const auto& [problem, factory] : correct) {
    EXPECT_TRUE(first_rungs_pass<MaxPool>(problem));
    EXPECT_TRUE(passes<MaxPool>(problem, factory));
  }
}

TEST(VerifyMaxPool, AnEpilogueIsRefusedByRungsThatSupportNone) {
  int rungs = 0;
  for (const Variant& variant : primitive(MaxPool::name).variants()) {
    if (variant.info->epilogue || !variant.why_unavailable.empty()) continue;
    if (variant.info->layout != Layout::nchw) continue;  // an epilogue has no other layout
    ++rungs;
    const Verdict verdict = verdict_of<MaxPool>(forward_bias_relu, variant);
    EXPECT_EQ(verdict.outcome, Outcome::unavailable) << variant.name;
    EXPECT_EQ(verdict.reason, "supports no epilogue (bias and ReLU)") << variant.name;
  }
  EXPECT_GT(rungs, 0);
}

}  // namespace
}  // namespace stepladder::max_pool
