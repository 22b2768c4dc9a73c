#include "kernels/all_reduce/mpi/compressed/largest_elements.hpp"

#include <algorithm>
#include <bit>

namespace stepladder::all_reduce {
namespace {

constexpr int shift = 19;  // 31 bits of magnitude, 12 of them in the histogram
constexpr std::uint32_t bins = 1u << (31 - shift);

std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

}  // namespace

LargestElements::LargestElements(std::int64_t count)
    : histogram_(2 * bins), candidates_(static_cast<std::size_t>(count)) {}

void LargestElements::take(const float* values, float* residual, std::int64_t count, std::int64_t k,
                           std::uint32_t* indices, float* selected) {
  // Two histograms, so that neighbours in the same bin do not wait for each other.
  std::fill(histogram_.begin(), histogram_.end(), 0u);
  for (std::int64_t i = 0; i < count; ++i) {
    residual[i] += values[i];
    ++histogram_[(magnitude(residual[i]) >> shift) + (i & 1) * bins];
  }
  // From `bin` on there are at least k elements, above it fewer.
  std::uint32_t bin = bins;
  std::int64_t above = 0;
  for (std::int64_t from = 0; from < k && bin > 0;) {
    above = from;
    --bin;
    from += histogram_[bin] + histogram_[bin + bins];
  }
  std::int64_t taken = 0;
  const auto take_one = [&](std::uint32_t i) {
    indices[taken] = i;
    selected[taken++] = residual[i];
    residual[i] = 0;
  };
  std::size_t candidates = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t m = magnitude(residual[i]);
    if (m >> shift < bin) continue;
    const auto index = static_cast<std::uint32_t>(i);
    if (m >> shift > bin)
      take_one(index);
    else  // in ascending order: larger magnitudes first, then lower indices
      candidates_[candidates++] = std::uint64_t{~m} << 32 | index;
  }
  const auto begin = candidates_.begin();
  const std::int64_t missing = k - above;
  if (missing < static_cast<std::int64_t>(candidates))
    std::nth_element(begin, begin + missing, begin + static_cast<std::int64_t>(candidates));
  for (std::int64_t c = 0; c < missing; ++c)
    take_one(static_cast<std::uint32_t>(candidates_[static_cast<std::size_t>(c)]));
}

}  // namespace stepladder::all_reduce
