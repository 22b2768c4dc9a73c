// One element after the other, in the order of nchw. Between layouts, one side is read or written
// along memory, the other a whole row of its layout apart: a cache line of 16 elements is fetched
// for each of them, and is often gone before its next element is needed. bf16 and fp16 are
// rounded by integer arithmetic, int8 by rint().
#include <algorithm>

#include "kernels/reorder/formats.hpp"

namespace stepladder::reorder {
namespace {

template <class From, class To>
void convert(std::int64_t count, const From* x, To* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = converted<To>(x[i]);
}

void reorder(const Problem& p, const Operands& o) {
  if (p.changes_format())
    return for_types(p, [&]<class From, class To>() {
      convert(p.x_count(), static_cast<const From*>(o.x), static_cast<To*>(o.y));
    });
  const Strides in = p.x_strides(), out = p.y_strides();
  auto* all_y = static_cast<float*>(o.y);
  if (stored_channels(p.to, p.channels) > p.channels) std::fill_n(all_y, p.y_count(), 0.0F);
  for (std::int64_t n = 0; n < p.batch; ++n)
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const float* x = static_cast<const float*>(o.x) + in.plane(n, c);
      float* y = all_y + out.plane(n, c);
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
