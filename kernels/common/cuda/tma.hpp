// Copies of boxes of a matrix into shared memory by the Tensor Memory Accelerator. One thread
// issues a copy, no thread computes addresses, and elements outside the matrix are zero. Compute
// capability 9.0 (PTX ISA, "cp.async.bulk.tensor"; CUDA Driver API, "Tensor Map Object
// Management"). Only .cu files include this.
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

// A kernel parameter of this type is declared `const __grid_constant__ TensorMap`.
using TensorMap = CUtensorMap;

// to_tf32 selects the type TFLOAT32, with which the TMA rounds elements as it copies them,
// according to comments in CUTLASS; NVIDIA's manuals do not document it.
enum class TmaRounding { none, to_tf32 };

// matrix: [rows, columns], `pitch` floats from row to row; all rows start at multiples of 16 bytes.
// Boxes are box_rows (at most 256) x 32 floats, swizzled in shared memory (swizzle.hpp). Throws
// std::runtime_error when the driver rejects the matrix.
inline TensorMap tensor_map(const float* matrix, std::int64_t rows, std::int64_t columns,
                            std::int64_t pitch, int box_rows, TmaRounding rounding) {
  static const auto encode = [] {
    constexpr unsigned first_version = 12000;
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    STEPLADDER_CUDA_CHECK(cudaGetDriverEntryPointByVersion(
        "cuTensorMapEncodeTiled", &function, first_version, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess)
      throw std::runtime_error("the driver has no cuTensorMapEncodeTiled; it must support CUDA 12");
    return reinterpret_cast<decltype(&::cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t size[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[1] = {static_cast<cuuint64_t>(pitch) * sizeof(float)};
  const cuuint32_t box[2] = {swizzled_row, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t element_strides[2] = {1, 1};
  const CUtensorMapDataType type = rounding == TmaRounding::none ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                                                 : CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
  TensorMap map;
  const CUresult result = encode(&map, type, 2, const_cast<float*>(matrix), size, row_bytes, box,
                                 element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);  // zeros
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled rejected a matrix of " + std::to_string(rows) +
                             " x " + std::to_string(columns) + " floats with a pitch of " +
                             std::to_string(pitch) + ", error " + std::to_string(result) +
                             "; all rows must start at multiples of 16 bytes");
  return map;
}

// Copies the box that begins at [row, column] of the matrix to `to`, a multiple of 1024 bytes. The
// barrier receives the bytes of the whole box, including elements outside the matrix.
__device__ inline void load_box(float* to, const TensorMap& map, int row, int column,
                                Barrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(full.address())
      : "memory");
}

// Multicast: copies the box to the same shared address of several blocks of the cluster, those
// whose rank is set in the bit mask `blocks`, and signals the barrier of each.
__device__ inline void load_box_multicast(unsigned blocks, float* to, const TensorMap& map, int row,
                                          int column, Barrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(full.address()),
      "h"(static_cast<unsigned short>(blocks))
      : "memory");
}

}  // namespace stepladder
