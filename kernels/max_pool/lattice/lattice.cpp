// The lattice of max_pool: windows clipped to the plane before their loops, and every combination
// of three techniques.
//
//   separable   forward: the maxima of columns, over the rows of the windows, go into a line; then
//               those of the windows along the line: r + s comparisons for a window of r · s.
//               backward has no such form and stays as it is
//   vectors     forward: 4, 8 or 16 columns per instruction; windows at the border one by one.
//               backward: each dx gathered from its windows, as in `simd`; otherwise scattered
//   threads     each has a contiguous range of planes
#include "kernels/common/lattice.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/planes.hpp"
#include "kernels/common/cpu/strided.hpp"
#include "kernels/max_pool/cpu/simd/pooling.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

constexpr Switch switches[] = {
    {"separable", Idea::algorithm}, {"vectors", Idea::vectors}, {"threads", Idea::threads}};

constexpr float lowest = -std::numeric_limits<float>::infinity();

// Lanes: float or Vector.
template <class Lanes>
constexpr std::int64_t lanes_of = std::is_same_v<Lanes, float> ? 1 : Vector::size;

float choose(bool condition, float a, float b) { return condition ? a : b; }
Vector choose(const Vector::batch_bool_type& condition, const Vector& a, const Vector& b) {
  return xsimd::select(condition, a, b);
}
void store(float* p, float v) { *p = v; }
void store(float* p, const Vector& v) { v.store_unaligned(p); }
void store_position(std::uint8_t* p, float v) { *p = static_cast<std::uint8_t>(v); }
void store_position(std::uint8_t* p, const Vector& v) { store_argmax(p, v); }

// Maxima so far and the positions of the first of equals.
template <class Lanes>
struct Best {
  Lanes value, position;
  void compare(const Lanes& other, const Lanes& other_position) {
    const auto comes_first = (other > value) | ((other == value) & (other_position < position));
    value = choose(comes_first, other, value);
    position = choose(comes_first, other_position, position);
  }
};

template <unsigned corner>
class Corner final : public Plan {
  static constexpr bool separable = (corner & 1U) != 0, vectors = (corner & 2U) != 0;
  using Wide = std::conditional_t<vectors, Vector, float>;

 public:
  Corner(const Problem& p, const Resources& resources)
      : p_(p),
        threads_(plane_threads(p.planes(), p.x_count(), resources.threads)),
        line_(separable ? p.width + line_floats : 0),
        lines_(aligned_array<float>(static_cast<std::size_t>(2 * line_ * threads_))) {
    if (p.direction == Direction::backward) {
      if (vectors) gather_.emplace(p, threads_);
      return;
    }
    // The windows of output columns [interior.begin, interior.end) are inside the plane.
    interior_.begin = std::min(p.out_w(), ceil_div(p.pad_w, p.stride_w));
    const std::int64_t last_start = p.width + p.pad_w - p.window_w;
    interior_.end = std::max(interior_.begin,
                             last_start < 0 ? 0 : std::min(p.out_w(), last_start / p.stride_w + 1));
    std::int32_t steps[Vector::size];
    for (std::size_t i = 0; i < Vector::size; ++i)
      steps[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * p.stride_w);
    steps_ = xsimd::as_integer_t<Vector>::load_unaligned(steps);
  }

  void run(const Operands& o) override {
    for_each_part(p_.planes(), threads_, [&](const Range& planes, int thread) {
      if (gather_) return gather_->run(o, planes.begin, planes.end, thread);
      for (std::int64_t plane = planes.begin; plane < planes.end; ++plane)
        if (p_.direction == Direction::forward)
          pool(o, plane, thread);
        else
          scatter(o, plane);
    });
  }

