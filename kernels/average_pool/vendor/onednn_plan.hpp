// Average pooling by oneDNN in the layout of the problem, NCHW or NCHW16c.
#pragma once

#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/onednn_pooling.hpp"

namespace stepladder::average_pool {

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : pooling_(p, resources,
                 p.count == Count::include_padding ? dnnl::algorithm::pooling_avg_include_padding
                                                   : dnnl::algorithm::pooling_avg_exclude_padding) {
  }
  void run(const Operands& o) override { pooling_.run(o.x, o.y); }
  std::string remark() const override { return pooling_.remark(); }

 private:
  OneDnnPooling pooling_;
};

}  // namespace stepladder::average_pool
