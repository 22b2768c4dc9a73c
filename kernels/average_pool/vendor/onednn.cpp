// oneDNN's average pooling on plain NCHW.
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/onednn_pooling.hpp"

namespace stepladder::average_pool {
namespace {

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : pooling_(p, resources,
                 p.count == Count::include_padding ? dnnl::algorithm::pooling_avg_include_padding
                                                   : dnnl::algorithm::pooling_avg_exclude_padding) {
  }
  void run(const Operands& o) override { pooling_.run(o.x, o.y); }
  std::string remark() const override { return onednn_name(); }

 private:
  OneDnnPooling pooling_;
};

constexpr VariantInfo info{
    .name = "onednn",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on the plain layout",
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OneDnn>};

}  // namespace
}  // namespace stepladder::average_pool
