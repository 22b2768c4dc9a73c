// One element after the other, in the order of nchw. One side is read or written along memory, the
// other a whole row of its layout apart: a cache line of 16 elements is fetched for each of them,
// and is often gone before its next element is needed.
#include <algorithm>

#include "kernels/reorder/reorder.hpp"

namespace stepladder::reorder {
namespace {

void reorder(const Problem& p, const Operands& o) {
  const Strides in = p.x_strides(), out = p.y_strides();
  if (stored_channels(p.to, p.channels) > p.channels) std::fill_n(o.y, p.y_count(), 0.0F);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const float* x = o.x + in.plane(n, c);
      float* y = o.y + out.plane(n, c);
      for (std::int64_t h = 0; h < p.height; ++h)
        for (std::int64_t w = 0; w < p.width; ++w)
          y[h * out.row + w * out.column] = x[h * in.row + w * in.column];
    }
}

constexpr VariantInfo info{
    .name = "serial",
    .technique = Technique::serial,
    .adds = "the definition: one element after the other, in the order of nchw",
};

const Registration registration{info, plan_of<reorder>};

}  // namespace
}  // namespace stepladder::reorder
