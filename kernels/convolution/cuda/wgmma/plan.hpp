// The products of cuda_wgmma_product.hpp that a problem is made of. Sums are a rung's, for tiles from the
// widest to the narrowest. Only .cu files include this.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/cuda/plan.hpp"
#include "kernels/convolution/cuda/add_partials.hpp"
#include "kernels/convolution/cuda/wgmma/k_matrices.hpp"
#include "kernels/convolution/cuda/wgmma/piece_source.hpp"
#include "kernels/convolution/cuda/wgmma/product.hpp"

namespace stepladder::convolution {

template <class... Sums>
struct WgmmaKernels {
  static constexpr int parts = std::max({Sums::parts...});  // of the second factor

  static WgmmaCut cut(const WgmmaSize& size, bool in_parts) {
    static constexpr int widths[] = {Sums::columns...};
    return convolution::cut(size, in_parts, widths, cuda_multiprocessors());
  }

  template <class Product, class Matrix>
  static void start(int columns, const WgmmaWork<Product>& work,
                    const DepthMatrix<Matrix, parts>& second, const float* from) {
    const auto start_if_wanted = [&]<class S>(std::type_identity<S>) {
      if (S::columns != columns) return;
      using Kernel = WgmmaProduct<Product, S>;
      const auto blocks = static_cast<unsigned>(cuda_multiprocessors());
      launch(wgmma_kernel<Product, S>,
             {std::min(work.tiles.count(), blocks), Kernel::threads, sizeof(typename Kernel::Ring)},
             second.prepare(from, columns, S::on_the_way), work);
    };
    (start_if_wanted(std::type_identity<Sums>{}), ...);
  }
};

// forward and backward_data. Few pixels make few tiles, as those of 7 x 7 images do, and then their sums are
// cut into parts; not where a stride makes several products of them.
template <class... Sums>
class WgmmaCorrelationPlan final : public Plan {
 public:
  explicit WgmmaCorrelationPlan(const Problem& p) : WgmmaCorrelationPlan(p, correlations(p)) {}

  void run(const Operands& o) override {
    const float* const source = source_.prepare(forward_ ? o.x : o.y);
    float* const target = forward_ ? o.y : o.x;
    auto* const parts_or_target = parts_ == nullptr ? target : static_cast<float*>(parts_.get());
    for (const Product& product : products_) product.run(source, o.w, parts_or_target, size_);
    if (parts_ != nullptr) add_parts(parts_or_target, parts(), size_, target);
  }

 private:
  using Kernels = WgmmaKernels<Sums...>;

  WgmmaCorrelationPlan(const Problem& p, const std::vector<Correlation>& all)
      : forward_(p.direction == Direction::forward),
        size_(forward_ ? p.y_count() : p.x_count()),
        source_(all.front()) {
    const bool in_parts = all.size() == 1;
    for (const Correlation& c : all)
      products_.emplace_back(c, source_.strides(), forward_, in_parts);
    if (parts() > 1)
      parts_ = device_memory(sizeof(float) * static_cast<std::size_t>(parts() * size_));
  }

  // Filters may be read where they lie when their rows are a sum's terms, in its order.
  static bool are_terms(const Correlation& c, bool forward) {
    return forward && Kernels::parts == 1 && c.w_source == 1 &&
           c.source_channels % piece_channels == 0;
  }

  class Product {
   public:
    Product(const Correlation& c, const PieceStrides& source, bool forward, bool in_parts)
        : c_(c),
          gathering_(c, source),
          filters_(FilterMatrix(c), are_terms(c, forward)),
          cut_(Kernels::cut(pixel_product_size(c), in_parts)) {}
    int parts() const { return cut_.tiles.parts; }
    // target: [parts, size]
    void run(const float* source, const float* w, float* target, std::int64_t size) const {
      const bool in_pairs = c_.target.channel == 1 && c_.target_channels % 2 == 0 &&
                            reinterpret_cast<std::uintptr_t>(target) % sizeof(float2) == 0;
      WgmmaWork<PixelProduct> work{cut_.tiles,
                                   gathering_,
                                   c_.target_channels,
                                   filters_.extent(),
                                   {target, c_.target, size, in_pairs}};
      work.gathering.source = source;
      Kernels::start(cut_.columns, work, filters_, w);
    }

   private:
    Correlation c_;
    Gathering gathering_;
    DepthMatrix<FilterMatrix, Kernels::parts> filters_;
    WgmmaCut cut_;
  };

  int parts() const { return products_.front().parts(); }

  bool forward_;
  std::int64_t size_;  // of the target
  PieceSource source_;
  std::vector<Product> products_;
  DeviceMemory parts_;  // [parts, size]
};

// dw from what each part of the sum gave: [parts, out channels, terms].
static __global__ void add_weight_parts_kernel(FilterMatrix places, const float* from, int parts,
                                               float* dw) {
  const std::int64_t i = thread_index(), size = places.extent * places.depth;
  if (i >= size) return;
  const int to = places.index(i / places.depth, i % places.depth);
  if (to >= 0) dw[to] = sum_of_parts(from, parts, size, i);
}

// backward_weights.
template <class... Sums>
class WgmmaGradientPlan final : public Plan {
 public:
  explicit WgmmaGradientPlan(const Problem& p) : WgmmaGradientPlan(as_forward(p)) {}

  void run(const Operands& o) override {
    auto* const parts = static_cast<float*>(parts_.get());
    WgmmaWork<TermProduct> work{
        cut_.tiles, gathering_, c_.target_channels, gradients_.extent(), {parts}};
    work.gathering.source = source_.prepare(o.x);
    Kernels::start(cut_.columns, work, gradients_, o.y);
    launch(add_weight_parts_kernel, {blocks_for(dw_.extent * dw_.depth), block_threads}, dw_, parts,
           cut_.tiles.parts, o.w);
  }

 private:
  using Kernels = WgmmaKernels<Sums...>;

  explicit WgmmaGradientPlan(const Correlation& c)
      : c_(c),
        source_(c),
        gathering_(c, source_.strides()),
        gradients_(GradientMatrix(c), false),
        dw_(c),
        cut_(Kernels::cut(term_product_size(c), true)),
        parts_(device_memory(
            sizeof(float) * static_cast<std::size_t>(cut_.tiles.parts * dw_.extent * dw_.depth))) {}

  static Correlation as_forward(Problem p) {
    p.direction = Direction::forward;
    return correlations(p).front();
  }

  Correlation c_;
  PieceSource source_;
  Gathering gathering_;
  DepthMatrix<GradientMatrix, Kernels::parts> gradients_;
  FilterMatrix dw_;
  WgmmaCut cut_;
  DeviceMemory parts_;
};

template <class Widest, class... Narrower>
std::unique_ptr<Plan> make_wgmma_plan(const Problem& p, const Resources&) {
  require_tf32();
  require_hopper();
  require_shared_memory(std::max({sizeof(typename WgmmaProduct<PixelProduct, Widest>::Ring),
                                  sizeof(typename WgmmaProduct<PixelProduct, Narrower>::Ring)...}));
  require_wgmma_code(wgmma_kernel<PixelProduct, Widest>);
  require_int_indices(p);
  if (p.direction == Direction::backward_weights)
    return std::make_unique<WgmmaGradientPlan<Widest, Narrower...>>(p);
  return std::make_unique<WgmmaCorrelationPlan<Widest, Narrower...>>(p);
}

}  // namespace stepladder::convolution
