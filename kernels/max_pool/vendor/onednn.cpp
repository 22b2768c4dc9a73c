// oneDNN's max pooling on plain NCHW.
#include "kernels/common/onednn_pooling.hpp"
#include "kernels/max_pool/max_pool.hpp"

namespace stepladder::max_pool {
namespace {

class OneDnn final : public Plan {
 public:
  OneDnn(const Problem& p, const Resources& resources)
      : pooling_(p, resources, dnnl::algorithm::pooling_max) {}
  void run(const Operands& o) override { pooling_.run(o.x, o.y, o.argmax); }
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

const Registration registration{info, make_plan<MaxPool, OneDnn>};

}  // namespace
}  // namespace stepladder::max_pool
