// `prepacked_int8` with the matrix unit of each core (AMX) in place of dot products of vectors.
//
// Expected over prepacked_int8: up to 8x in the product itself; quantizing A takes as long as
// before.
#include "kernels/common/cpu/narrow/amx_kernel.hpp"
#include "kernels/matmul/cpu/packed/quantized_product.hpp"

namespace stepladder::matmul {
namespace {

constexpr VariantInfo info{
    .name = "prepacked_int8_amx",
    .technique = Technique::openmp,
    .builds_on = "prepacked_int8",
    .adds = "the matrix unit: an instruction multiplies two tiles of 1 KiB",
    .idea = Idea::matrix_unit,
    .precision = Precision::int8,
    .threaded = true,
    .prepacked = true,
    .epilogue = true,
    .quantization_error = 2.0 / 127 + 1.0 / (127 * 127),
};
static_assert(info.quantization_error == narrow::quantization_error);

std::unique_ptr<Plan> plan(const Problem& problem, const Resources& resources) {
  require_here(Extension::amx_int8);
  return quantized_product<narrow::AmxKernel>(problem, resources.threads);
}

const Registration registration{info, plan};

}  // namespace
}  // namespace stepladder::matmul
