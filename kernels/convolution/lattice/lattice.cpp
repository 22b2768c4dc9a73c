// The lattice of convolution: the loops of `reordered`, and every combination of five techniques.
//
//   unfolding   each image is copied into a matrix with one column per output pixel (one row for
//               backward_weights): a matrix product does the work; otherwise the image is read
//               where it lies
//   vectors     4, 8 or 16 pixels per instruction (taps, in the product for backward_weights);
//               otherwise one
//   tile        a tile of the result stays in registers for all products; otherwise it is loaded
//               and stored at every product (for backward_weights, every row)
//   packing     the unfolded matrix in panels as wide as a tile, a few hundred pixels at a time;
//               without unfolding, the image in a padded copy, so that no pixel is at a border, and
//               filters side by side
//   threads     each has a range of images
//
// backward_data with stride 1 is forward: dx is the correlation of dy with the filters turned by
// 180 degrees.
#include "kernels/common/lattice.hpp"

#include <algorithm>
#include <variant>

#include "kernels/convolution/lattice/correlation.hpp"
#include "kernels/convolution/lattice/weight_gradient.hpp"

namespace stepladder::convolution {
namespace {

constexpr Switch switches[] = {{"unfolding", Idea::algorithm},
                               {"vectors", Idea::vectors},
                               {"tile", Idea::register_tile},
                               {"packing", Idea::packing},
                               {"threads", Idea::threads}};

Problem of_gradient(const Problem& p) {
  if (p.stride_h != 1 || p.stride_w != 1 || p.pad_h >= p.kernel_h || p.pad_w >= p.kernel_w)
    throw Unsupported("backward_data supports stride 1 and padding below the size of the filter");
  Problem turned = p;
  turned.in_channels = p.out_channels, turned.out_channels = p.in_channels;
  turned.height = p.out_h(), turned.width = p.out_w();
  turned.pad_h = p.kernel_h - 1 - p.pad_h, turned.pad_w = p.kernel_w - 1 - p.pad_w;
  return turned;
}

template <unsigned corner>
class Corner final : public Plan {
  template <template <bool, bool, bool, bool> class Of>
  using With = Of<(corner & 1U) != 0, (corner & 2U) != 0, (corner & 4U) != 0, (corner & 8U) != 0>;
  using AnyCorrelation = With<Correlation>;
  using Gradient = With<WeightGradient>;

 public:
  Corner(const Problem& p, const Resources& resources)
      : p_(p), turned_(aligned_array<float>(static_cast<std::size_t>(turns() ? p.w_count() : 0))) {
    if (p.direction == Direction::backward_weights)
      plan_.template emplace<Gradient>(p, resources.threads);
    else
      plan_.template emplace<AnyCorrelation>(turns() ? of_gradient(p) : p, resources.threads);
  }

  void run(const Operands& o) override {
    if (auto* gradient = std::get_if<Gradient>(&plan_)) return gradient->run(o);
    if (turns()) turn_filters(o.w);
    std::get<AnyCorrelation>(plan_).run(turns() ? Operands{o.y, turned_.get(), o.x} : o);
  }

 private:
  bool turns() const { return p_.direction == Direction::backward_data; }

  // [groups, group_out, group_in, kernel] to [groups, group_in, group_out, kernel backwards]
  void turn_filters(const float* w) {
    const std::int64_t kernel = p_.kernel_h * p_.kernel_w;
    for (std::int64_t g = 0; g < p_.groups; ++g)
      for (std::int64_t o = 0; o < p_.group_out(); ++o)
        for (std::int64_t i = 0; i < p_.group_in(); ++i, w += kernel)
          std::reverse_copy(
              w, w + kernel,
              turned_.get() + ((g * p_.group_in() + i) * p_.group_out() + o) * kernel);
  }

  Problem p_;
  AlignedArray<float> turned_;  // filters for backward_data
  std::variant<std::monostate, AnyCorrelation, Gradient> plan_;
};

constexpr Lattice lattice{.below = "reordered", .switches = switches};
[[maybe_unused]] const bool registered = register_corners<Convolution, Corner>(
    lattice, std::make_integer_sequence<unsigned, 1U << (std::size(switches) - 1)>{});

}  // namespace
}  // namespace stepladder::convolution
