// bias: vectors along the plane, or along the channels where spatial is 1.
#pragma once

#include "kernels/common/cpu/sum_of.hpp"
#include "kernels/common/cpu/vector_loop.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/layers/cpu/simd/parallel_for.hpp"
#include "kernels/layers/layers.hpp"

namespace stepladder::layers::inline STEPLADDER_ISA {

inline void bias_forward(const Problem& p, const Operands& o, int threads) {
  const bool planes = p.spatial > 1;
  const std::int64_t rows = planes ? p.batch * p.channels : p.batch;
  const std::int64_t length = planes ? p.spatial : p.channels;
  parallel_for(rows, length, threads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* y = o.y + row * length;
      const Vector broadcast(o.bias[planes ? row % p.channels : 0]);
      for_each_vector(0, length, [&](std::int64_t, const auto& load, const auto& store) {
        store(y, load(y) + (planes ? broadcast : load(o.bias)));
      });
    }
  });
}

// One thread sums a channel, so the sum does not depend on the number of threads.
inline void bias_backward(const Problem& p, const Operands& o, int threads) {
  constexpr auto lanes = static_cast<std::int64_t>(Vector::size);
  if (p.spatial > 1) {  // one vector accumulator per channel
    parallel_for(
        p.channels, p.batch * p.spatial, threads, [&](std::int64_t begin, std::int64_t end, int) {
          for (std::int64_t c = begin; c < end; ++c) {
            Vector sum(0.0F);
            for (std::int64_t n = 0; n < p.batch; ++n)
              for_each_vector(0, p.spatial, [&](std::int64_t, const auto& load, const auto&) {
                sum = sum + load(o.dy + (n * p.channels + c) * p.spatial);
              });
            o.dbias[c] = sum_of(sum);
          }
        });
    return;
  }
  // a vector of channels, summed over the batch
  parallel_for(ceil_div(p.channels, lanes), p.batch * lanes, threads,
               [&](std::int64_t begin, std::int64_t end, int) {
                 const std::int64_t first = begin * lanes,
                                    count = std::min(p.channels, end * lanes) - first;
                 for_each_vector(0, count, [&](std::int64_t, const auto& load, const auto& store) {
                   Vector sum(0.0F);
                   for (std::int64_t n = 0; n < p.batch; ++n)
                     sum = sum + load(o.dy + n * p.channels + first);
                   store(o.dbias + first, sum);
                 });
               });
}

}  // namespace stepladder::layers::inline STEPLADDER_ISA
