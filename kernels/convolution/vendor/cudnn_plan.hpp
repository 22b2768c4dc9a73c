// A plan that calls cuDNN; the variants differ in the arithmetic that they allow. cuDNN times its
// algorithms on the problem, and the plan keeps the fastest direct or GEMM algorithm. Winograd and
// FFT, which have other error bounds, are excluded.
//
// This is cuDNN's legacy API, which version 9 still has: two calls per direction, where the graph
// API needs many descriptors.
#pragma once

#include <cudnn.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/common/shared_library.hpp"
#include "kernels/convolution/convolution.hpp"

namespace stepladder::convolution {

// The library, loaded once for the lifetime of the process.
class Cudnn {
 public:
  static Cudnn& instance() {
    static Cudnn cudnn;
    return cudnn;
  }

  // A handle for cuda_stream() that no other plan uses. Creating one takes long, so that those of
  // destroyed plans are used again. They are never destroyed.
  cudnnHandle_t take_handle() {
    if (!idle_handles.empty()) {
      const cudnnHandle_t handle = idle_handles.back();
      idle_handles.pop_back();
      return handle;
    }
    cudnnHandle_t handle = nullptr;
    check("cudnnCreate", create_handle(&handle));
    check("cudnnSetStream", set_stream(handle, cuda_stream()));
    return handle;
  }
  void return_handle(cudnnHandle_t handle) { idle_handles.push_back(handle); }

  void check(const char* call, cudnnStatus_t status) const {
    if (status != CUDNN_STATUS_SUCCESS)
      throw std::runtime_error(std::string(call) + ": " + message(status));
  }

 private:
  Cudnn() = default;

  SharedLibrary library{"libcudnn.so." + std::to_string(CUDNN_MAJOR)};
  decltype(&::cudnnGetErrorString) message = library["cudnnGetErrorString"];
  decltype(&::cudnnCreate) create_handle = library["cudnnCreate"];
  decltype(&::cudnnSetStream) set_stream = library["cudnnSetStream"];
  std::vector<cudnnHandle_t> idle_handles;

