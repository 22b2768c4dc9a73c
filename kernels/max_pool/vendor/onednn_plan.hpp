// Max pooling by oneDNN in the layout of the problem, NCHW or NCHW16c.
#pragma once

#include "kernels/common/onednn_pooling.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

class OneDnn final : public OneDnnPooling<Operands> {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : OneDnnPooling(p, resources, dnnl::algorithm::pooling_max) {}
  void run(const Operands& o) override { pool(o.x, o.y, o.argmax); }
};

}  // namespace stepladder::max_pool
