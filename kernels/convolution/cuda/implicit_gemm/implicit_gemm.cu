// The convolution as a matrix product whose one factor is gathered while it runs. shared_memory loads
// three values for eight products and meets at a barrier for every channel. Here the sums over (channel,
// row, column) are one long sum: each thread keeps 8 x 8 sums, so that 16 values from shared memory
// serve 64 products, and a step ends after 8 terms whatever the filter's size. Unfolded matrices, as
// im2col writes them, would cost 25 times the memory of x for 5 x 5 filters; a table of the terms, made
// by the plan, says where each element is instead.
//
//   forward            y  [out channels, pixels]  =  w [out channels, terms] · x [terms, pixels]
//   backward_data      dx [in channels, pixels]   =  w, turned round         · dy [terms, pixels],
//                      once for each remainder that a pixel's row and column leave when divided by
//                      the stride
//   backward_weights   dw [out channels, terms]   =  dy [out channels, pixels] · x [pixels, terms]
//
// In NHWC the same products with the terms in another order, the channel last, and with lanes next to
// each other along the channels instead of the pixels: what a warp fetches together lies together.
//
// Expected: 50 to 70 % of the FMA peak forward and backward_data where the pixels make enough blocks,
// 1.5 to 2 times shared_memory; gathering costs one instruction for every two to four products of the
// two large tiles.
// backward_weights has few blocks for all that it sums: the next rung.
// Source: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014, section 3.
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
    .adds =
        "one matrix product with 8 x 8 sums per thread, its factor gathered by a table of terms",
    .layouts = "nhwc",
    .place = Place::cuda,
};

const Registration registration{info, make};

}  // namespace
}  // namespace stepladder::convolution
