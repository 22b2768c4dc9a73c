// Emulates kernels/common/cuda/tma.hpp. Elements are never rounded to TF32: the manuals do not
// promise it, and truncation by the tensor cores is the larger error.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "tests/simt/hopper.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {

enum class TmaRounding { none, to_tf32 };

using TensorMap = simt::Box;  // load_box sets the position

inline TensorMap tensor_map(const float* matrix, std::int64_t rows, std::int64_t columns,
                            std::int64_t pitch, int box_rows, TmaRounding) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0 && pitch % 4 == 0;
  if (!is_aligned || rows < 1 || columns < 1 || box_rows < 1 || box_rows > 256)
    throw std::runtime_error("the matrix is not valid for a tensor map");
  ++simt::calls.tensor_maps;
  return {matrix, rows, columns, pitch, box_rows, 0, 0};
}

inline void load_box_multicast(unsigned blocks, float* to, const TensorMap& map, int row,
                               int column, Barrier& full) {
  TensorMap box = map;
  box.row = row;
  box.column = column;
  simt::load_box_later(to, box, &full, blocks);
}

inline void load_box(float* to, const TensorMap& map, int row, int column, Barrier& full) {
  load_box_multicast(1U << simt::cluster_rank(), to, map, row, column, full);
}

}  // namespace stepladder
