// The operands of a product whose long operand has its rows along C (stream_tiles.hpp,
// stream_rows.hpp).
#pragma once

#include <cstdint>

namespace stepladder::matmul {

struct StreamOperands {
  const float* a;  // element (i, l) at a + i · a_row + l · a_step
  std::int64_t a_row, a_step;
  const float* b;  // [K, b_row]
  std::int64_t b_row;
  float* c;                      // element (i, j) at c + i · c_row + j · c_column, overwritten
  std::int64_t c_row, c_column;  // one of them is 1
};

}  // namespace stepladder::matmul
