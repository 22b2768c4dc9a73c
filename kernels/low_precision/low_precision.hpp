// low_precision: C = A Bᵀ, the product of a fully connected layer whose operands are stored in a
// format narrower than fp32. A row of B holds the weights of one neuron: the rows of both operands
// run along k, as instructions that multiply 2 or 4 narrow neighbours need them.
//
//   format   A[m, k]   B[n, k]   C[m, n], fp32
//   bf16     bf16      bf16      sums of products, added in fp32
//   fp16     fp16      fp16      the same
//   int8     uint8     int8      exact sums of integers, each rounded once
//   binary   bits      bits      the same; a bit of 1 stands for 1, a bit of 0 for -1
//
// A row of bits fills whole words of 64; bit l is bit l % 64 of word l / 64, and the bits from k on
// are 0.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder::low_precision {

enum class Format { bf16, fp16, int8, binary };

const char* name_of(Format format);

struct Problem {
  std::int64_t m = 0, n = 0, k = 0;
  Format format = Format::bf16;
};

// Of a row of A and of a row of B, which follow each other without gaps.
std::int64_t row_bytes(const Problem& problem);

struct Operands {
  const void* a;
  const void* b;
  float* c;  // overwritten
};

struct LowPrecision {
  static constexpr const char* name = "low_precision";
  static constexpr const char* plain_layout = "row_major";
  using Problem = low_precision::Problem;
  using Operands = low_precision::Operands;
};

using Plan = stepladder::Plan<Operands>;
using Registration = stepladder::Registration<LowPrecision>;

std::string direction(const Problem& problem);  // the format
std::string shape(const Problem& problem);      // m x n x k: "64x512x784"
double flops(const Problem& problem);           // 2 m n k, of integers and of bits too
double bytes_read(const Problem& problem);      // A and B once
double bytes_written(const Problem& problem);   // C once

// Throws std::invalid_argument, with the dimension at fault, unless all are positive, and unless
// the sums of int8 fit 32 bits (k <= 65,536) and those of bits are exact in fp32 (k <= 2^24).
void validate(const Problem& problem);

// The operands as floats, which is exact, and the reference in double: c[m, n], and
// magnitude[m, n] = |A| |B|ᵀ.
void widen(const Problem& problem, const void* values, std::int64_t rows, bool is_a, float* to);
void reference(const Problem& problem, const Operands& operands, double* c, double* magnitude);

}  // namespace stepladder::low_precision
