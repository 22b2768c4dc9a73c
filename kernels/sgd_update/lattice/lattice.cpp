// The lattice of sgd_update: the loop over weights of `serial`, and every combination of three
// techniques.
//
//   vectors     4, 8 or 16 weights per instruction
//   streaming   non-temporal stores: results go past the caches; in place, the lines were just read
//   threads     each has a contiguous range of weights
//
// Non-temporal stores of vectors need addresses that all are multiples of their size: the weights
// before the first such address are updated one by one, and all of them with ordinary stores where
// the arrays have no such address in common.
#include "kernels/common/lattice.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/cpu/strided.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr Switch switches[] = {
    {"vectors", Idea::vectors}, {"streaming", Idea::streaming_stores}, {"threads", Idea::threads}};

// Elements of a float or of a vector.
template <class Number>
constexpr std::int64_t lanes_of = 1;
template <>
constexpr std::int64_t lanes_of<Vector> = Vector::size;

template <unsigned corner>
class Corner final : public Plan {
  static constexpr bool vectors = (corner & 1U) != 0, streams = (corner & 2U) != 0;
  using Lanes = std::conditional_t<vectors, Vector, float>;
  static constexpr std::int64_t lanes = lanes_of<Lanes>;

 public:
  Corner(const Problem& problem, const Resources& resources)
      : problem_(problem), threads_(resources.threads) {}

  void run(const Operands& o) override {
    with_optimizer(problem_.optimizer, [&](auto optimizer) {
#pragma omp parallel for num_threads(threads_) schedule(static, 1) if (threads_ > 1)
      for (int thread = 0; thread < threads_; ++thread)
        update_part<optimizer()>(o, partition(problem_.count, threads_, thread, 16));
    });
  }

 private:
  template <Optimizer optimizer>
  void update_part(const Operands& o, Range part) const {
    const std::int64_t first = std::min(part.end, part.begin + before_aligned(o, part));
    update_range<optimizer, float, false>(o, part.begin, first);
    const std::int64_t whole = first + (part.end - first) / lanes * lanes;
    if (streams && can_stream<optimizer>(o, first)) {
      update_range<optimizer, Lanes, true>(o, first, whole);
      finish_streaming();
    } else {
      update_range<optimizer, Lanes, false>(o, first, whole);
    }
    update_range<optimizer, float, false>(o, whole, part.end);
  }

  template <Optimizer optimizer, class Number, bool past_caches>
  void update_range(const Operands& operands, std::int64_t begin, std::int64_t end) const {
    const Constants<Number> constants(problem_, operands);
    const Operands o = operands;  // a store could change the original
    for (std::int64_t i = begin; i < end; i += lanes_of<Number>) {
      Number weight = load<Number>(o.weights + i), state1{}, state2{};
      if constexpr (has_state1<optimizer>) state1 = load<Number>(o.state1 + i);
      if constexpr (has_state2<optimizer>) state2 = load<Number>(o.state2 + i);
      update<optimizer>(constants, weight, load<Number>(o.gradient + i), state1, state2);
      store<past_caches>(o.weights + i, weight);
      if constexpr (has_state1<optimizer>) store<past_caches>(o.state1 + i, state1);
      if constexpr (has_state2<optimizer>) store<past_caches>(o.state2 + i, state2);
    }
  }

  template <class Number>
  static Number load(const float* p) {
    if constexpr (std::is_same_v<Number, float>)
      return *p;
    else
      return Number::load_unaligned(p);
  }
  template <bool past_caches>
  static void store(float* p, float v) {
    if constexpr (past_caches)
      stream(p, v);
    else
      *p = v;
  }
  template <bool past_caches>
  static void store(float* p, const Vector& v) {
    if constexpr (past_caches)
      stream(p, v);
    else
      v.store_unaligned(p);
  }

  static std::int64_t offset_of(const float* p) {  // from a multiple of a vector, in floats
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(float)) % lanes;
  }
  // The weights before the first one at a multiple of a vector.
  static std::int64_t before_aligned(const Operands& o, Range part) {
    return streams ? (lanes - offset_of(o.weights + part.begin)) % lanes : 0;
  }
  template <Optimizer optimizer>
  static bool can_stream(const Operands& o, std::int64_t i) {
    return offset_of(o.weights + i) == 0 &&
           (!has_state1<optimizer> || offset_of(o.state1 + i) == 0) &&
           (!has_state2<optimizer> || offset_of(o.state2 + i) == 0);
  }

  Problem problem_;
  int threads_;
};

constexpr Lattice lattice{.below = "serial", .switches = switches};
[[maybe_unused]] const bool registered = register_corners<SgdUpdate, Corner>(
    lattice, std::make_integer_sequence<unsigned, 1U << (std::size(switches) - 1)>{});

}  // namespace
}  // namespace stepladder::sgd_update
