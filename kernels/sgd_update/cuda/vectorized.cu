// Four weights per load. naive asks memory for 4 bytes at a time, and its threads end after one weight.
// Here a thread loads 16 bytes of every array at once, as many threads run as the GPU holds together,
// and each goes on to further weights: a fourth of the memory instructions, and no blocks to start.
//
// What it takes to fill the memory (Little's law): 4.8 TB/s times some 700 ns are 3.4 MB under way, or
// 25 KB for each of an H200's 132 multiprocessors. Five blocks of 256 threads with two loads of 16
// bytes (sgd, which has the fewest) make 40 KB. Expected: 92 % of the bandwidth of a copy, and 1.1 to
// 1.5 times naive once the arrays exceed the L2 cache.
#include <algorithm>
#include <cstdint>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

constexpr std::int64_t lanes = 4;  // floats of one load

// The first `vectors` times four weights as vectors, the rest one by one.
template <Optimizer optimizer>
__global__ void update_kernel(Constants<float> constants, Operands o, std::int64_t count,
                              std::int64_t vectors) {
  const std::int64_t threads = std::int64_t{gridDim.x} * block_threads;
  auto* weights = reinterpret_cast<float4*>(o.weights);  // all arrays: [vectors] of four
  auto* gradient = reinterpret_cast<const float4*>(o.gradient);
  auto* state1 = reinterpret_cast<float4*>(o.state1);
  auto* state2 = reinterpret_cast<float4*>(o.state2);

  for (std::int64_t i = thread_index(); i < vectors; i += threads) {
    float4 w = weights[i], s1{}, s2{};
    const float4 g = gradient[i];
    if constexpr (keeps_state1<optimizer>) s1 = state1[i];
    if constexpr (keeps_state2<optimizer>) s2 = state2[i];
    update<optimizer>(constants, w.x, g.x, s1.x, s2.x);
    update<optimizer>(constants, w.y, g.y, s1.y, s2.y);
    update<optimizer>(constants, w.z, g.z, s1.z, s2.z);
    update<optimizer>(constants, w.w, g.w, s1.w, s2.w);
    weights[i] = w;
    if constexpr (keeps_state1<optimizer>) state1[i] = s1;
    if constexpr (keeps_state2<optimizer>) state2[i] = s2;
  }

  for (std::int64_t i = vectors * lanes + thread_index(); i < count; i += threads) {
    float s1 = 0, s2 = 0;
    if constexpr (keeps_state1<optimizer>) s1 = o.state1[i];
    if constexpr (keeps_state2<optimizer>) s2 = o.state2[i];
    update<optimizer>(constants, o.weights[i], o.gradient[i], s1, s2);
    if constexpr (keeps_state1<optimizer>) o.state1[i] = s1;
    if constexpr (keeps_state2<optimizer>) o.state2[i] = s2;
  }
}

bool holds_vectors(const void* array) {
  return reinterpret_cast<std::uintptr_t>(array) % sizeof(float4) == 0;
}

class VectorizedPlan final : public Plan {
 public:
  VectorizedPlan(const Problem& p, const Resources&) : p_(p) {
    require_cuda();
    constexpr unsigned at_once = 5;  // blocks of a multiprocessor: 48 registers for each thread
    const unsigned resident = at_once * static_cast<unsigned>(cuda_multiprocessors());
    blocks_ = std::min(blocks_for(p.count, block_threads * lanes), resident);
  }

  void run(const Operands& o) override {
    // Part of a larger array may begin anywhere: then its weights come one by one.
    const bool aligned = holds_vectors(o.weights) && holds_vectors(o.gradient) &&
                         holds_vectors(o.state1) && holds_vectors(o.state2);
    const std::int64_t vectors = aligned ? p_.count / lanes : 0;
    with_optimizer(p_.optimizer, [&](auto optimizer) {
      launch(update_kernel<optimizer()>, {blocks_, block_threads}, Constants<float>(p_, o), o,
             p_.count, vectors);
    });
  }

 private:
  Problem p_;
  unsigned blocks_ = 0;
};

constexpr VariantInfo info{
    .name = "vectorized",
    .technique = Technique::cuda,
    .builds_on = "naive",
    .adds = "four weights per load, and as many threads as the GPU holds, each taking many weights",
    .place = Place::cuda,
};

const Registration registration{info, make_plan<SgdUpdate, VectorizedPlan>};

}  // namespace
}  // namespace stepladder::sgd_update
