// Max pooling in oneDNN's own layout, blocks of 16 channels.
#include "kernels/common/onednn_pooling.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

class OneDnnBlocked final : public Plan {
 public:
  OneDnnBlocked(const Problem& p, const Resources& resources)
      : pooling_(p, resources, dnnl::algorithm::pooling_max) {}
  void run(const Operands& o) override { pooling_.run(o.x, o.y, o.argmax); }
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

const Registration registration{info, make_plan<MaxPool, OneDnnBlocked>};

}  // namespace
}  // namespace stepladder::max_pool
