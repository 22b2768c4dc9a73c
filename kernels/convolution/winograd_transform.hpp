// The one-dimensional transforms of a Winograd convolution, after Toom and Cook. A correlation is
// the transpose of a product of polynomials, and such a product is cheap at points: evaluate the
// factors, multiply value by value, interpolate. With the points 0, ±1, ±2, ±1/2 and infinity, a
// row of 8 source elements and n filter taps give 9 - n sums for 8 products instead of n (9 - n):
//
//   sums = combine<9 - n>(evaluate<n>(filter) * source(row))
//
// Every coefficient follows from the points. Write P(x) = product of (x² - a²) over the pairs ±a,
// and N(x) = x P(x) / (x - b) for the finite point b, which vanishes at every other finite point:
//
//   source     row b: the coefficients of N; infinity: those of x P(x)
//   evaluate   row b: the filter, as a polynomial, at b, divided by N(b); infinity: its last tap
//   combine    sum j: the products weighted with b^j; the last sum takes that of infinity too
//
// The points of a pair share their even and odd parts, so a pair costs six instructions and not
// fourteen (Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray, 2016; the choice
// of points: Barabasz et al., Error Analysis and Improving the Accuracy of Winograd Convolution for
// Deep Neural Networks, 2020).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <xsimd/xsimd.hpp>

namespace stepladder::convolution {

// `pairs` of points ±1, ±2, ±1/2 beside 0 and infinity. Each transform reads and writes vectors, one
// independent problem in each lane; the steps are from one vector to the next, in floats.
template <class Arch, int pairs>
class WinogradTransform {
 public:
  static constexpr int tile = 2 * pairs + 2;  // points: source elements, products

  // [tile] -> [tile]
  static void source(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    std::array<Vector, tile> d, v;
    unroll<tile>([&](auto i) { d[i] = Vector::load_aligned(from + i * from_step); });
    v[0] = polynomial<none, 0, pairs + 1>(d);
    v[tile - 1] = polynomial<none, 1, pairs + 1>(d);
    unroll<pairs>([&](auto p) {
      const Vector even = polynomial<p, 2, pairs>(d), odd = polynomial<p, 1, pairs>(d);
      v[1 + 2 * p] = xsimd::fma(Vector(at(p)), odd, even);
      v[2 + 2 * p] = xsimd::fnma(Vector(at(p)), odd, even);
    });
    unroll<tile>([&](auto i) { v[i].store_aligned(to + i * to_step); });
  }

  // [n] -> [tile]
  template <int n>
  static void evaluate(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    std::array<Vector, n> g;
    unroll<n>([&](auto j) { g[j] = Vector::load_aligned(from + j * from_step); });
    (g[0] * Vector(static_cast<float>(1 / coefficients(none)[0]))).store_aligned(to);
    unroll<pairs>([&](auto p) {
      Vector even = g[0] * Vector(scaled_power(p, 0)), odd = g[1] * Vector(scaled_power(p, 1));
      unroll<n>([&](auto j) {
        if constexpr (j >= 2)
          (j % 2 == 0 ? even : odd) =
              xsimd::fma(Vector(scaled_power(p, j)), g[j], j % 2 == 0 ? even : odd);
      });
      (even + odd).store_aligned(to + (1 + 2 * p) * to_step);
      (even - odd).store_aligned(to + (2 + 2 * p) * to_step);
    });
    g[n - 1].store_aligned(to + (tile - 1) * to_step);
  }

  // [tile] -> [n]
  template <int n>
  static void combine(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    std::array<Vector, pairs> even, odd;  // of the products at a and -a
    unroll<pairs>([&](auto p) {
      const Vector plus = Vector::load_aligned(from + (1 + 2 * p) * from_step);
      const Vector minus = Vector::load_aligned(from + (2 + 2 * p) * from_step);
      even[p] = plus + minus;
      odd[p] = plus - minus;
    });
    unroll<n>([&](auto j) {
      Vector sum = j % 2 == 0 ? even[0] : odd[0];  // at ±1, the first pair
      if constexpr (j == 0) sum += Vector::load_aligned(from);
      if constexpr (j == n - 1) sum += Vector::load_aligned(from + (tile - 1) * from_step);
      unroll<pairs>([&](auto p) {
        if constexpr (p > 0)
          sum = xsimd::fma(Vector(power(p, j)), j % 2 == 0 ? even[p] : odd[p], sum);
      });
      sum.store_aligned(to + j * to_step);
    });
  }

 private:
  using Vector = xsimd::batch<float, Arch>;
  using Polynomial = std::array<double, pairs + 1>;  // in x², lowest power first
  static constexpr int none = -1;

  static constexpr float at(int pair) { return std::array{1.0F, 2.0F, 0.5F}[std::size_t(pair)]; }

  static constexpr float power(int pair, int exponent) {
    float product = 1;
    for (int i = 0; i < exponent; ++i) product *= at(pair);
    return product;
  }

  // P without the factor of the pair `without`; its highest coefficient is one.
  static constexpr Polynomial coefficients(int without) {
    Polynomial product{1};
    for (int pair = 0; pair < pairs; ++pair) {
      if (pair == without) continue;
      for (std::size_t i = pairs; i > 0; --i)
        product[i] = product[i - 1] - product[i] * at(pair) * at(pair);
      product[0] *= -at(pair) * at(pair);
    }
    return product;
  }

  // a^j / N(a), where N(a) = N(-a) = 2 a² times P(a) without the pair.
  static constexpr float scaled_power(int pair, int j) {
    double value = 0, square = 1;
    for (const double c : coefficients(pair)) {
      value += c * square;
      square *= at(pair) * at(pair);
    }
    return static_cast<float>(power(pair, j) / (2 * at(pair) * at(pair) * value));
  }

  // Sum of the first `terms` coefficients of P without a pair, times d[first], d[first + 2], …
  template <int without, int first, int terms>
  static Vector polynomial(const std::array<Vector, tile>& d) {
    constexpr Polynomial c = coefficients(without);
    Vector sum = d[first + 2 * (terms - 1)];
    unroll<terms - 1>(
        [&](auto i) { sum = xsimd::fma(Vector(static_cast<float>(c[i])), d[first + 2 * i], sum); });
    return sum;
  }

  // f(0), f(1), …: the index is a constant, so that arrays of vectors can stay in registers.
  template <int count, class Function>
  static void unroll(Function f) {
    [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
    (std::make_integer_sequence<int, count>{});
  }
};

}  // namespace stepladder::convolution
