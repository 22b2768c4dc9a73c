// A vector as a matrix M of at most 256 rows, approximated by P Pᵀ M with P of 4 orthonormal
// columns (Vogels, Karimireddy and Jaggi, PowerSGD: practical low-rank gradient compression for
// distributed optimization, 2019).
//
// |M - P Pᵀ M|^2 = |M|^2 - |Pᵀ M|^2. A power step from the former Q = Mᵀ P prefers the columns
// in which the sum of all ranks is large. No P is good for every M: directions without any
// preference have 4/256 of the squares, and half of that, 1/128, is the declared contraction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace stepladder::all_reduce {

inline constexpr double low_rank_contraction = 1.0 / 128;

struct LowRankShape {
  std::int64_t count;  // elements of the vector; the last row of M may be shorter
  std::int64_t rows, columns;
  int rank;

  explicit LowRankShape(std::int64_t elements)
      : count(elements),
        rows(std::clamp<std::int64_t>(
            static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements))), 1, 256)),
        columns(std::max<std::int64_t>((elements + rows - 1) / rows, 1)),
        rank(static_cast<int>(std::min<std::int64_t>(4, std::min(rows, columns)))) {}

  std::int64_t p_length() const { return rows * rank; }
  std::int64_t q_length() const { return columns * rank; }
};

// All matrices in row-major order: M [rows][columns], P [rows][rank], Q [rank][columns].

// Any Q to begin with, the same on all ranks.
void start_low_rank(const LowRankShape& shape, float* q);
// M = values + residual, stored in residual; P = M Qᵀ.
void left_factor(const LowRankShape& shape, const float* values, float* residual, const float* q,
                 float* p);
// The columns of P become orthonormal. A column that depends on those before it, or is zero,
// becomes any direction; `call` numbers the calls, so that it is another one each time.
void orthonormalize(const LowRankShape& shape, std::uint64_t call, float* p);
// Q = Pᵀ M.
void right_factor(const LowRankShape& shape, const float* m, const float* p, float* q);
// M -= P Q.
void subtract_product(const LowRankShape& shape, const float* p, const float* q, float* m);
// values = P Q.
void low_rank_product(const LowRankShape& shape, const float* p, const float* q, float* values);

}  // namespace stepladder::all_reduce
