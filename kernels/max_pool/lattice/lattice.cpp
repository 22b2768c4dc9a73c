// The lattice of max_pool: windows clipped to the plane before their loops, and every combination
// of three techniques.
//
//   separable   forward: the maxima of columns, over the rows of the windows, go into a line; then
//               those of the windows along the line: r + s comparisons for a window of r · s.
//               backward has no such form and stays as it is
//   vectors     forward: columns of windows inside the plane, in the widest vectors that they
//               fill; windows at the border one by one. backward: each dx gathered from its
//               windows, as in `simd`; otherwise scattered
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

// Maxima so far and the positions of the first of equals. Lanes: float, or a vector.
template <class Lanes>
struct Best {
  using Position = std::conditional_t<std::is_same_v<Lanes, float>, std::int64_t, Lanes>;
  Lanes value;
  Position position;

  void compare_next(const Lanes& other, const Position& other_position) {  // of a larger position
    choose(other > value, other, other_position);
  }
  void compare(const Lanes& other, const Position& other_position) {
    choose((other > value) | ((other == value) & (other_position < position)), other,
           other_position);
  }

 private:
  template <class Condition>
  void choose(const Condition& comes_first, const Lanes& other, const Position& other_position) {
    if constexpr (std::is_same_v<Lanes, float>) {  // without a branch
      position = comes_first ? other_position : position;
      value = other > value ? other : value;
    } else {
      position = xsimd::select(comes_first, other_position, position);
      value = xsimd::select(comes_first, other, value);
    }
  }
};

template <class Lanes>
typename Best<Lanes>::Position position_of(std::int64_t in_window) {
  if constexpr (std::is_same_v<Lanes, float>)
    return in_window;
  else
    return Lanes(static_cast<float>(in_window));
}

template <unsigned corner>
class Corner final : public Plan {
  static constexpr bool separable = (corner & 1U) != 0, vectors = (corner & 2U) != 0;

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
    for (std::size_t i = 0; i < std::size(steps_); ++i)
      steps_[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) * p.stride_w);
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
  // One plane of dx. Neither this nor pool is inlined, so that one thread and several execute the
  // same instructions.
  [[gnu::noinline]] void scatter(const Operands& o, std::int64_t plane) const {
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
  [[gnu::noinline]] void pool(const Operands& o, std::int64_t plane, int thread) const {
    const Problem p = p_;  // a copy, because byte stores may alias anything
    const std::int64_t out_h = p.out_h(), out_w = p.out_w();
    float* line = lines_.get() + 2 * line_ * thread;
    for (std::int64_t i = 0; i < out_h; ++i) {
      const std::int64_t top = i * p.stride_h - p.pad_h;
      const Range rows = inside(top, p.window_h, p.height);
      const float* x = o.x + (plane * p.height + top) * p.width;  // row 0 of the windows
      float* y = o.y + (plane * out_h + i) * out_w;
      std::uint8_t* argmax = o.argmax + (plane * out_h + i) * out_w;
      if constexpr (separable)
        for_lanes_of({0, p.width}, [&]<class Lanes>(Lanes, std::int64_t c) {
          column_maxima<Lanes>(x + c, rows, line + c);
        });
      const auto window = [&]<class Lanes>(Lanes, std::int64_t j) {
        const std::int64_t left = j * p.stride_w - p.pad_w;
        const Range columns = j < interior_.begin || j >= interior_.end
                                  ? inside(left, p.window_w, p.width)
                                  : Range{0, p.window_w};
        const Best<Lanes> best = separable ? along_line<Lanes>(line + left, columns)
                                           : all_positions<Lanes>(x + left, rows, columns);
        store(best.value, y + j);
        store(best.position, argmax + j);
      };
      for (std::int64_t j = 0; j < interior_.begin; ++j) window(float{}, j);
      for_lanes_of(interior_, window);
      for (std::int64_t j = interior_.end; j < out_w; ++j) window(float{}, j);
    }
  }

  // Calls use(Lanes{}, j) for the columns in range, in the widest vectors that they fill. The last
  // one repeats columns of the one before.
  template <class Use>
  static void for_lanes_of(Range range, const Use& use) {
    const std::int64_t count = range.end - range.begin;
    std::int64_t j = range.begin;
    if constexpr (vectors)
      with_width(count / 2 + 1, [&]<class V>(V*) {
        constexpr std::int64_t lanes = V::size;
        if (count < lanes) return;
        for (; j + lanes <= range.end; j += lanes) use(V(), j);
        if (j < range.end) use(V(), range.end - lanes);
        j = range.end;
      });
    for (; j < range.end; ++j) use(float{}, j);
  }

  template <class Lanes>
  Best<Lanes> all_positions(const float* x, Range rows, Range columns) const {
    Best<Lanes> best{Lanes(lowest), position_of<Lanes>(rows.begin * p_.window_w + columns.begin)};
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      for (std::int64_t s = columns.begin; s < columns.end; ++s)
        best.compare_next(load<Lanes>(x + r * p_.width + s, p_.stride_w),
                          position_of<Lanes>(r * p_.window_w + s));
    return best;
  }

  // The maxima of columns, and behind them, line_ floats further, r · window_w of their rows r.
  template <class Lanes>
  void column_maxima(const float* x, Range rows, float* line) const {
    Best<Lanes> best{Lanes(lowest), position_of<Lanes>(rows.begin * p_.window_w)};
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
      best.compare_next(load<Lanes>(x + r * p_.width, 1), position_of<Lanes>(r * p_.window_w));
    store(best.value, line);
    store(best.position, line + line_);
  }

  template <class Lanes>
  Best<Lanes> along_line(const float* line, Range columns) const {
    const auto position = [&](std::int64_t s) {
      using Position = typename Best<Lanes>::Position;
      return static_cast<Position>(load<Lanes>(line + line_ + s, p_.stride_w)) +
             position_of<Lanes>(s);
    };
    Best<Lanes> best{load<Lanes>(line + columns.begin, p_.stride_w), position(columns.begin)};
    for (std::int64_t s = columns.begin + 1; s < columns.end; ++s)
      best.compare(load<Lanes>(line + s, p_.stride_w), position(s));
    return best;
  }

  template <class T>  // of a scalar or a vector, into floats or bytes
  static void store(const T& v, auto* p) {
    if constexpr (std::is_arithmetic_v<T>)
      *p = static_cast<std::remove_reference_t<decltype(*p)>>(v);
    else if constexpr (std::is_same_v<decltype(p), float*>)
      v.store_unaligned(p);
    else
      store_argmax(p, v);
  }

  // p[0], p[stride], p[2 stride], …
  template <class Lanes>
  Lanes load(const float* p, std::int64_t stride) const {
    if constexpr (std::is_same_v<Lanes, float>) {
      return *p;
    } else {
      const auto steps = xsimd::as_integer_t<Lanes>::load_unaligned(steps_);
      return stride == 1   ? strided<1, Lanes>(p, steps)
             : stride == 2 ? strided<2, Lanes>(p, steps)
                           : strided<0, Lanes>(p, steps);
    }
  }

  Problem p_;
  int threads_;
  std::int64_t line_;          // floats
  AlignedArray<float> lines_;  // [threads, 2, line]
  Range interior_;
  std::optional<SimdPooling> gather_;  // backward on vectors
  std::int32_t steps_[16];
};

constexpr Lattice lattice{.below = "branchless", .switches = switches};
[[maybe_unused]] const bool registered = register_corners<MaxPool, Corner>(
    lattice, std::make_integer_sequence<unsigned, 1U << (std::size(switches) - 1)>{});

}  // namespace
}  // namespace stepladder::max_pool
