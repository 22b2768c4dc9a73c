// The transforms, products and tiles of the rung fft on vectors of the baseline, and the rungs fft
// and fftw on what random problems leave out: large and oblong filters, every tile size.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "harness/problem/random.hpp"
#include "kernels/convolution/cpu/fft/complex_tile.hpp"
#include "kernels/convolution/cpu/fft/tile_size.hpp"
#include "kernels/convolution/cpu/fft/tile_transform.hpp"
#include "tests/kernels/rungs.hpp"

namespace stepladder::convolution {
namespace {

constexpr std::int64_t lanes = TileTransform::lanes, pair = TileTransform::pair;

AlignedArray<float> uniform(Random& random, std::int64_t count) {
  AlignedArray<float> array = aligned_array<float>(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) array[i] = random.uniform(-1.0F, 1.0F);
  return array;
}

// The discrete Fourier transform of one lane by its definition.
std::vector<std::complex<double>> definition(const float* re, const float* im, std::int64_t step,
                                             int n) {
  std::vector<std::complex<double>> all(static_cast<std::size_t>(n));
  for (int k = 0; k < n; ++k)
    for (int j = 0; j < n; ++j)
      all[static_cast<std::size_t>(k)] +=
          std::complex<double>(re[j * step], im == nullptr ? 0 : im[j * step]) *
          std::polar(1.0, -2 * std::numbers::pi * (j * k % n) / n);
  return all;
}

template <int n>
void expect_transform() {
  Random random(n);
  const AlignedArray<float> from = uniform(random, n * pair);
  const AlignedArray<float> to = uniform(random, n * pair), back = uniform(random, n * pair);
  Dft<n>::transform(from.get(), from.get() + lanes, pair, to.get(), to.get() + lanes, pair);
  Dft<n>::transform(to.get() + lanes, to.get(), pair, back.get() + lanes, back.get(), pair);
  const double tolerance = 8 * n * 0x1p-24;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto expected = definition(from.get() + lane, from.get() + lanes + lane, pair, n);
    for (int k = 0; k < n; ++k) {
      const float* got = to.get() + k * pair + lane;
      ASSERT_NEAR(got[0], expected[static_cast<std::size_t>(k)].real(), tolerance) << n << " " << k;
      ASSERT_NEAR(got[lanes], expected[static_cast<std::size_t>(k)].imag(), tolerance) << n;
    }
  }
  for (int i = 0; i < n * pair; ++i) ASSERT_NEAR(back[i], n * from[i], n * tolerance) << n;
}

template <int n>
void expect_real_transform() {
  Random random(n);
  const AlignedArray<float> from = uniform(random, n * lanes);
  const AlignedArray<float> to = uniform(random, n * lanes), back = uniform(random, n * lanes);
  RealDft<n>::transform(from.get(), lanes, to.get(), pair);
  RealDft<n>::inverse(to.get(), pair, back.get(), lanes);
  const double tolerance = 16 * n * 0x1p-24;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto expected = definition(from.get() + lane, nullptr, lanes, n);
    const float* first = to.get() + lane;
    ASSERT_NEAR(first[0], 2 * expected[0].real(), tolerance) << n;
    ASSERT_NEAR(first[lanes], 2 * expected[n / 2].real(), tolerance) << n;
    for (int k = 1; k < n / 2; ++k) {
      const auto x = 2.0 * expected[static_cast<std::size_t>(k)];
      ASSERT_NEAR(first[k * pair], x.real(), tolerance) << n << " " << k;
      ASSERT_NEAR(first[k * pair + lanes], x.imag(), tolerance) << n << " " << k;
    }
  }
  for (int i = 0; i < n * lanes; ++i) ASSERT_NEAR(back[i], 2 * n * from[i], n * tolerance) << n;
}

template <int... sizes>
void expect_transforms(std::integer_sequence<int, sizes...>) {
  (expect_transform<sizes>(), ...);
  (expect_transform<sizes / 2>(), ...);
  (expect_real_transform<sizes>(), ...);
}

TEST(Fft, TransformsAreThoseOfTheDefinition) { expect_transforms(FftTile::Sizes{}); }

TEST(Fft, ATileGoesThereAndBack) {
  Random random(5);
  for (const FftTile& tile : {FftTile{8, 8}, FftTile{16, 24}, FftTile{48, 32}, FftTile{8, 64}}) {
    const TileTransform transform(tile);
    const std::int64_t elements = tile.rows * tile.columns, row = tile.columns * pair;
    const AlignedArray<float> from = uniform(random, elements * lanes);
    const AlignedArray<float> half = uniform(random, transform.half_rows() * row);
    const AlignedArray<float> spectrum = uniform(random, transform.frequencies() * pair);
    const AlignedArray<float> back = uniform(random, elements * lanes);
    for (std::int64_t j = 0; j < tile.columns; ++j)
      transform.column(from.get() + j * lanes, tile.columns * lanes, half.get() + j * pair, row);
    for (std::int64_t u = 0; u < transform.half_rows(); ++u) {
      float* frequencies = spectrum.get() + transform.first_frequency(u) * pair;
      transform.row(u, half.get() + u * row, frequencies, lanes, pair);
      std::fill_n(half.get() + u * row, row, NAN);
      transform.inverse_row(u, frequencies, lanes, pair, half.get() + u * row);
    }
    for (std::int64_t j = 0; j < tile.columns; ++j)
      transform.inverse_column(half.get() + j * pair, row, back.get() + j * lanes,
                               tile.columns * lanes);
    // scale() is for the product of two spectra, each 2 times too large.
    for (std::int64_t i = 0; i < elements * lanes; ++i)
      ASSERT_NEAR(2 * transform.scale() * back[i], from[i], 64 * 0x1p-24)
          << tile.rows << " x " << tile.columns << ", element " << i;
  }
}

