// Average pooling in oneDNN's own layout, blocks of 16 channels.
#include "kernels/average_pool/average_pool.hpp"
#include "kernels/common/onednn_pooling.hpp"

namespace stepladder::average_pool {
namespace {

class OneDnnBlocked final : public Plan {
 public:
  OneDnnBlocked(const Problem& p, const Resources& resources)
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
    .name = "onednn_blocked",
    .technique = Technique::vendor,
    .adds = "oneDNN's pooling primitive on blocks of 16 channels, the layout that it prefers",
    .layout = Layout::nchw16c,
    .threaded = true,
};

const Registration registration{info, make_plan<AveragePool, OneDnnBlocked>};

}  // namespace
}  // namespace stepladder::average_pool
