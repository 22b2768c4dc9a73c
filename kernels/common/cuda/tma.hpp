// Copies of whole boxes of a matrix into shared memory by the Tensor Memory Accelerator: one thread
// asks, no thread computes an address, and past the matrix's edges there are zeros. Compute
// capability 9.0 (PTX ISA, "cp.async.bulk.tensor"; CUDA Driver API, "Tensor Map Object Management").
// Only .cu files include this.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/check.hpp"
#include "kernels/common/cuda/swizzle.hpp"

namespace stepladder {

// A kernel takes it as `const __grid_constant__ TensorMap`.
using TensorMap = CUtensorMap;

// What becomes of the numbers. The second is the type TFLOAT32, with which the TMA rounds them as it
// copies: CUTLASS's comments say so, the manuals do not.
enum class OnTheWay { unchanged, rounded_to_tf32 };

// matrix: [rows, columns], its rows `pitch` floats apart. It and its rows begin at multiples of 16
// bytes. Boxes have box_rows (at most 256) rows of 32 columns, and are swizzled in shared memory.
inline TensorMap tensor_map(const float* matrix, std::int64_t rows, std::int64_t columns,
                            std::int64_t pitch, int box_rows, OnTheWay numbers) {
  static const auto encode = [] {
    constexpr unsigned first_with_it = 12000;
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    STEPLADDER_CUDA_CHECK(cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &function, first_with_it, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error(
          "the driver has no cuTensorMapEncodeTiled; it needs to be for CUDA 12");
    return reinterpret_cast<decltype(&::cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[1] = {static_cast<cuuint64_t>(pitch) * sizeof(float)};
  const cuuint32_t box[2] = {swizzled_row, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t every_element[2] = {1, 1};
  const CUtensorMapDataType type = numbers == OnTheWay::unchanged
                                       ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                       : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  TensorMap map;
  const CUresult result = encode(&map, type, 2, const_cast<float*>(matrix), size, row_bytes, box,
                                 every_element, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // that is zeros
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(
        "cuTensorMapEncodeTiled refused a matrix of " + std::to_string(rows) + " x " +
        std::to_string(columns) + " floats, rows " + std::to_string(pitch) + " apart, with error " +
        std::to_string(result) + "; it and its rows must begin at multiples of 16 bytes");
  return map;
}

// Copies the box whose first element is [row, column] of the matrix to `to`, a multiple of 1024
// bytes, and reports all the box's bytes to the barrier, those past the edges too.
__device__ inline void load_box(float* to, const TensorMap& map, int row, int column,
                                Barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(arrived.address())
      : "memory");
}

// The same to the same place in several blocks of the cluster at once, for each bit of `blocks` that is
// set the block of that rank; each block's barrier is told.
__device__ inline void load_box_for(unsigned blocks, float* to, const TensorMap& map, int row,
                                    int column, Barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(arrived.address()),
      "h"(static_cast<unsigned short>(blocks))
      : "memory");
}

}  // namespace stepladder