template <bool conjugate>
void expect_product(std::int64_t m, std::int64_t k, bool accumulate) {
  constexpr std::int64_t columns = ComplexTile::columns;
  Random random(static_cast<std::uint64_t>(10 * m + k));
  const AlignedArray<float> a = uniform(random, m * 2 * k), b = uniform(random, k * 2 * columns);
  const AlignedArray<float> c = uniform(random, m * 2 * columns);
  const std::vector<float> before(c.get(), c.get() + m * 2 * columns);
  ComplexTile::multiply<conjugate>(k, {a.get(), 2 * k, 1, k}, {b.get(), 2 * columns, columns},
                                   {c.get(), 2 * columns, columns}, m, columns, accumulate);
  const auto at = [](const float* matrix, std::int64_t index, std::int64_t imaginary) {
    return std::complex<double>(matrix[index], matrix[index + imaginary]);
  };
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      std::complex<double> sum = accumulate ? at(before.data(), i * 2 * columns + j, columns) : 0.0;
      for (std::int64_t l = 0; l < k; ++l) {
        const std::complex<double> factor = at(b.get(), l * 2 * columns + j, columns);
        sum += at(a.get(), i * 2 * k + l, k) * (conjugate ? std::conj(factor) : factor);
      }
      const std::complex<double> got = at(c.get(), i * 2 * columns + j, columns);
      ASSERT_LT(std::abs(got - sum), 4 * static_cast<double>(k + 1) * 0x1p-24) << i << " " << j;
    }
}

TEST(Fft, ProductsOfComplexTiles) {
  for (std::int64_t m = 1; m <= ComplexTile::rows; ++m)
    for (const std::int64_t k : {1, 7})
      for (const bool accumulate : {false, true}) {
        expect_product<false>(m, k, accumulate);
        expect_product<true>(m, k, accumulate);
      }
}

Problem layer(Direction direction, std::int64_t image, std::int64_t kernel) {
  return {.direction = direction,
          .batch = 64,
          .in_channels = 64,
          .height = image,
          .width = image,
          .out_channels = 64,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .pad_h = kernel / 2,
          .pad_w = kernel / 2};
}

TEST(Fft, TilesFitTheImage) {
  const auto tile = [](std::int64_t image, std::int64_t kernel) {
    const FftTile found = fft_tile(layer(Direction::forward, image, kernel));
    EXPECT_EQ(found.rows, found.columns);
    return found.rows;
  };
  EXPECT_EQ(tile(6, 3), 8);     // 6 outputs in one tile
  EXPECT_EQ(tile(14, 3), 16);   // 14 outputs in one tile
  EXPECT_EQ(tile(56, 21), 48);  // two tiles of 28 outputs
  EXPECT_EQ(tile(56, 31), 64);
  Problem oblong = layer(Direction::forward, 14, 3);
  oblong.kernel_w = 31;
  oblong.pad_w = 15;
  EXPECT_LT(fft_tile(oblong).rows, fft_tile(oblong).columns);
}

TEST(Fft, ProblemsOutsideTheDomainHaveAReason) {
  const auto reason = [](const Problem& problem) -> std::string {
    try {
      fft_tile(problem);
      return "";
    } catch (const Unsupported& limit) {
      return limit.what();
    }
  };
  EXPECT_EQ(reason(layer(Direction::forward, 56, 64)), "");
  EXPECT_EQ(reason(layer(Direction::forward, 65, 65)),
            "supports filters of up to 64 x 64, the largest tile");
  Problem strided = layer(Direction::forward, 56, 3);
  strided.stride_w = 2;
  EXPECT_EQ(reason(strided), "FFT supports stride 1 only");
}

// Tiles of every size; tiles that overhang; channels that fill no vector, and several; filters
// larger than the image; more padding than filter.
const char* const shapes[] = {"2x3x40x40x5x31x31 pad_h=15 pad_w=15",
                              "1x2x70x9x3x21x1 pad_h=10",
                              "1x2x9x70x3x1x31 pad_w=15",
                              "3x17x13x13x33x3x3 pad_h=1 pad_w=1",
                              "2x6x20x21x40x11x11 pad_h=5 pad_w=5 groups=2",
                              "1x1x4x4x1x12x9 pad_h=8 pad_w=4",
                              "2x2x8x8x2x3x2 pad_h=5 pad_w=4",
                              "5x20x30x30x18x7x9",
                              "1x1x70x70x2x64x64 pad_h=3 pad_w=3"};

class FftRungs : public testing::TestWithParam<const char*> {};

TEST_P(FftRungs, PassOnLargeAndOblongFilters) {
  const std::vector<Variant> rungs = rungs_named(convolution_type(), GetParam());
  if (rungs.empty()) GTEST_SKIP() << GetParam() << " is not available here";
  for (const char* shape : shapes)
    for (const int threads : {1, 3})  // in three directions
      EXPECT_EQ(expect_passed(convolution_type(), shape, rungs, threads), 3 * std::ssize(rungs))
          << shape << ", " << threads << " threads";
}

INSTANTIATE_TEST_SUITE_P(All, FftRungs, testing::Values("fft", "fftw"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace stepladder::convolution
