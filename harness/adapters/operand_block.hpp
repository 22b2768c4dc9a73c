// The block of an operand that one rank holds, where operands are distributed over the ranks.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepladder {

// Of an operand of rows of `stride` elements.
struct OperandBlock {
  std::int64_t first = 0;  // element
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;
  std::int64_t count() const { return rows * columns; }
  // NOLINTNEXTLINE(modernize-use-nullptr): a fault of clang-tidy 14
  friend auto operator<=>(const OperandBlock&, const OperandBlock&) = default;
};

// Copies the block, row by row without gaps. `whole`: `per_element` values for each element of the
// operand; empty stays empty.
template <class T>
void copy_block(const std::vector<T>& whole, const OperandBlock& block, std::size_t per_element,
                std::vector<T>& values) {
  values.clear();
  if (whole.empty()) return;
  for (std::int64_t row = 0; row < block.rows; ++row) {
    const auto from = whole.begin() +
                      (block.first + row * block.stride) * static_cast<std::ptrdiff_t>(per_element);
    values.insert(values.end(), from,
                  from + block.columns * static_cast<std::ptrdiff_t>(per_element));
  }
}

}  // namespace stepladder
