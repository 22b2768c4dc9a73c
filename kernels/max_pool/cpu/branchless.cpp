// Selects instead of branches. Whether a value is a new maximum is random, and the processor
// mispredicts the branch every few positions; a select has a constant cost. The other tests leave
// the inner loops: windows at the border are clipped to the plane before the loops. Backward
// replaces divisions by the window's width with a table of offsets.
#include <algorithm>
#include <limits>

#include "kernels/common/cpu/planes.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

class Branchless final : public Plan {
 public:
  Branchless(const Problem& p, const Resources&) : p_(p) {
    for (std::int64_t position = 0; position < p.window_h * p.window_w; ++position)
      offset_[position] = position / p.window_w * p.width + position % p.window_w;
    // The windows of output columns [interior.begin, interior.end) are inside the plane.
    interior_.begin = std::min(p.out_w(), ceil_div(p.pad_w, p.stride_w));
    const std::int64_t last_start = p.width + p.pad_w - p.window_w;  // from the padded edge
    interior_.end = std::max(interior_.begin,
                             last_start < 0 ? 0 : std::min(p.out_w(), last_start / p.stride_w + 1));
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
        const Range rows = inside(top, p.window_h, p.height);
        const float* row = o.x + (plane * p.height + top) * p.width - p.pad_w;  // of window (i, 0)
        float* y = o.y + (plane * out_h + i) * out_w;
        std::uint8_t* argmax = o.argmax + (plane * out_h + i) * out_w;
        const auto border = [&](std::int64_t j) {
          find_maximum(row + j * p.stride_w, rows,
                       inside(j * p.stride_w - p.pad_w, p.window_w, p.width), y + j, argmax + j);
        };
        for (std::int64_t j = 0; j < interior_.begin; ++j) border(j);
#pragma omp simd
        for (std::int64_t j = interior_.begin; j < interior_.end; ++j)
          find_maximum(row + j * p.stride_w, rows, {0, p.window_w}, y + j, argmax + j);
        for (std::int64_t j = interior_.end; j < out_w; ++j) border(j);
      }
  }

  void find_maximum(const float* corner, Range rows, Range columns, float* y,
                    std::uint8_t* argmax) const {
    float best = -std::numeric_limits<float>::infinity();
    std::int64_t best_position = rows.begin * p_.window_w + columns.begin;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s) {
        const float value = corner[r * p_.width + s];
        const std::int64_t position = r * p_.window_w + s;
        best_position = value > best ? position : best_position;
        best = value > best ? value : best;
      }
    *y = best;
    *argmax = static_cast<std::uint8_t>(best_position);
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
  std::int64_t offset_[256];  // in x, of a window position from the window's corner
};

constexpr VariantInfo info{
    .name = "branchless",
    .technique = Technique::serial,
    .builds_on = "serial",
    .adds = "selects instead of branches; windows are clipped before their loops",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<MaxPool, Branchless>};

}  // namespace
}  // namespace stepladder::max_pool
