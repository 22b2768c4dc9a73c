// The two-dimensional transforms of a tile of rows x columns real values, one tile per lane.
//
//   tile      [rows, columns]                  real
//     -> half spectrum [rows / 2, columns]     columns transformed; complex (RealDft)
//       -> spectrum    [frequencies]           rows transformed; complex
//
// Row 0 of the half spectrum holds two real rows of the spectrum, 0 and rows / 2: the second is the
// imaginary part. Its transform is separated into columns / 2 + 1 frequencies of each; the others
// are conjugates of these. So row 0 has columns + 2 frequencies, every other row has `columns`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "kernels/convolution/cpu/fft/dft.hpp"
#include "kernels/convolution/cpu/fft/tile_size.hpp"

namespace stepladder::convolution::inline STEPLADDER_ISA {

// The transforms of one size. Steps are in floats; see Dft and RealDft.
struct DftOfSize {
  void (*complex)(const float* re, const float* im, std::int64_t step, float* to_re, float* to_im,
                  std::int64_t to_step);
  void (*real)(const float* from, std::int64_t step, float* spectrum, std::int64_t spectrum_step);
  void (*inverse_real)(const float* spectrum, std::int64_t spectrum_step, float* to,
                       std::int64_t step);

  template <int... sizes>
  static DftOfSize find(std::int64_t size, std::integer_sequence<int, sizes...>) {
    DftOfSize found{};
    ((size == sizes ? void(found = {&Dft<sizes>::transform, &RealDft<sizes>::transform,
                                    &RealDft<sizes>::inverse})
                    : void()),
     ...);
    if (found.complex == nullptr) throw std::logic_error("no transform of this size");
    return found;
  }
};

class TileTransform {
 public:
  static constexpr std::int64_t lanes = Vector::size, pair = 2 * lanes;

  explicit TileTransform(const FftTile& tile)
      : tile_(tile),
        down_(DftOfSize::find(tile.rows, FftTile::Sizes{})),
        across_(DftOfSize::find(tile.columns, FftTile::Sizes{})) {}

  std::int64_t half_rows() const { return tile_.rows / 2; }
  std::int64_t frequencies(std::int64_t row) const { return tile_.columns + (row == 0 ? 2 : 0); }
  std::int64_t first_frequency(std::int64_t row) const {
    return row == 0 ? 0 : row * tile_.columns + 2;
  }
  std::int64_t frequencies() const { return first_frequency(half_rows()); }
  // The inverse transforms multiply by tile_rows · tile_columns, column() by 2: the product of two
  // spectra has to be multiplied by this.
  float scale() const { return 1.0F / static_cast<float>(4 * tile_.rows * tile_.columns); }

  // One column of a tile, its rows `step` floats apart, into the rows of the half spectrum.
  void column(const float* from, std::int64_t step, float* half, std::int64_t half_step) const {
    down_.real(from, step, half, half_step);
  }

  // One row of the half spectrum, [columns, 2, lanes], into its frequencies: real parts from `to`,
  // imaginary parts `imaginary` floats behind, frequencies `step` floats apart.
  void row(std::int64_t row, const float* half, float* to, std::int64_t imaginary,
           std::int64_t step) const {
    if (row > 0)
      across_.complex(half, half + lanes, pair, to, to + imaginary, step);
    else
      separated_row(half, to, imaginary, step);
  }

  // The inverse of row(). half: [columns, 2, lanes].
  void inverse_row(std::int64_t row, const float* from, std::int64_t imaginary, std::int64_t step,
                   float* half) const {
    if (row > 0)
      across_.complex(from + imaginary, from, step, half + lanes, half, pair);
    else
      joined_row(from, imaginary, step, half);
  }

  void inverse_column(const float* half, std::int64_t half_step, float* to,
                      std::int64_t step) const {
    down_.inverse_real(half, half_step, to, step);
  }

 private:
  using Line = float[FftTile::most * pair];

  // With Z the transform of row 0: F[v] = (Z[v] + conj Z[-v]) / 2 is the transform of its real
  // parts, G[v] = (Z[v] - conj Z[-v]) / 2i that of its imaginary parts.
  void separated_row(const float* half, float* to, std::int64_t imaginary,
                     std::int64_t step) const {
    alignas(cache_line) Line z;
    across_.complex(half, half + lanes, pair, z, z + lanes, pair);
    const std::int64_t middle = tile_.columns / 2;
    const Vector one_half(0.5F);
    for (std::int64_t v = 0; v <= middle; ++v, to += step) {
      const float* mirrored = z + (v == 0 ? 0 : tile_.columns - v) * pair;
      const Complex a = load(z + v * pair, z + v * pair + lanes),
                    b = load(mirrored, mirrored + lanes);
      store({one_half * (a.re + b.re), one_half * (a.im - b.im)}, to, to + imaginary);
      float* second = to + (middle + 1) * step;
      store({one_half * (a.im + b.im), one_half * (b.re - a.re)}, second, second + imaginary);
    }
  }

  // Z[v] = F[v] + i G[v] and Z[-v] = conj F[v] + i conj G[v], then the inverse transform.
  void joined_row(const float* from, std::int64_t imaginary, std::int64_t step, float* half) const {
    alignas(cache_line) Line z;
    const std::int64_t middle = tile_.columns / 2;
    for (std::int64_t v = 0; v <= middle; ++v, from += step) {
      const Complex f = load(from, from + imaginary);
      const float* second = from + (middle + 1) * step;
      const Complex g = load(second, second + imaginary);
      float* mirrored = z + (v == 0 ? 0 : tile_.columns - v) * pair;
      store({f.re + g.im, g.re - f.im}, mirrored, mirrored + lanes);
      store({f.re - g.im, f.im + g.re}, z + v * pair, z + v * pair + lanes);
    }
    across_.complex(z + lanes, z, pair, half + lanes, half, pair);
  }

  FftTile tile_;
  DftOfSize down_, across_;  // along a column, along a row
};

}  // namespace stepladder::convolution::inline STEPLADDER_ISA
