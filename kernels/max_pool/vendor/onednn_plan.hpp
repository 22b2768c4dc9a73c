// Max pooling by oneDNN in the layout of the problem, NCHW or NCHW16c.
#pragma once

#include "kernels/common/onednn_pooling.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : pooling_(p, resources, dnnl::algorithm::pooling_max) {}
  void run(const Operands& o) override { pooling_.run(o.x, o.y, o.argmax); }
  std::string remark() const override { return pooling_.remark(); }

 private:
  OneDnnPooling pooling_;
};

}  // namespace stepladder::max_pool
