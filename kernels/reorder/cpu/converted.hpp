// Formats converted a vector at a time, the numbers divided among threads.
#pragma once

#include <cstdint>

#include "kernels/common/cpu/narrow_vectors.hpp"
#include "kernels/common/cpu/parts.hpp"
#include "kernels/reorder/formats.hpp"

namespace stepladder::reorder::inline STEPLADDER_ISA {

inline Vector load(const float* from) { return Vector::load_unaligned(from); }
template <class Narrow>
Vector load(const Narrow* from) {
  return widen(from);
}
inline void store(const Vector& values, float* to) { values.store_unaligned(to); }
template <class Narrow>
void store(const Vector& values, Narrow* to) {
  narrow(values, to);
}

template <class From, class To>
void convert(const From* x, To* y, std::int64_t count) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(load(x + i), y + i);
  for (; i < count; ++i) y[i] = converted<To>(x[i]);
}

class Converted final : public Plan {
 public:
  Converted(const Problem& p, const Resources& resources) : p_(p) {
    if (!p.changes_format()) throw Unsupported("converts formats, not layouts");
    constexpr std::int64_t min_elements_per_thread = 32768;  // some microseconds
    parts_ = parts_that_pay(p.x_count(), p.x_count(), min_elements_per_thread, resources.threads);
  }

  void run(const Operands& o) override {
    for_types(p_, [&]<class From, class To>() {
      const auto part = [&](const Range& range, int) {
        convert(static_cast<const From*>(o.x) + range.begin, static_cast<To*>(o.y) + range.begin,
                range.end - range.begin);
      };
      for_each_part(p_.x_count(), parts_, part, 64);  // whole cache lines of both sides
    });
  }

 private:
  Problem p_;
  int parts_ = 1;
};

}  // namespace stepladder::reorder::inline STEPLADDER_ISA
