#include "kernels/common/device.hpp"

namespace stepladder {
namespace {

Device* (*find_device)(std::string& why) = nullptr;

struct Found {
  Device* device = nullptr;
  std::string why = "built without CUDA (nvcc was not found)";
  Found() {
    if (find_device != nullptr) {
      why.clear();
      device = find_device(why);
    }
  }
};

const Found& found() {
  static const Found result;
  return result;
}

}  // namespace

Device* device() { return found().device; }
std::string device_status() { return found().why; }
void register_device(Device* (*find)(std::string& why)) { find_device = find; }

}  // namespace stepladder
