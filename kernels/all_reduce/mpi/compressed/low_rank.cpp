// Compiled for the baseline ISA alone: the products must have the same bits on every rank, also if
// their CPUs differ.
#include "kernels/all_reduce/mpi/compressed/low_rank.hpp"

#include <array>

namespace stepladder::all_reduce {
namespace {

// Uniform(-1, 1) from an index, by the finalizer of SplitMix64.
float random_value(std::uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
  return static_cast<float>((i ^ (i >> 31)) >> 40) * 0x1p-23f - 1.0f;
}

std::int64_t row_length(const LowRankShape& s, std::int64_t row) {
  return std::clamp<std::int64_t>(s.count - row * s.columns, 0, s.columns);
}

// The rows of Q in columns [from, from + width), a block that stays in the cache.
constexpr std::int64_t width = 1024;

template <class Body>
void for_each_part(const LowRankShape& s, const Body& body) {
  for (std::int64_t from = 0; from < s.columns; from += width)
    for (std::int64_t row = 0; row < s.rows; ++row) {
      const std::int64_t end = std::min(from + width, row_length(s, row));
      if (end > from) body(row, from, end - from);
    }
}

// Sixteen partial sums, so that they vectorize.
float dot(const float* a, const float* b, std::int64_t count) {
  std::array<float, 16> sums{};
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (std::size_t lane = 0; lane < 16; ++lane)
      sums[lane] += a[i + static_cast<std::int64_t>(lane)] * b[i + static_cast<std::int64_t>(lane)];
  float sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float lane : sums) sum += lane;
  return sum;
}

// row ± P[row] Q for all ranks at once.
template <bool subtract>
void product_part(const float* p, const float* q, std::int64_t stride, int rank, float* to,
                  std::int64_t count) {
  if (rank == 4) {
    const float *q1 = q + stride, *q2 = q1 + stride, *q3 = q2 + stride;
    const float p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
#pragma GCC ivdep  // to is no part of Q
    for (std::int64_t i = 0; i < count; ++i) {
      const float sum = p0 * q[i] + p1 * q1[i] + p2 * q2[i] + p3 * q3[i];
      to[i] = subtract ? to[i] - sum : sum;
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int k = 0; k < rank; ++k) sum += p[k] * q[k * stride + i];
    to[i] = subtract ? to[i] - sum : sum;
  }
}

template <bool subtract>
void product(const LowRankShape& s, const float* p, const float* q, float* to) {
  for_each_part(s, [&](std::int64_t row, std::int64_t from, std::int64_t count) {
    product_part<subtract>(p + row * s.rank, q + from, s.columns, s.rank,
                           to + row * s.columns + from, count);
  });
}

}  // namespace

void start_low_rank(const LowRankShape& s, float* q) {
  for (std::int64_t i = 0; i < s.q_length(); ++i)
    q[i] = random_value(static_cast<std::uint64_t>(i));
}

void left_factor(const LowRankShape& s, const float* values, float* residual, const float* q,
                 float* p) {
  std::fill_n(p, s.p_length(), 0.0f);
  for_each_part(s, [&](std::int64_t row, std::int64_t from, std::int64_t count) {
    float* m = residual + row * s.columns + from;
    const float* v = values + row * s.columns + from;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) m[i] += v[i];
    for (int k = 0; k < s.rank; ++k) p[row * s.rank + k] += dot(m, q + k * s.columns + from, count);
  });
}

// Modified Gram-Schmidt, twice, in fp64.
void orthonormalize(const LowRankShape& s, std::uint64_t call, float* p) {
  std::array<std::array<double, 256>, 4> columns{};
  const auto rows = static_cast<std::size_t>(s.rows);
  const auto dot64 = [rows](const auto& a, const auto& b) {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.rank); ++k) {
    auto& column = columns[k];
    for (std::size_t i = 0; i < rows; ++i)
      column[i] = double{p[i * static_cast<std::size_t>(s.rank) + k]};
    double before = dot64(column, column);
    for (int attempt = 0;; ++attempt) {
      for (int pass = 0; pass < 2; ++pass)
        for (std::size_t other = 0; other < k; ++other) {
          const double share = dot64(column, columns[other]);
          for (std::size_t i = 0; i < rows; ++i) column[i] -= share * columns[other][i];
        }
      const double after = dot64(column, column);
      // The rest of a dependent column is rounding errors. NaN and infinity stay what they are.
      if (!(after <= 1e-10 * before) || attempt == 8) {
        const double scale = 1 / std::sqrt(after);
        for (std::size_t i = 0; i < rows; ++i) column[i] *= scale;
        break;
      }
      const std::uint64_t seed = (call * 8 + static_cast<std::uint64_t>(attempt)) * 4 + k;
      for (std::size_t i = 0; i < rows; ++i) column[i] = double{random_value(seed * 256 + i)};
      before = dot64(column, column);
    }
  }
  for (std::size_t k = 0; k < static_cast<std::size_t>(s.rank); ++k)
    for (std::size_t i = 0; i < rows; ++i)
      p[i * static_cast<std::size_t>(s.rank) + k] = static_cast<float>(columns[k][i]);
}

void right_factor(const LowRankShape& s, const float* m, const float* p, float* q) {
  std::fill_n(q, s.q_length(), 0.0f);
  for_each_part(s, [&](std::int64_t row, std::int64_t from, std::int64_t count) {
    const float* values = m + row * s.columns + from;
    for (int k = 0; k < s.rank; ++k) {
      const float factor = p[row * s.rank + k];
      float* to = q + k * s.columns + from;
#pragma GCC ivdep  // Q is no part of M
      for (std::int64_t i = 0; i < count; ++i) to[i] += factor * values[i];
    }
  });
}

void subtract_product(const LowRankShape& s, const float* p, const float* q, float* m) {
  product<true>(s, p, q, m);
}

void low_rank_product(const LowRankShape& s, const float* p, const float* q, float* values) {
  product<false>(s, p, q, values);
}

}  // namespace stepladder::all_reduce
