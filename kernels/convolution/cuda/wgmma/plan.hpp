// Plans of the wgmma rungs. Accumulators are those of a rung, one per tile width, widest first.
// Only .cu files include this.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/add_partials.hpp"
#include "kernels/convolution/cuda/wgmma/chunked_source.hpp"
#include "kernels/convolution/cuda/wgmma/gemm.hpp"
#include "kernels/convolution/cuda/wgmma/k_matrices.hpp"

namespace stepladder::convolution {

template <class... Accumulators>
struct WgmmaKernels {
  static constexpr int parts = std::max({Accumulators::parts...});  // of operand B

  static WgmmaTiling choose_tiling(const GemmSize& size, bool may_split) {
    static constexpr int widths[] = {Accumulators::columns...};
    return convolution::choose_tiling(size, may_split, widths, cuda_multiprocessors());
  }

  // Launches the kernel whose tiles have `columns` columns.
  template <class Operation, class Matrix>
  static void start(int columns, const WgmmaParams<Operation>& params, TmaOperand<Matrix, parts>& b,
                    const float* b_data) {
    const auto start_if_chosen = [&]<class A>(std::type_identity<A>) {
      if (A::columns != columns) return;
      using Gemm = WgmmaGemm<Operation, A>;
      const auto blocks = static_cast<unsigned>(cuda_multiprocessors());
      launch(wgmma_kernel<Operation, A>,
             {std::min(params.tiles.count(), blocks), Gemm::threads, sizeof(typename Gemm::Ring)},
             b.prepare(b_data, columns, A::tma_rounding), params);
    };
    (start_if_chosen(std::type_identity<Accumulators>{}), ...);
  }
};

// forward and backward_data. Few pixels, as in images of 7 x 7, make few tiles, and split-K is
// used; not with a stride, where backward_data is several GEMMs.
template <class... Accumulators>
class WgmmaCorrelationPlan final : public Plan {
 public:
  explicit WgmmaCorrelationPlan(const Problem& p) : WgmmaCorrelationPlan(p, correlations(p)) {}

  void run(const Operands& o) override {
    const float* const source = source_.prepare(forward_ ? o.x : o.y);
    float* const target = forward_ ? o.y : o.x;
    auto* const result = partials_ == nullptr ? target : static_cast<float*>(partials_.get());
    for (Gemm& gemm : gemms_) gemm.run(source, o.w, result, size_);
    if (partials_ != nullptr) add_partials(result, splits(), size_, target);
  }

 private:
  using Kernels = WgmmaKernels<Accumulators...>;

  WgmmaCorrelationPlan(const Problem& p, const std::vector<CudaCorrelation>& all)
      : forward_(p.direction == Direction::forward),
        size_(forward_ ? p.y_count() : p.x_count()),
        source_(all.front()) {
    const bool may_split = all.size() == 1;
    for (const CudaCorrelation& c : all)
      gemms_.emplace_back(c, source_.strides(), forward_, may_split);
    if (splits() > 1)
      partials_ = device_memory(sizeof(float) * static_cast<std::size_t>(splits() * size_));
  }

  // Whether the rows of w are CRS in the order of gather.hpp, so that w can be read in place.
  static bool is_k_contiguous(const CudaCorrelation& c, bool forward) {
    return forward && Kernels::parts == 1 && c.w_source == 1 &&
           c.source_channels % chunk_channels == 0;
  }

  class Gemm {
   public:
    Gemm(const CudaCorrelation& c, const ChunkStrides& source, bool forward, bool may_split)
        : c_(c),
          a_(c, source),
          filters_(FilterMatrix(c), is_k_contiguous(c, forward)),
          tiling_(Kernels::choose_tiling(correlation_gemm_size(c), may_split)) {}
    int splits() const { return tiling_.tiles.splits; }
    // result: [splits, size]
    void run(const float* source, const float* w, float* result, std::int64_t size) {
      const bool paired_stores = c_.target.channel == 1 && c_.target_channels % 2 == 0 &&
                                 reinterpret_cast<std::uintptr_t>(result) % sizeof(float2) == 0;
      WgmmaParams<WgmmaCorrelation> params{tiling_.tiles,
                                           a_,
                                           c_.target_channels,
                                           filters_.extent(),
                                           {result, c_.target, size, paired_stores}};
      params.a.source = source;
      Kernels::start(tiling_.columns, params, filters_, w);
    }

