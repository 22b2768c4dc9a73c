// Selects in place of branches. Whether the next value is a new maximum is a coin toss that the
// processor guesses wrong every few places; a select costs the same whatever the outcome. The other
// tests leave the loops: windows are clipped to the plane before they are walked, and only windows at
// the border need clipping. Backward looks the place's offset up in place of dividing by the width.
#include <algorithm>
#include <limits>

#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

struct Range {  // [begin, end) of a window's rows or columns
  std::int64_t begin, end;
};

// What lies inside the plane of a window that starts at `start`, which may be negative.
Range clip(std::int64_t start, std::int64_t window, std::int64_t plane) {
  return {std::max<std::int64_t>(0, -start), std::min(window, plane - start)};
}

class Branchless final : public Plan {
 public:
  Branchless(const Problem& p, const Resources&) : p_(p) {
    for (std::int64_t place = 0; place < p.window_h * p.window_w; ++place)
      offset_[place] = place / p.window_w * p.width + place % p.window_w;
    // Output columns [interior.begin, interior.end) have their whole window inside the plane.
    interior_.begin = std::min(p.out_w(), (p.pad_w + p.stride_w - 1) / p.stride_w);
    const std::int64_t room =
        p.width + p.pad_w - p.window_w;  // furthest start, from the padded edge
    interior_.end =
        std::max(interior_.begin, room < 0 ? 0 : std::min(p.out_w(), room / p.stride_w + 1));
  }

  void run(const Operands& o) override {
    if (p_.direction == Direction::forward)
      forward(o);
    else
      backward(o);
  }

 private:
  void forward(const Operands& o) const {
    const Problem p = p_;
    const std::int64_t out_h = p.out_h(), out_w = p.out_w();
    for (std::int64_t plane = 0; plane < p.planes(); ++plane)
      for (std::int64_t i = 0; i < out_h; ++i) {
        const std::int64_t top = i * p.stride_h - p.pad_h;
        const Range rows = clip(top, p.window_h, p.height);
        const float* row = o.x + (plane * p.height + top) * p.width - p.pad_w;  // of window (i, 0)
        float* y = o.y + (plane * out_h + i) * out_w;
        std::uint8_t* argmax = o.argmax + (plane * out_h + i) * out_w;
        const auto border = [&](std::int64_t j) {
          largest(row + j * p.stride_w, rows, clip(j * p.stride_w - p.pad_w, p.window_w, p.width),
                  y + j, argmax + j);
        };
        for (std::int64_t j = 0; j < interior_.begin; ++j) border(j);
        for (std::int64_t j = interior_.begin; j < interior_.end; ++j)
          largest(row + j * p.stride_w, rows, {0, p.window_w}, y + j, argmax + j);
        for (std::int64_t j = interior_.end; j < out_w; ++j) border(j);
      }
  }

  void largest(const float* corner, Range rows, Range columns, float* y,
               std::uint8_t* argmax) const {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t best_place = rows.begin * p_.window_w + columns.begin;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s) {
        const float value = corner[r * p_.width + s];
        const std::int64_t place = r * p_.window_w + s;
        best_place = value > best ? place : best_place;
        best = value > best ? value : best;
      }
    *y = best;
    *argmax = static_cast<std::uint8_t>(best_place);
  }

  void backward(const Operands& o) const {
    const Problem p = p_;
    const std::int64_t out_h = p.out_h(), out_w = p.out_w();
    std::fill_n(o.x, p.x_count(), 0.0F);
    for (std::int64_t plane = 0; plane < p.planes(); ++plane)
      for (std::int64_t i = 0; i < out_h; ++i) {
        float* row = o.x + (plane * p.height + i * p.stride_h - p.pad_h) * p.width - p.pad_w;
        const float* dy = o.y + (plane * out_h + i) * out_w;
        const std::uint8_t* argmax = o.argmax + (plane * out_h + i) * out_w;
        for (std::int64_t j = 0; j < out_w; ++j) row[j * p.stride_w + offset_[argmax[j]]] += dy[j];
      }
  }

  Problem p_;
  Range interior_;
  std::int64_t offset_[256];  // of a place from the corner of its window, in x
};

constexpr VariantInfo info{
    .name = "branchless",
    .technique = Technique::serial,
    .builds_on = "serial",
    .adds = "selects in place of branches; windows clipped once, so that no place is tested",
};

const Registration registration{info, make_plan<MaxPool, Branchless>};

}  // namespace
}  // namespace stepladder::max_pool
