// A plan that calls cuBLAS. The variants differ in the compute type.
#pragma once

#include <cublas_v2.h>

#include <string>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/shared_library.hpp"
#include "kernels/matmul/cuda/separate_epilogue.hpp"
#include "kernels/matmul/vendor/column_major.hpp"

namespace stepladder::matmul {

// The library and a handle, shared by all plans. Neither is ever destroyed.
class Cublas {
 public:
  static Cublas& instance() {
    static Cublas cublas;
    return cublas;
  }

  // NVIDIA's recommendation for Hopper. Each plan has its own, since plans may run concurrently in
  // a CUDA graph.
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  void multiply(const ColumnMajorCall& call, cublasComputeType_t arithmetic, void* workspace) {
    if (workspace != workspace_) {
      check("cublasSetWorkspace", set_workspace_(handle_, workspace, workspace_bytes));
      workspace_ = workspace;
    }
    const float one = 1, zero = 0;
    const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    check("cublasGemmEx",
          gemm_(handle_, operation(call.transpose_a), operation(call.transpose_b), call.m, call.n,
                call.k, &one, call.a, CUDA_R_32F, call.lda, call.b, CUDA_R_32F, call.ldb, &zero,
                call.c, CUDA_R_32F, call.ldc, arithmetic, CUBLAS_GEMM_DEFAULT));
  }

 private:
  Cublas() {
    check("cublasCreate", create_(&handle_));
    check("cublasSetStream", set_stream_(handle_, cuda_stream()));
  }

  void check(const char* call, cublasStatus_t status) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error(std::string(call) + ": " + message_(status));
  }

  SharedLibrary library_{"libcublas.so." + std::to_string(CUBLAS_VER_MAJOR)};
  decltype(&::cublasCreate_v2) create_ = library_["cublasCreate_v2"];
  decltype(&::cublasSetStream_v2) set_stream_ = library_["cublasSetStream_v2"];
  decltype(&::cublasSetWorkspace_v2) set_workspace_ = library_["cublasSetWorkspace_v2"];
  decltype(&::cublasGetStatusString) message_ = library_["cublasGetStatusString"];
  // The variant with 64-bit sizes. Its name is overloaded in C++, so decltype does not work.
  cublasStatus_t (*gemm_)(cublasHandle_t, cublasOperation_t, cublasOperation_t, std::int64_t,
                          std::int64_t, std::int64_t, const void*, const void*, cudaDataType,
                          std::int64_t, const void*, cudaDataType, std::int64_t, const void*, void*,
                          cudaDataType, std::int64_t, cublasComputeType_t,
                          cublasGemmAlgo_t) = library_["cublasGemmEx_64"];
  cublasHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;  // that of the last call
};

template <cublasComputeType_t arithmetic>
class CublasPlan final : public Plan {
 public:
  explicit CublasPlan(const Problem& problem) : problem_(problem), cublas_(Cublas::instance()) {}
  void run(const Operands& operands) override {
    cublas_.multiply(column_major(problem_, operands), arithmetic, workspace_.get());
    separate_epilogue(problem_, operands);
  }

 private:
  Problem problem_;
  Cublas& cublas_;
  DeviceMemory workspace_ = device_memory(Cublas::workspace_bytes);
};

}  // namespace stepladder::matmul