 private:
  // One plane of dx.
  void scatter(const Operands& o, std::int64_t plane) const {
    const Problem p = p_;
    const std::int64_t out_h = p.out_h(), out_w = p.out_w();
    float* dx = o.x + plane * p.height * p.width;
    std::fill_n(dx, p.height * p.width, 0.0F);
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        const std::int64_t from = (plane * out_h + i) * out_w + j, position = o.argmax[from];
        dx[(i * p.stride_h - p.pad_h + position / p.window_w) * p.width + j * p.stride_w - p.pad_w +
           position % p.window_w] += o.y[from];
      }
  }

  // One plane.
  void pool(const Operands& o, std::int64_t plane, int thread) const {
    const Problem p = p_;  // a copy, because byte stores may alias anything
    const std::int64_t out_h = p.out_h(), out_w = p.out_w();
    float* line = lines_.get() + 2 * line_ * thread;
    for (std::int64_t i = 0; i < out_h; ++i) {
      const std::int64_t top = i * p.stride_h - p.pad_h;
      const Range rows = inside(top, p.window_h, p.height);
      const float* x = o.x + (plane * p.height + top) * p.width;  // row 0 of the windows
      float* y = o.y + (plane * out_h + i) * out_w;
      std::uint8_t* argmax = o.argmax + (plane * out_h + i) * out_w;
      if constexpr (separable) {
        std::int64_t c = 0;
        for (; c + lanes_of<Wide> <= p.width; c += lanes_of<Wide>)
          column_maxima<Wide>(x + c, rows, line + c);
        for (; c < p.width; ++c) column_maxima<float>(x + c, rows, line + c);
      }
      const auto window = [&]<class Lanes>(Lanes, std::int64_t j) {
        const std::int64_t left = j * p.stride_w - p.pad_w;
        const Range columns = j < interior_.begin || j >= interior_.end
                                  ? inside(left, p.window_w, p.width)
                                  : Range{0, p.window_w};
        const Best<Lanes> best = separable ? along_line<Lanes>(line + left, columns)
                                           : all_positions<Lanes>(x + left, rows, columns);
        store(y + j, best.value);
        store_position(argmax + j, best.position);
      };
      std::int64_t j = 0;
      for (; j < interior_.begin; ++j) window(float{}, j);
      for (; j + lanes_of<Wide> <= interior_.end; j += lanes_of<Wide>) window(Wide{}, j);
      for (; j < out_w; ++j) window(float{}, j);
    }
  }

  template <class Lanes>
  Best<Lanes> all_positions(const float* x, Range rows, Range columns) const {
    Best<Lanes> best{Lanes(lowest),
                     Lanes(static_cast<float>(rows.begin * p_.window_w + columns.begin))};
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s)
        best.compare(load<Lanes>(x + r * p_.width + s),
                     Lanes(static_cast<float>(r * p_.window_w + s)));
    return best;
  }

  // The maxima of columns, and behind them, line_ floats further, r · window_w of their rows r.
  template <class Lanes>
  void column_maxima(const float* x, Range rows, float* line) const {
    Best<Lanes> best{Lanes(lowest), Lanes(static_cast<float>(rows.begin * p_.window_w))};
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      Lanes value;
      if constexpr (lanes_of<Lanes> == 1)
        value = x[r * p_.width];
      else
        value = Lanes::load_unaligned(x + r * p_.width);
      best.compare(value, Lanes(static_cast<float>(r * p_.window_w)));
    }
    store(line, best.value);
    store(line + line_, best.position);
  }

  template <class Lanes>
  Best<Lanes> along_line(const float* line, Range columns) const {
    Best<Lanes> best{
        load<Lanes>(line + columns.begin),
        load<Lanes>(line + line_ + columns.begin) + Lanes(static_cast<float>(columns.begin))};
    for (std::int64_t s = columns.begin + 1; s < columns.end; ++s)
      best.compare(load<Lanes>(line + s),
                   load<Lanes>(line + line_ + s) + Lanes(static_cast<float>(s)));
    return best;
  }

  // p[0], p[stride_w], p[2 stride_w], …
  template <class Lanes>
  Lanes load(const float* p) const {
    if constexpr (lanes_of<Lanes> == 1)
      return *p;
    else
      return p_.stride_w == 1   ? strided<1, Vector>(p, steps_)
             : p_.stride_w == 2 ? strided<2, Vector>(p, steps_)
                                : strided<0, Vector>(p, steps_);
  }

  Problem p_;
  int threads_;
  std::int64_t line_;          // floats
  AlignedArray<float> lines_;  // [threads, 2, line]
  Range interior_;
  std::optional<SimdPooling> gather_;  // backward on vectors
  xsimd::as_integer_t<Vector> steps_;
};

constexpr Lattice lattice{.below = "branchless", .switches = switches};
[[maybe_unused]] const bool registered = register_corners<MaxPool, Corner>(
    lattice, std::make_integer_sequence<unsigned, 1U << (std::size(switches) - 1)>{});

}  // namespace
}  // namespace stepladder::max_pool
