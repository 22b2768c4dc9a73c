// `direct_int8` with the matrix unit of each core (AMX), on the tiles of `direct_amx`: prepare()
// quantizes the weights, a step for each output channel; run() quantizes x, a step for each image
// and group.
//
// Expected over direct_int8: up to 4x; below 1 with few channels, where making the lines counts.
#include <optional>

#include "kernels/common/cpu/extensions.hpp"
#include "kernels/convolution/cpu/direct_amx/correlation.hpp"

namespace stepladder::convolution {
namespace {

class DirectInt8Amx final : public Plan {
 public:
  DirectInt8Amx(const Problem& problem, const Resources& resources)
      : threads_(threads_that_pay(flops(problem), resources.threads)) {
    require_here(Extension::amx_int8);
    narrow::require_quantized(problem.direction == Direction::forward, terms(problem));
    correlation_.emplace(problem, threads_);
  }

  void prepare(const Operands& o) override {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) correlation_->pack(thread, o.w);
  }

  void run(const Operands& o) override {
    if (threads_ == 1) return correlation_->correlate(0, o.x, o.y);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int thread = 0; thread < threads_; ++thread) correlation_->correlate(thread, o.x, o.y);
  }

 private:
  int threads_;
  std::optional<AmxCorrelation<QuadOfSlots>> correlation_;
};

constexpr VariantInfo info{
    .name = "direct_int8_amx",
    .technique = Technique::openmp,
    .builds_on = "direct_int8",
    .adds = "the matrix unit: an instruction multiplies two tiles of 1 KiB",
    .idea = Idea::matrix_unit,
    .precision = Precision::int8,
    .threaded = true,
    .prepacked = true,
    .quantization_error = 2.0 / 127 + 1.0 / (127 * 127),
};
static_assert(info.quantization_error == narrow::quantization_error);

const Registration registration{info, make_plan<Convolution, DirectInt8Amx>};

}  // namespace
}  // namespace stepladder::convolution
