// Average pooling by oneDNN in the layout of the problem, NCHW or NCHW16c.
#pragma once

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/onednn_pooling.hpp"

namespace stepladder::average_pool {

class OneDnn final : public OneDnnPooling<Operands> {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : OneDnnPooling(p, resources,
                      p.count == Count::include_padding
                          ? dnnl::algorithm::pooling_avg_include_padding
                          : dnnl::algorithm::pooling_avg_exclude_padding) {}
  void run(const Operands& o) override { pool(o.x, o.y); }
};

}  // namespace stepladder::average_pool
