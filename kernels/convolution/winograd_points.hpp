// The one-dimensional transforms of a Winograd convolution, by the Toom-Cook method: evaluate both
// polynomials at points, multiply value by value, interpolate. With 0, ±1, ±2, ±1/2 and infinity, a
// row of 8 inputs and n filter taps give 9 - n outputs for 8 products instead of n (9 - n):
//
//   outputs = combine<9 - n>(evaluate<n>(filter) * source(row))
//
// Lavin and Gray (2016) write them as the matrices Aᵀ (combine), G (evaluate) and Bᵀ (source). Let
// P(x) be the product of (x² - a²) over the pairs ±a, and N(x) = x P(x) / (x - b) for a finite
// point b; N is 0 at every other finite point:
//
//   source     row b: the coefficients of N; infinity: those of x P(x)
//   evaluate   row b: the filter, as a polynomial, at b, divided by N(b); infinity: its last tap
//   combine    output j: sum of the products weighted by b^j; infinity adds to the last output
//
// The two points of a pair share their even and odd parts: six instructions instead of fourteen.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/common/host_device.hpp"

namespace stepladder::convolution {

// a b + c and c - a b of floats; xsimd has the same functions for vectors.
STEPLADDER_HOST_DEVICE static inline float fma(float a, float b, float c) { return a * b + c; }
STEPLADDER_HOST_DEVICE static inline float fnma(float a, float b, float c) { return c - a * b; }

// Transforms for the points 0, infinity and the first `pairs` of ±1, ±2, ±1/2. Number is float, or
// an xsimd vector with one independent problem in each lane.
template <class Number, int pairs>
class WinogradPoints {
 public:
  static constexpr int tile = 2 * pairs + 2;  // number of points, inputs and products

  STEPLADDER_HOST_DEVICE static void source(const Number (&d)[tile], Number (&v)[tile]) {
    v[0] = polynomial<none, 0, pairs + 1>(d);
    v[tile - 1] = polynomial<none, 1, pairs + 1>(d);
    unroll<pairs>([&]<int p>() {
      const Number even = polynomial<p, 2, pairs>(d), odd = polynomial<p, 1, pairs>(d);
      v[1 + 2 * p] = fma(constant<at(p)>(), odd, even);
      v[2 + 2 * p] = fnma(constant<at(p)>(), odd, even);
    });
  }

  template <int n>
  STEPLADDER_HOST_DEVICE static void evaluate(const Number (&g)[n], Number (&v)[tile]) {
    v[0] = g[0] * constant<1 / coefficient(none, 0)>();
    unroll<pairs>([&]<int p>() {
      Number even = g[0] * constant<scaled_power(p, 0)>();
      Number odd = g[1] * constant<scaled_power(p, 1)>();
      unroll<n - 2>([&]<int i>() {
        constexpr int j = i + 2;
        Number& part = j % 2 == 0 ? even : odd;
        part = fma(constant<scaled_power(p, j)>(), g[j], part);
      });
      v[1 + 2 * p] = even + odd;
      v[2 + 2 * p] = even - odd;
    });
    v[tile - 1] = g[n - 1];
  }

  template <int n>
  STEPLADDER_HOST_DEVICE static void combine(const Number (&products)[tile], Number (&outputs)[n]) {
    Number even[pairs], odd[pairs];  // sum and difference of the products at a and -a
    unroll<pairs>([&]<int p>() {
      even[p] = products[1 + 2 * p] + products[2 + 2 * p];
      odd[p] = products[1 + 2 * p] - products[2 + 2 * p];
    });
    unroll<n>([&]<int j>() {
      Number sum = j % 2 == 0 ? even[0] : odd[0];  // at ±1, the first pair
      if constexpr (j == 0) sum = sum + products[0];
      if constexpr (j == n - 1) sum = sum + products[tile - 1];
      unroll<pairs - 1>([&]<int i>() {
        constexpr int p = i + 1;
        sum = fma(constant<power(p, j)>(), j % 2 == 0 ? even[p] : odd[p], sum);
      });
      outputs[j] = sum;
    });
  }

 private:
  using Polynomial = std::array<double, pairs + 1>;  // in x², lowest power first
  static constexpr int none = -1;

  static consteval float at(int pair) {
    constexpr float points[] = {1, 2, 0.5F};
    return points[pair];
  }

  static consteval float power(int pair, int exponent) {
    float product = 1;
    for (int i = 0; i < exponent; ++i) product *= at(pair);
    return product;
  }

  // P without the factor (x² - a²) of the pair `without`; its leading coefficient is 1.
  static consteval Polynomial coefficients(int without) {
    Polynomial product{1};
    for (int pair = 0; pair < pairs; ++pair) {
      if (pair == without) continue;
      for (std::size_t i = pairs; i > 0; --i)
        product[i] = product[i - 1] - product[i] * at(pair) * at(pair);
      product[0] *= -at(pair) * at(pair);
    }
    return product;
  }

  static consteval float coefficient(int without, int i) {
    return static_cast<float>(coefficients(without)[std::size_t(i)]);
  }

  // a^j / N(a), where N(a) = N(-a) = 2 a² · (P without the pair)(a).
  static consteval float scaled_power(int pair, int j) {
    double value = 0, square = 1;
    for (const double c : coefficients(pair)) {
      value += c * square;
      square *= at(pair) * at(pair);
    }
    return static_cast<float>(power(pair, j) / (2 * at(pair) * at(pair) * value));
  }

  template <float value>
  STEPLADDER_HOST_DEVICE static Number constant() {
    return Number(value);
  }

  // Dot product of the first `terms` coefficients of P without a pair and d[first], d[first + 2], …
  template <int without, int first, int terms>
  STEPLADDER_HOST_DEVICE static Number polynomial(const Number (&d)[tile]) {
    Number sum = d[first + 2 * (terms - 1)];
    unroll<terms - 1>(
        [&]<int i>() { sum = fma(constant<coefficient(without, i)>(), d[first + 2 * i], sum); });
    return sum;
  }

  // f<0>(), f<1>(), …: with constant indices, arrays stay in registers.
  template <int count, class Function>
  STEPLADDER_HOST_DEVICE static void unroll(const Function& f) {
    [&]<int... i>(std::integer_sequence<int, i...>) { (f.template operator()<i>(), ...); }
    (std::make_integer_sequence<int, count>{});
  }
};

}  // namespace stepladder::convolution
