// The weighted sums of neurons in intrinsics, in plain sight: element j of a row of C is the sum of
// the inputs in a row of op(A), weighted by column j of op(B). No library of vectors, no blocking,
// no tile: this is what one instruction set offers, to be read beside its manual.
//
// Weights of a neuron that are n floats apart (B as it is): one vector holds a sum for each of 4, 8
// or 16 neighbouring neurons, and every step adds one input times their weights. Weights side by
// side (B transposed): one vector multiplies as many inputs of one neuron, and its lanes are added
// at the end. What does not fill a vector uses a mask; SSE4.2 has none and goes on float by float.
#include <immintrin.h>

#include <algorithm>

#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

#if defined(__AVX512F__)

constexpr std::int64_t lanes = 16;

// y[j] = sum of x[l · x_step] · w[l · n + j], for j < count <= lanes
void sums_of_neurons(const float* x, std::int64_t x_step, const float* w, std::int64_t n,
                     std::int64_t k, float* y, std::int64_t count) {
  const auto mask = static_cast<__mmask16>((1U << count) - 1);
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t l = 0; l < k; ++l)
    sum =
        _mm512_fmadd_ps(_mm512_set1_ps(x[l * x_step]), _mm512_maskz_loadu_ps(mask, w + l * n), sum);
  _mm512_mask_storeu_ps(y, mask, sum);
}

// The sum of x[l · x_step] · w[l]
float sum_of_neuron(const float* x, std::int64_t x_step, const float* w, std::int64_t k) {
  const __m512i indices =
      _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(static_cast<int>(x_step)));
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t l = 0; l < k; l += lanes) {
    const auto mask = static_cast<__mmask16>(k - l < lanes ? (1U << (k - l)) - 1 : 0xFFFF);
    const __m512 inputs = x_step == 1 ? _mm512_maskz_loadu_ps(mask, x + l)
                                      : _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, indices,
                                                                 x + l * x_step, sizeof(float));
    sum = _mm512_fmadd_ps(inputs, _mm512_maskz_loadu_ps(mask, w + l), sum);
  }
  return _mm512_reduce_add_ps(sum);
}

#elif defined(__AVX2__)

constexpr std::int64_t lanes = 8;

// All bits of the first `count` lanes are set.
__m256i mask_of(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

void sums_of_neurons(const float* x, std::int64_t x_step, const float* w, std::int64_t n,
                     std::int64_t k, float* y, std::int64_t count) {
  const __m256i mask = mask_of(count);
  __m256 sum = _mm256_setzero_ps();
  for (std::int64_t l = 0; l < k; ++l)
    sum = _mm256_fmadd_ps(_mm256_set1_ps(x[l * x_step]), _mm256_maskload_ps(w + l * n, mask), sum);
  _mm256_maskstore_ps(y, mask, sum);
}

float sum_of_neuron(const float* x, std::int64_t x_step, const float* w, std::int64_t k) {
  const __m256i indices = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                             _mm256_set1_epi32(static_cast<int>(x_step)));
  __m256 sum = _mm256_setzero_ps();
  for (std::int64_t l = 0; l < k; l += lanes) {
    const __m256i mask = mask_of(k - l);
    const __m256 inputs =
        x_step == 1 ? _mm256_maskload_ps(x + l, mask)
                    : _mm256_mask_i32gather_ps(_mm256_setzero_ps(), x + l * x_step, indices,
                                               _mm256_castsi256_ps(mask), sizeof(float));
    sum = _mm256_fmadd_ps(inputs, _mm256_maskload_ps(w + l, mask), sum);
  }
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

#else

constexpr std::int64_t lanes = 4;

void sums_of_neurons(const float* x, std::int64_t x_step, const float* w, std::int64_t n,
                     std::int64_t k, float* y, std::int64_t count) {
  if (count == lanes) {
    __m128 sum = _mm_setzero_ps();
    for (std::int64_t l = 0; l < k; ++l)
      sum = _mm_add_ps(sum, _mm_mul_ps(_mm_set1_ps(x[l * x_step]), _mm_loadu_ps(w + l * n)));
    _mm_storeu_ps(y, sum);
    return;
  }
  for (std::int64_t j = 0; j < count; ++j) {
    __m128 sum = _mm_setzero_ps();
    for (std::int64_t l = 0; l < k; ++l)
      sum = _mm_add_ss(sum, _mm_mul_ss(_mm_load_ss(x + l * x_step), _mm_load_ss(w + l * n + j)));
    _mm_store_ss(y + j, sum);
  }
}

float sum_of_neuron(const float* x, std::int64_t x_step, const float* w, std::int64_t k) {
  __m128 sum = _mm_setzero_ps();
  std::int64_t l = 0;
  for (; l + lanes <= k; l += lanes) {
    const float* first = x + l * x_step;
    const __m128 inputs =
        x_step == 1 ? _mm_loadu_ps(first)
                    : _mm_setr_ps(first[0], first[x_step], first[2 * x_step], first[3 * x_step]);
    sum = _mm_add_ps(sum, _mm_mul_ps(inputs, _mm_loadu_ps(w + l)));
  }
  for (; l < k; ++l)
    sum = _mm_add_ss(sum, _mm_mul_ss(_mm_load_ss(x + l * x_step), _mm_load_ss(w + l)));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

#endif

void multiply(const Problem& p, const Operands& o) {
  const std::int64_t x_step = p.transpose_a ? p.m : 1;
  for (std::int64_t i = 0; i < p.m; ++i) {
    const float* x = p.transpose_a ? o.a + i : o.a + i * p.k;
    float* y = o.c + i * p.n;
    if (p.transpose_b)
      for (std::int64_t j = 0; j < p.n; ++j) y[j] = sum_of_neuron(x, x_step, o.b + j * p.k, p.k);
    else
      for (std::int64_t j = 0; j < p.n; j += lanes)
        sums_of_neurons(x, x_step, o.b + j, p.n, p.k, y + j, std::min(lanes, p.n - j));
  }
}

constexpr VariantInfo info{
    .name = "intrinsics",
    .technique = Technique::simd,
    .builds_on = "serial_ijk",
    .adds = "the weighted sums of 4, 8 or 16 neurons at once, in intrinsics with masks",
    .idea = Idea::vectors,
    .isa = build_isa,
};

const Registration registration{info, plan_of<multiply>};

}  // namespace
}  // namespace stepladder::matmul
