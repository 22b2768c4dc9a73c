// kernels/common/cuda/tma.hpp on the CPU. Numbers are never rounded to TF32 on the way: the manuals do
// not promise it, and what the tensor cores then cut off is the larger error.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "tests/simt/hopper.hpp"

namespace stepladder {

enum class OnTheWay { unchanged, rounded_to_tf32 };

using TensorMap = simt::Box;  // its place is for load_box to say

inline TensorMap tensor_map(const float* matrix, std::int64_t rows, std::int64_t columns,
                            std::int64_t pitch, int box_rows, OnTheWay) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0 && pitch % 4 == 0;
  if (!is_aligned || rows < 1 || columns < 1 || box_rows < 1 || box_rows > 256)
    throw std::runtime_error("no tensor map is possible of this matrix");
  return {matrix, rows, columns, pitch, box_rows, 0, 0};
}

inline void load_box_for(unsigned blocks, float* to, const TensorMap& map, int row, int column,
                         Barrier& arrived) {
  TensorMap box = map;
  box.row = row;
  box.column = column;
  simt::load_box_later(to, box, &arrived, blocks);
}

inline void load_box(float* to, const TensorMap& map, int row, int column, Barrier& arrived) {
  load_box_for(1U << simt::cluster_rank(), to, map, row, column, arrived);
}

}  // namespace stepladder
