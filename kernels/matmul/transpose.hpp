// Turns a transposed operand into rows, in blocks of 4 x 4 that stay in registers. Half a shuffle
// per element, so that it costs a small share of a product with more than a few rows.
#pragma once

#include <cstdint>

namespace stepladder::matmul {

// target[j * target_step + i] = source[i * source_step + j] for i < rows, j < columns
void transpose(std::int64_t rows, std::int64_t columns, const float* source,
               std::int64_t source_step, float* target, std::int64_t target_step);

}  // namespace stepladder::matmul
