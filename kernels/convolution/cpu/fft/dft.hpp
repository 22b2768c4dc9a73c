// Discrete Fourier transforms of vectors in memory. Every lane is an independent transform, so no
// butterfly shuffles lanes. Real and imaginary parts are separate vectors.
//
// A transform of n > 8 values has two passes (Cooley and Tukey, 1965): n = n1 n2, and with
// w = exp(-2 pi i / n)
//
//   pass 1   n2 transforms of n1 values, n2 apart     in registers
//            value (k, j) times w^(j k)
//   pass 2   n1 transforms of n2 values               in registers
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/simd.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

struct Complex {
  Vector re, im;
};

inline Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(const Complex& a, const Complex& b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator*(const Complex& a, const Complex& b) {
  return {xsimd::fnma(a.im, b.im, a.re * b.re), xsimd::fma(a.re, b.im, a.im * b.re)};
}
inline Complex load(const float* re, const float* im) {
  return {Vector::load_aligned(re), Vector::load_aligned(im)};
}
inline void store(const Complex& a, float* re, float* im) {
  a.re.store_aligned(re);
  a.im.store_aligned(im);
}

// z[k] = sum over j of z[j] exp(-2 pi i j k / n), in registers. (A call would pass z in memory.)
template <int n>
[[gnu::always_inline]] inline void dft(Complex (&z)[n]) {
  static_assert(n == 2 || n == 3 || n == 4 || n == 6 || n == 8);
  if constexpr (n == 2) {
    const Complex sum = z[0] + z[1];
    z[1] = z[0] - z[1];
    z[0] = sum;
  } else if constexpr (n == 3) {
    const Vector half(0.5F), sine(0.866025403784438647F);
    const Complex sum = z[1] + z[2], difference = z[1] - z[2];
    const Complex middle{xsimd::fnma(half, sum.re, z[0].re), xsimd::fnma(half, sum.im, z[0].im)};
    z[0] = z[0] + sum;
    z[1] = {xsimd::fma(sine, difference.im, middle.re),
            xsimd::fnma(sine, difference.re, middle.im)};
    z[2] = {xsimd::fnma(sine, difference.im, middle.re),
            xsimd::fma(sine, difference.re, middle.im)};
  } else if constexpr (n == 4) {
    const Complex a = z[0] + z[2], b = z[0] - z[2], c = z[1] + z[3];
    const Complex d = {z[1].im - z[3].im, z[3].re - z[1].re};  // -i (z[1] - z[3])
    z[0] = a + c;
    z[1] = b + d;
    z[2] = a - c;
    z[3] = b - d;
  } else if constexpr (n == 6) {  // Good and Thomas: 2 x 3 without factors in between
    Complex a[3] = {z[0], z[2], z[4]}, b[3] = {z[3], z[5], z[1]};
    dft(a);
    dft(b);
    for (int k = 0; k < 3; ++k) {
      z[4 * k % 6] = a[k] + b[k];
      z[(4 * k + 3) % 6] = a[k] - b[k];
    }
  } else {
    const Vector half_root(0.707106781186547524F);
    Complex even[4] = {z[0], z[2], z[4], z[6]}, odd[4] = {z[1], z[3], z[5], z[7]};
    dft(even);
    dft(odd);
    z[0] = even[0] + odd[0];
    z[4] = even[0] - odd[0];
    z[2] = {even[2].re + odd[2].im, even[2].im - odd[2].re};  // times -i
    z[6] = {even[2].re - odd[2].im, even[2].im + odd[2].re};
    const Complex a = {odd[1].re + odd[1].im, odd[1].im - odd[1].re};  // times (1 - i) / sqrt 2
    z[1] = {xsimd::fma(half_root, a.re, even[1].re), xsimd::fma(half_root, a.im, even[1].im)};
    z[5] = {xsimd::fnma(half_root, a.re, even[1].re), xsimd::fnma(half_root, a.im, even[1].im)};
    const Complex b = {odd[3].im - odd[3].re, odd[3].re + odd[3].im};  // times (-1 - i) / sqrt 2
    z[3] = {xsimd::fma(half_root, b.re, even[3].re), xsimd::fnma(half_root, b.im, even[3].im)};
    z[7] = {xsimd::fnma(half_root, b.re, even[3].re), xsimd::fma(half_root, b.im, even[3].im)};
  }
}

// exp(-2 pi i index / n), by the power series in double.
consteval std::array<float, 2> root_of_unity(int index, int n) {
  double angle = 2 * 3.14159265358979323846 * (index % n) / n;
  if (2 * (index % n) > n) angle -= 2 * 3.14159265358979323846;
  double cosine = 0, sine = 0, term = 1;
  for (int i = 0; i < 40; i += 2) {
    cosine += term;
    term *= angle / (i + 1);
    sine += term;
    term *= -angle / (i + 2);
  }
  return {static_cast<float>(cosine), static_cast<float>(-sine)};
}

template <int n>
class Dft {
  static constexpr int n1 = n % 8 == 0 ? (n == 16 ? 4 : 8) : n <= 6 ? n : 4, n2 = n / n1;
  static constexpr std::int64_t lanes = Vector::size;

 public:
  // to[k] = sum over j of from[j] exp(-2 pi i j k / n). Values are `step` floats apart, to_step in
  // the result. With the real and imaginary parts of both exchanged it is the inverse, n times.
  static void transform(const float* re, const float* im, std::int64_t step, float* to_re,
                        float* to_im, std::int64_t to_step) {
    if constexpr (n2 == 1) {
      pass<n>(re, im, step, to_re, to_im, to_step);
    } else {
      alignas(cache_line) float middle[2 * n * lanes];  // [n1, n2, re and im]
      for (int j = 0; j < n2; ++j) {
        Complex z[n1];
        for (int i = 0; i < n1; ++i) {
          const std::int64_t at = (j + n2 * i) * step;
          z[i] = load(re + at, im + at);
        }
        dft(z);
        for (int k = 0; k < n1; ++k) {
          float* to = middle + (k * n2 + j) * 2 * lanes;
          store(k == 0 ? z[0] : z[k] * Complex{Vector(roots[j][k][0]), Vector(roots[j][k][1])}, to,
                to + lanes);
        }
      }
      for (int k = 0; k < n1; ++k) {
        const float* from = middle + k * n2 * 2 * lanes;
        pass<n2>(from, from + lanes, 2 * lanes, to_re + k * to_step, to_im + k * to_step,
                 n1 * to_step);
      }
    }
  }

 private:
  template <int count>
  static void pass(const float* re, const float* im, std::int64_t step, float* to_re, float* to_im,
                   std::int64_t to_step) {
    Complex z[count];
    for (int i = 0; i < count; ++i) z[i] = load(re + i * step, im + i * step);
    dft(z);
    for (int i = 0; i < count; ++i) store(z[i], to_re + i * to_step, to_im + i * to_step);
  }

  using Roots = std::array<std::array<std::array<float, 2>, n1>, n2>;
  static consteval Roots make_roots() {
    Roots all{};
    for (int j = 0; j < n2; ++j)
      for (int k = 0; k < n1; ++k) all[std::size_t(j)][std::size_t(k)] = root_of_unity(j * k, n);
    return all;
  }
  static constexpr Roots roots = make_roots();
};

// Transforms of `size` real values by a complex one of half the size: the values of even index are
// its real parts, those of odd index its imaginary parts. Only half the spectrum X is stored, since
// X[size - k] is the conjugate of X[k]: `size` / 2 complex values, of which the first holds the two
// that are real, X[0] + i X[size / 2].
template <int size>
class RealDft {
  static constexpr int half = size / 2;
  static constexpr std::int64_t lanes = Vector::size, pair = 2 * lanes;

 public:
  // spectrum = 2 X. The imaginary part of each value follows its real part.
  static void transform(const float* from, std::int64_t step, float* spectrum,
                        std::int64_t spectrum_step) {
    alignas(cache_line) float z[half * pair];
    Dft<half>::transform(from, from + step, 2 * step, z, z + lanes, pair);
    const Complex first = load(z, z + lanes), sums = first + first;
    store({sums.re + sums.im, sums.re - sums.im}, spectrum, spectrum + lanes);
    separate<false>(z, pair, spectrum, spectrum_step);
  }

  // The inverse, 2 `size` times: the values whose spectrum is 2 X become 2 `size` as large.
  static void inverse(const float* spectrum, std::int64_t spectrum_step, float* to,
                      std::int64_t step) {
    alignas(cache_line) float z[half * pair];
    const Complex ends = load(spectrum, spectrum + lanes);
    store({ends.re + ends.im, ends.re - ends.im}, z, z + lanes);
    separate<true>(spectrum, spectrum_step, z, pair);
    Dft<half>::transform(z + lanes, z, pair, to + step, to, 2 * step);
  }

 private:
  // Between the spectrum Z of the complex values and that of the real ones. For 0 < k < half, with
  // e = Z[k] + conj Z[half - k], o = Z[k] - conj Z[half - k], t = -i exp(-2 pi i k / size):
  //   2 X[k] = e + t o,   2 X[half - k] = conj(e - t o);   and so back, with conj t.
  template <bool inverse>
  static void separate(const float* from, std::int64_t from_step, float* to, std::int64_t to_step) {
    for (int k = 1; k <= half / 2; ++k) {
      const float* a = from + k * from_step;
      const float* b = from + (half - k) * from_step;
      const Complex front = load(a, a + lanes), back = load(b, b + lanes);
      const Complex sum = {front.re + back.re, front.im - back.im};
      const Complex difference = {front.re - back.re, front.im + back.im};
      const Complex turned = difference * load_factor<inverse>(k);
      store(sum + turned, to + k * to_step, to + k * to_step + lanes);
      store({sum.re - turned.re, turned.im - sum.im}, to + (half - k) * to_step,
            to + (half - k) * to_step + lanes);
    }
  }

  template <bool inverse>
  static Complex load_factor(int k) {  // t, or conj t
    const auto [cosine, minus_sine] = factors[std::size_t(k)];
    return {Vector(minus_sine), Vector(inverse ? cosine : -cosine)};
  }
  static consteval std::array<std::array<float, 2>, half / 2 + 1> make_factors() {
    std::array<std::array<float, 2>, half / 2 + 1> all{};
    for (int k = 0; k <= half / 2; ++k) all[std::size_t(k)] = root_of_unity(k, size);
    return all;
  }
  static constexpr auto factors = make_factors();
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