 public:
  decltype(&::cudnnCreateTensorDescriptor) create_tensor = library["cudnnCreateTensorDescriptor"];
  decltype(&::cudnnDestroyTensorDescriptor) destroy_tensor =
      library["cudnnDestroyTensorDescriptor"];
  decltype(&::cudnnSetTensor4dDescriptor) set_tensor = library["cudnnSetTensor4dDescriptor"];
  decltype(&::cudnnCreateFilterDescriptor) create_filter = library["cudnnCreateFilterDescriptor"];
  decltype(&::cudnnDestroyFilterDescriptor) destroy_filter =
      library["cudnnDestroyFilterDescriptor"];
  decltype(&::cudnnSetFilter4dDescriptor) set_filter = library["cudnnSetFilter4dDescriptor"];
  decltype(&::cudnnCreateConvolutionDescriptor) create_convolution =
      library["cudnnCreateConvolutionDescriptor"];
  decltype(&::cudnnDestroyConvolutionDescriptor) destroy_convolution =
      library["cudnnDestroyConvolutionDescriptor"];
  decltype(&::cudnnSetConvolution2dDescriptor) set_convolution =
      library["cudnnSetConvolution2dDescriptor"];
  decltype(&::cudnnSetConvolutionGroupCount) set_groups = library["cudnnSetConvolutionGroupCount"];
  decltype(&::cudnnSetConvolutionMathType) set_math = library["cudnnSetConvolutionMathType"];
  decltype(&::cudnnFindConvolutionForwardAlgorithm) find_forward =
      library["cudnnFindConvolutionForwardAlgorithm"];
  decltype(&::cudnnFindConvolutionBackwardDataAlgorithm) find_backward_data =
      library["cudnnFindConvolutionBackwardDataAlgorithm"];
  decltype(&::cudnnFindConvolutionBackwardFilterAlgorithm) find_backward_weights =
      library["cudnnFindConvolutionBackwardFilterAlgorithm"];
  decltype(&::cudnnConvolutionForward) forward = library["cudnnConvolutionForward"];
  decltype(&::cudnnConvolutionBackwardData) backward_data = library["cudnnConvolutionBackwardData"];
  decltype(&::cudnnConvolutionBackwardFilter) backward_weights =
      library["cudnnConvolutionBackwardFilter"];
};

// Includes the sub-codes of version 9: layout not supported, shape not supported, …
inline bool is_not_supported(cudnnStatus_t status) {
  constexpr int sub_codes = CUDNN_MAJOR >= 9 ? 1000 : 1;
  return status / sub_codes == CUDNN_STATUS_NOT_SUPPORTED / sub_codes;
}

inline bool is_direct_or_gemm(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
}
inline bool is_direct_or_gemm(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
}
inline bool is_direct_or_gemm(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ||
         algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

class CudnnPlan final : public Plan {
 public:
  // math: CUDNN_FMA_MATH for fp32, CUDNN_DEFAULT_MATH for TF32. Throws Unsupported if a size
  // exceeds cuDNN's int or cuDNN has no such algorithm.
  CudnnPlan(const Problem& p, cudnnMathType_t math) : direction_(p.direction), math_(math) {
    const auto size = [](std::int64_t value) {
      if (value > std::numeric_limits<int>::max())
        throw Unsupported("cuDNN supports sizes up to 2147483647; one is " + std::to_string(value));
      return static_cast<int>(value);
    };
    for (const std::int64_t count : {p.x_count(), p.w_count(), p.y_count()}) size(count);
    const cudnnTensorFormat_t layout =
        p.layout == Layout::nchw ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    check("cudnnSetTensor4dDescriptor",
          cudnn_.set_tensor(x_.get(), layout, CUDNN_DATA_FLOAT, size(p.batch), size(p.in_channels),
                            size(p.height), size(p.width)));
    check("cudnnSetFilter4dDescriptor",
          cudnn_.set_filter(w_.get(), CUDNN_DATA_FLOAT, layout, size(p.out_channels),
                            size(p.group_in()), size(p.kernel_h), size(p.kernel_w)));
    check("cudnnSetTensor4dDescriptor",
          cudnn_.set_tensor(y_.get(), layout, CUDNN_DATA_FLOAT, size(p.batch), size(p.out_channels),
                            size(p.out_h()), size(p.out_w())));
    constexpr int dilation = 1;
    check("cudnnSetConvolution2dDescriptor",
          cudnn_.set_convolution(convolution_.get(), size(p.pad_h), size(p.pad_w), size(p.stride_h),
                                 size(p.stride_w), dilation, dilation, CUDNN_CROSS_CORRELATION,
                                 CUDNN_DATA_FLOAT));
    check("cudnnSetConvolutionGroupCount", cudnn_.set_groups(convolution_.get(), size(p.groups)));
    check("cudnnSetConvolutionMathType", cudnn_.set_math(convolution_.get(), math));
    search();
  }

  void run(const Operands& o) override {
    const float one = 1, zero = 0;
    switch (direction_) {
      case Direction::forward:
        return check(
            "cudnnConvolutionForward",
            cudnn_.forward(handle_.get(), &one, x_.get(), o.x, w_.get(), o.w, convolution_.get(),
                           forward_, workspace_.get(), workspace_bytes_, &zero, y_.get(), o.y));
      case Direction::backward_data:
        return check("cudnnConvolutionBackwardData",
                     cudnn_.backward_data(handle_.get(), &one, w_.get(), o.w, y_.get(), o.y,
                                          convolution_.get(), backward_data_, workspace_.get(),
                                          workspace_bytes_, &zero, x_.get(), o.x));
      case Direction::backward_weights:
        return check(
            "cudnnConvolutionBackwardFilter",
            cudnn_.backward_weights(handle_.get(), &one, x_.get(), o.x, y_.get(), o.y,
                                    convolution_.get(), backward_weights_, workspace_.get(),
                                    workspace_bytes_, &zero, w_.get(), o.w));
    }
  }

 private:
  template <class Descriptor>
  using Owned = std::unique_ptr<std::remove_pointer_t<Descriptor>, cudnnStatus_t (*)(Descriptor)>;

  template <class Descriptor>
  Owned<Descriptor> make(cudnnStatus_t (*create)(Descriptor*),
                         cudnnStatus_t (*destroy)(Descriptor)) const {
    Descriptor descriptor = nullptr;
    check("cudnnCreate…", create(&descriptor));
    return Owned<Descriptor>(descriptor, destroy);
  }

  void check(const char* call, cudnnStatus_t status) const { cudnn_.check(call, status); }

  void search() {
    switch (direction_) {
      case Direction::forward:
        forward_ = fastest(cudnn_.find_forward, x_, w_, y_);
        break;
      case Direction::backward_data:
        backward_data_ = fastest(cudnn_.find_backward_data, w_, y_, x_);
        break;
      case Direction::backward_weights:
        backward_weights_ = fastest(cudnn_.find_backward_weights, x_, y_, w_);
        break;
    }
  }

  // Times all algorithms (cuDNN allocates their operands), selects the fastest that is admissible
  // and allocates its workspace. The descriptors are those of the two operands and of the result.
  template <class First, class Second, class Result, class Performance>
  decltype(Performance::algo) fastest(cudnnStatus_t (*find)(cudnnHandle_t, First, Second,
                                                            cudnnConvolutionDescriptor_t, Result,
                                                            int, int*, Performance*),
                                      const Owned<First>& first, const Owned<Second>& second,
                                      const Owned<Result>& result) {
    std::array<Performance, 32> found;  // every algorithm, once or twice per math type
    int count = 0;
    const cudnnStatus_t status =
        find(handle_.get(), first.get(), second.get(), convolution_.get(), result.get(),
             static_cast<int>(found.size()), &count, found.data());
    if (is_not_supported(status)) throw Unsupported("cuDNN does not support this problem");
    check("cudnnFindConvolution…Algorithm", status);
    for (int i = 0; i < count; ++i) {  // fastest first
      const Performance& candidate = found[i];
      if (candidate.status != CUDNN_STATUS_SUCCESS || !is_direct_or_gemm(candidate.algo) ||
          (candidate.mathType == CUDNN_FMA_MATH) != (math_ == CUDNN_FMA_MATH) ||
          candidate.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION)
        continue;
      check("cudnnSetConvolutionMathType", cudnn_.set_math(convolution_.get(), candidate.mathType));
      workspace_bytes_ = candidate.memory;
      workspace_ = device_memory(workspace_bytes_);
      return candidate.algo;
    }
    throw Unsupported("cuDNN has no such algorithm for this problem");
  }

  struct ReturnHandle {
    void operator()(cudnnHandle_t handle) const { Cudnn::instance().return_handle(handle); }
  };

  const Cudnn& cudnn_ = Cudnn::instance();
  Direction direction_;
  cudnnMathType_t math_;
  // One handle per plan: plans of one step may run concurrently, which a shared handle does not
  // allow.
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, ReturnHandle> handle_{
      Cudnn::instance().take_handle()};
  Owned<cudnnTensorDescriptor_t> x_ = make(cudnn_.create_tensor, cudnn_.destroy_tensor);
  Owned<cudnnFilterDescriptor_t> w_ = make(cudnn_.create_filter, cudnn_.destroy_filter);
  Owned<cudnnTensorDescriptor_t> y_ = make(cudnn_.create_tensor, cudnn_.destroy_tensor);
  Owned<cudnnConvolutionDescriptor_t> convolution_ =
      make(cudnn_.create_convolution, cudnn_.destroy_convolution);
  cudnnConvolutionFwdAlgo_t forward_{};  // only that of the direction is used
  cudnnConvolutionBwdDataAlgo_t backward_data_{};
  cudnnConvolutionBwdFilterAlgo_t backward_weights_{};
  std::size_t workspace_bytes_ = 0;
  DeviceMemory workspace_;
};

}  // namespace stepladder::convolution
