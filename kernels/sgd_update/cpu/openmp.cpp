// simd on every core: each thread takes one stretch of the arrays, cut at whole cache lines. Pays
// where one core cannot draw the machine's full memory bandwidth, or where the arrays fit the cores'
// caches taken together. A small array is left to one thread: waking the others would cost more.
#include <algorithm>

#include "kernels/sgd_update/cpu/vectors.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr std::int64_t worth_a_thread = 8192;  // weights: a few microseconds of work

void update_weights(const Problem& p, const Operands& o, int threads) {
  const Constants<Vector> constants(p, o);
  with_optimizer(p.optimizer, [&](auto optimizer) {
    const auto parts = std::min<std::int64_t>(threads, p.count / worth_a_thread);
    if (parts <= 1) return update_range<optimizer()>(constants, o, 0, p.count);
    constexpr std::int64_t line = 16;  // floats
    const std::int64_t stretch = ((p.count + parts - 1) / parts + line - 1) / line * line;
#pragma omp parallel for num_threads(static_cast <int>(parts)) schedule(static, 1)
    for (std::int64_t begin = 0; begin < p.count; begin += stretch)
      update_range<optimizer()>(constants, o, begin, std::min(p.count, begin + stretch));
  });
}

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd",
    .adds = "one stretch of the arrays for each thread",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan_of<update_weights>};

}  // namespace
}  // namespace stepladder::sgd_update
