// Exact selection of the k elements of largest magnitude.
#pragma once

#include <cstdint>
#include <vector>

namespace stepladder::all_reduce {

// k = count / 64, rounded up.
inline constexpr std::int64_t top_k_share = 64;
constexpr std::int64_t top_k_of(std::int64_t count) {
  return (count + top_k_share - 1) / top_k_share;
}
// The elements that are left out have at most (1 - k/count) of |v|^2.
inline constexpr double top_k_contraction = 1.0 / top_k_share;

// A histogram of the leading 12 bits of the magnitudes finds the bin of the k-th largest; only the
// elements of that bin are sorted out by std::nth_element. Two passes over the vector.
class LargestElements {
 public:
  // For vectors of up to `count` < 2^32 elements.
  explicit LargestElements(std::int64_t count);

  // v = values + residual. Writes the indices of the k largest |v| and their values, and leaves in
  // residual v without them. Of equal magnitudes the ones of lower index are selected.
  // values, residual: [count]; indices, selected: [k]; k <= count.
  void take(const float* values, float* residual, std::int64_t count, std::int64_t k,
            std::uint32_t* indices, float* selected);

 private:
  std::vector<std::uint32_t> histogram_;   // two, of all bins
  std::vector<std::uint64_t> candidates_;  // [count]: magnitude and index
};

}  // namespace stepladder::all_reduce
