#include "kernels/common/layout.hpp"

#include <fmt/format.h>

#include "kernels/common/variant.hpp"

namespace stepladder {

const char* name_of(Layout layout) {
  constexpr const char* names[] = {"nchw", "nhwc", "chwn", "nchw16c"};
  return names[static_cast<std::size_t>(layout)];
}

std::string layouts_of(const VariantInfo& info) {
  if (info.layout == Layout::nchw && info.nhwc) return "NCHW and NHWC";
  constexpr const char* names[] = {"NCHW", "NHWC", "CHWN", "NCHW16c"};
  return names[static_cast<std::size_t>(info.layout)];
}

void require_layout(Layout layout, const VariantInfo& info) {
  if (layout != info.layout && !(layout == Layout::nhwc && info.nhwc))
    throw Unsupported(fmt::format("supports {} only", layouts_of(info)));
}

}  // namespace stepladder