   private:
    CudaCorrelation c_;
    Im2colOperand a_;
    TmaOperand<FilterMatrix, Kernels::parts> filters_;
    WgmmaTiling tiling_;
  };

  int splits() const { return gemms_.front().splits(); }

  bool forward_;
  std::int64_t size_;  // of the target
  ChunkedSource source_;
  std::vector<Gemm> gemms_;
  DeviceMemory partials_;  // [splits, size]
};

// Adds partials [splits, out channels, CRS] and stores the sum in the layout of dw.
static __global__ void add_weight_partials_kernel(FilterMatrix matrix, const float* partials,
                                                  int splits, float* dw) {
  const std::int64_t i = thread_index(), size = matrix.extent * matrix.k;
  if (i >= size) return;
  const int to = matrix.index(i / matrix.k, i % matrix.k);
  if (to >= 0) dw[to] = reduce_partials(partials, splits, size, i);
}

template <class... Accumulators>
class WgmmaBackwardWeightsPlan final : public Plan {
 public:
  explicit WgmmaBackwardWeightsPlan(const Problem& p) : WgmmaBackwardWeightsPlan(as_forward(p)) {}

  void run(const Operands& o) override {
    auto* const partials = static_cast<float*>(partials_.get());
    WgmmaParams<WgmmaBackwardWeights> params{
        tiling_.tiles, a_, c_.target_channels, dy_.extent(), {partials}};
    params.a.source = source_.prepare(o.x);
    Kernels::start(tiling_.columns, params, dy_, o.y);
    launch(add_weight_partials_kernel, {blocks_for(dw_.extent * dw_.k), block_threads}, dw_,
           partials, tiling_.tiles.splits, o.w);
  }

 private:
  using Kernels = WgmmaKernels<Accumulators...>;

  explicit WgmmaBackwardWeightsPlan(const CudaCorrelation& c)
      : c_(c),
        source_(c),
        a_(c, source_.strides()),
        dy_(DyMatrix(c), false),
        dw_(c),
        tiling_(Kernels::choose_tiling(backward_weights_gemm_size(c), true)),
        partials_(device_memory(
            sizeof(float) * static_cast<std::size_t>(tiling_.tiles.splits * dw_.extent * dw_.k))) {}

  static CudaCorrelation as_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  CudaCorrelation c_;
  ChunkedSource source_;
  Im2colOperand a_;
  TmaOperand<DyMatrix, Kernels::parts> dy_;
  FilterMatrix dw_;
  WgmmaTiling tiling_;
  DeviceMemory partials_;
};

// CRS with padded channels, and the rows of all parts of operand B, are counted with int.
inline void require_wgmma_indices(const Problem& p, int parts) {
  const std::int64_t crs =
      p.kernel_h * p.kernel_w * round_up(std::max(p.group_in(), p.group_out()), chunk_channels);
  if (std::max(crs, parts * std::max(p.in_channels, p.out_channels)) > max_int_index)
    throw Unsupported(
        "supports at most 2147482624 filter elements of an output channel, whose "
        "channels are padded to four, and as many channels in all parts");
}

template <class Widest, class... Narrower>
std::unique_ptr<Plan> make_wgmma_plan(const Problem& p, const Resources&) {
  require_tf32();
  require_hopper();
  require_shared_memory(
      std::max({sizeof(typename WgmmaGemm<WgmmaCorrelation, Widest>::Ring),
                sizeof(typename WgmmaGemm<WgmmaCorrelation, Narrower>::Ring)...}));
  require_wgmma_code(wgmma_kernel<WgmmaCorrelation, Widest>);
  require_int_indices(p);
  require_wgmma_indices(p, WgmmaKernels<Widest, Narrower...>::parts);
  if (p.direction == Direction::backward_weights)
    return std::make_unique<WgmmaBackwardWeightsPlan<Widest, Narrower...>>(p);
  return std::make_unique<WgmmaCorrelationPlan<Widest, Narrower...>>(p);
}

}  // namespace stepladder::convolution
