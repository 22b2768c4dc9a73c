// The micro-kernel of a product of complex matrices with separate real and imaginary parts, as
// kernels/common/cpu/gemm_tile.hpp for real ones: a block of C stays in registers.
//
//   one step of k for 6 x 2 vectors on AVX-512:
//   4 vector loads of b, 12 broadcasts of a, 48 FMAs (four for each complex product)
//   24 accumulators, 4 vectors of b and 2 of a take 30 of 32 registers
//
// With 16 registers a tile has one vector: 12 accumulators, 2 vectors of b, 2 of a.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/common/cpu/simd.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

class ComplexTile {
 public:
  static constexpr std::int64_t lanes = Vector::size;
  static constexpr std::int64_t rows = 6;
  static constexpr std::int64_t vectors = vector_registers == 32 ? 2 : 1;
  static constexpr std::int64_t columns = vectors * lanes;

  // Element (i, j) of a matrix is at i * row + j * column; its imaginary part `imaginary` behind.
  struct A {
    const float* at;
    std::int64_t row, column, imaginary;
  };
  struct B {  // rows of vectors: column is 1
    const float* at;
    std::int64_t row, imaginary;
  };
  struct C {  // the same
    float* at;
    std::int64_t row, imaginary;
  };

  // c (+)= a · b, or a · conj(b), for an m x k matrix a and a k x n matrix b; m <= rows,
  // n <= columns a multiple of lanes. Rows of b and c are aligned to vectors.
  template <bool conjugate>
  static void multiply(std::int64_t k, const A& a, const B& b, const C& c, std::int64_t m,
                       std::int64_t n, bool accumulate) {
    tiles<conjugate>[std::size_t((m - 1) * vectors + n / lanes - 1)](k, a, b, c, accumulate);
  }

 private:
  using Tile = void (*)(std::int64_t k, const A& a, const B& b, const C& c, bool accumulate);

  // I runs over the complex accumulators, row by row; V over the vectors of a row. Accumulators are
  // arrays whose indices are constants of a pack expansion, so that they stay in registers.
  template <bool conjugate, std::int64_t width, std::size_t... I, std::size_t... V>
  static void multiply_tile(std::index_sequence<I...>, std::index_sequence<V...>, std::int64_t k,
                            const A& a, const B& b, const C& c, bool accumulate) {
    Vector re[] = {((void)I, Vector(0.0F))...}, im[] = {((void)I, Vector(0.0F))...};
    const float *a_re = a.at, *a_im = a.at + a.imaginary;
    const float *b_re = b.at, *b_im = b.at + b.imaginary;
    const std::int64_t a_row = a.row, a_column = a.column, b_row = b.row;
    for (std::int64_t l = 0; l < k; ++l) {
      const Vector u[] = {Vector::load_aligned(b_re + V * lanes)...};
      const Vector v[] = {Vector::load_aligned(b_im + V * lanes)...};
      ((re[I] = xsimd::fma(Vector(a_re[I / width * a_row]), u[I % width], re[I]),
        im[I] = add<!conjugate>(Vector(a_re[I / width * a_row]), v[I % width], im[I]),
        re[I] = add<conjugate>(Vector(a_im[I / width * a_row]), v[I % width], re[I]),
        im[I] = xsimd::fma(Vector(a_im[I / width * a_row]), u[I % width], im[I])),
       ...);
      a_re += a_column;
      a_im += a_column;
      b_re += b_row;
      b_im += b_row;
    }
    (store(c.at + I / width * c.row + I % width * lanes, re[I], accumulate), ...);
    (store(c.at + c.imaginary + I / width * c.row + I % width * lanes, im[I], accumulate), ...);
  }

  // sum + x y, or sum - x y.
  template <bool plus>
  static Vector add(Vector x, Vector y, Vector sum) {
    return plus ? xsimd::fma(x, y, sum) : xsimd::fnma(x, y, sum);
  }

  static void store(float* at, Vector sum, bool accumulate) {
    (accumulate ? sum + Vector::load_aligned(at) : sum).store_aligned(at);
  }

  template <bool conjugate, std::int64_t height, std::int64_t width>
  static void tile(std::int64_t k, const A& a, const B& b, const C& c, bool accumulate) {
    multiply_tile<conjugate, width>(std::make_index_sequence<height * width>{},
                                    std::make_index_sequence<width>{}, k, a, b, c, accumulate);
  }

  template <bool conjugate, std::size_t... T>
  static constexpr std::array<Tile, sizeof...(T)> all_tiles(std::index_sequence<T...>) {
    return {&tile<conjugate, T / vectors + 1, T % vectors + 1>...};
  }
  template <bool conjugate>
  static constexpr std::array<Tile, rows * vectors> tiles =
      all_tiles<conjugate>(std::make_index_sequence<rows * vectors>{});
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
