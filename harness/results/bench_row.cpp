#include "harness/results/bench_row.hpp"

#include "kernels/common/device.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {

std::string device_of(const VariantInfo& variant) {
  if (variant.place == Place::cuda) return device() != nullptr ? device()->name() : "cuda";
  if (variant.place == Place::cpu) return "cpu";
  const opencl::Description* chosen = opencl::chosen_device();
  if (chosen == nullptr) return "opencl";
  return chosen->is_cpu ? "cpu" : chosen->name;
}

}  // namespace stepladder
