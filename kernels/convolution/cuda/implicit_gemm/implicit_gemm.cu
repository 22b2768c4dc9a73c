// The convolution as one GEMM that gathers the im2col matrix while it runs. shared_memory loads
// three values for eight products and has a barrier for every channel. Here K runs over channels
// and filter elements together (CRS, see the README), and each thread has 8 x 8 accumulators: 16
// values from shared memory serve 64 products. A stored im2col matrix would take 25 times the
// memory of x for 5 x 5 filters; a table of offsets made by the plan replaces it.
//
//   forward            y  [out channels, pixels]  =  w [out channels, CRS] · x [CRS, pixels]
//   backward_data      dx [in channels, pixels]   =  w, rotated by 180°    · dy [CRS, pixels],
//                      once per pair of remainders of a pixel's row and column modulo the stride
//   backward_weights   dw [out channels, CRS]     =  dy [out channels, pixels] · x [pixels, CRS]
//
// Expected: 50 to 70 % of the FMA peak in forward and backward_data with enough pixels for all
// multiprocessors, 1.5 to 2 times shared_memory. backward_weights has few blocks: see
// implicit_gemm_split_k. Source: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning",
// 2014, section 3.
#include "kernels/convolution/cuda/implicit_gemm/plan.hpp"

namespace stepladder::convolution {
namespace {

std::unique_ptr<Plan> make(const Problem& p, const Resources&) {
  require_cuda();
  return make_implicit_gemm<FmaTiles>(p);
}

constexpr VariantInfo info{
    .name = "implicit_gemm",
    .technique = Technique::cuda,
    .builds_on = "shared_memory",
    .adds = "one GEMM with 8 x 8 accumulators per thread, im2col gathered through an offset table",
    .idea = Idea::register_tile,
    .nhwc = true,
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
