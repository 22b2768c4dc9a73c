#include "kernels/common/layout.hpp"

#include <fmt/format.h>

#include "kernels/common/variant.hpp"

namespace stepladder {

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::nchw:
      return "nchw";
    case Layout::nhwc:
      return "nhwc";
    case Layout::chwn:
      return "chwn";
    case Layout::nchw16c:
      return "nchw16c";
  }
  return "";
}

std::string layouts_of(const VariantInfo& info) {
  switch (info.layout) {
    case Layout::nchw:
      return info.nhwc ? "NCHW and NHWC" : "NCHW";
    case Layout::nhwc:
      return "NHWC";
    case Layout::chwn:
      return "CHWN";
    case Layout::nchw16c:
      return "NCHW16c";
  }
  return "";
}

void require_layout(Layout layout, const VariantInfo& info) {
  if (layout != info.layout && !(layout == Layout::nhwc && info.nhwc))
    throw Unsupported(fmt::format("supports {} only", layouts_of(info)));
}

}  // namespace stepladder
