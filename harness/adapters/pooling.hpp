// What the adapters of max_pool and average_pool have in common: the columns of a suite, and random
// planes and windows. `Problem` is the primitive's.
#pragma once

#include <algorithm>
#include <vector>

#include "harness/adapters/filling.hpp"
#include "harness/problem/primitive_type.hpp"

namespace stepladder {

inline std::vector<SuiteColumn> pooling_columns() {
  return {{"batch"},
          {"channels"},
          {"height"},
          {"width"},
          {"window_h"},
          {"window_w"},
          {"stride_h", {"1"}},
          {"stride_w", {"1"}},
          {"pad_h", {"0"}},
          {"pad_w", {"0"}},
          {"direction", {"forward", "backward"}}};
}

// The problem of these columns, not yet validated.
template <class Problem>
Problem read_pooling(const CsvRow& row) {
  constexpr std::int64_t most = 1 << 20;
  using Direction = decltype(Problem::direction);
  const Problem p{
      .direction = read_name<Direction>(
          row, "direction", {{"forward", Direction::forward}, {"backward", Direction::backward}}),
      .batch = row.integer("batch", 1, most),
      .channels = row.integer("channels", 1, most),
      .height = row.integer("height", 1, most),
      .width = row.integer("width", 1, most),
      .window_h = row.integer("window_h", 1, most),
      .window_w = row.integer("window_w", 1, most),
      .stride_h = row.integer("stride_h", 1, most),
      .stride_w = row.integer("stride_w", 1, most),
      .pad_h = row.integer("pad_h", 0, most),
      .pad_w = row.integer("pad_w", 0, most),
      .layout = read_layout(row)};
  expect_countable(row, "x, padding included,",
                   {p.batch, p.channels, p.height + 2 * p.pad_h, p.width + 2 * p.pad_w});
  return p;
}

// Of x and dx, or of y and dy.
template <class Problem>
std::vector<std::int64_t> input_extents(const Problem& p) {
  return image_extents(p.layout, p.batch, p.channels, p.height, p.width);
}
template <class Problem>
std::vector<std::int64_t> output_extents(const Problem& p) {
  return image_extents(p.layout, p.batch, p.channels, p.out_h(), p.out_w());
}

// One problem in four is in chwn or nchw16c. Its innermost dimension is several vectors and a tail.
template <class Problem>
void draw_layout(Random& random, Problem& p) {
  const std::int64_t layout = random.integer(0, 7);
  if (layout > 1) return;
  p.layout = layout == 0 ? Layout::chwn : Layout::nchw16c;
  if (random.coin()) p.direction = decltype(p.direction)::forward;
  p.width = std::min<std::int64_t>(p.width, std::max<std::int64_t>(p.window_w, 9));
  if (p.layout == Layout::chwn)
    p.batch = random.integer(1, 70);
  else
    p.channels = random.integer(1, 40);
}

template <class Problem>
Problem random_pooling(Random& random) {
  using Direction = decltype(Problem::direction);
  Problem p;
  p.direction = random.coin() ? Direction::forward : Direction::backward;
  p.batch = random.integer(1, 3);
  p.channels = random.integer(1, 7);
  if (random.integer(0, 2) == 0) {  // the windows that networks have
    p.window_h = p.window_w = random.integer(2, 3);
    p.stride_h = p.stride_w = 2;
  } else {
    p.window_h = random.integer(1, 6);
    p.window_w = random.integer(1, 6);
    p.stride_h = random.integer(1, 4);
    p.stride_w = random.integer(1, 4);
  }
  p.pad_h = random.integer(0, p.window_h - 1);
  p.pad_w = random.integer(0, p.window_w - 1);
  p.height = random.integer(std::max<std::int64_t>(1, p.window_h - 2 * p.pad_h), 24);
  p.width = random.integer(std::max<std::int64_t>(1, p.window_w - 2 * p.pad_w), 80);
  draw_layout(random, p);
  return p;
}

}  // namespace stepladder
