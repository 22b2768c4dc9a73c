// simd_estimate on all cores, simd with SSE4.2 and where there are no estimates: each thread
// updates one contiguous chunk of the arrays, of whole cache lines. It helps where one core cannot
// use the full memory bandwidth, and where the arrays fit into the caches of all cores together.
// Small arrays stay on one thread: waking a second one costs more.
#include "kernels/common/cpu/parts.hpp"
#include "kernels/sgd_update/cpu/estimates.hpp"
#include "kernels/sgd_update/cpu/update_range.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr bool with_estimates = build_isa != Isa::sse42;  // without FMA they are slower
constexpr std::int64_t min_weights_per_thread = 8192;     // a few microseconds of work

template <class AnyConstants>
void update_chunks(const Problem& p, const Operands& o, int threads) {
  const AnyConstants constants(p, o);
  with_optimizer(p.optimizer, [&](auto optimizer) {
    constexpr std::int64_t line = 16;  // floats of a cache line
    for_each_part(
        p.count, parts_that_pay(p.count, p.count, min_weights_per_thread, threads),
        [&](const Range& chunk, int) {
          update_range<optimizer()>(constants, o, chunk.begin, chunk.end);
        },
        line);
  });
}

void update_weights(const Problem& p, const Operands& o, int threads) {
  if (with_estimates && why_no_estimates(p) == nullptr)
    update_chunks<Estimates>(p, o, threads);
  else
    update_chunks<Constants<Vector>>(p, o, threads);
}

constexpr VariantInfo info{
    .name = "openmp",
    .technique = Technique::openmp,
    .builds_on = "simd_estimate",
    .adds = "one contiguous chunk of the arrays per thread",
    .idea = Idea::threads,
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, plan_of<update_weights>};

}  // namespace
}  // namespace stepladder::sgd_update
