#include "kernels/common/device.hpp"

namespace stepladder {
namespace {

Devices registered{};

struct Found {
  Device* device = nullptr;
  std::string why = "built without CUDA (nvcc 13.0 or newer was not found)";
  Found() {
    if (registered.find != nullptr) {
      why.clear();
      device = registered.find(why);
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
int device_count() { return device() != nullptr ? registered.count() : 0; }
Device* device(int index) { return registered.at(index); }
void register_devices(const Devices& devices) { registered = devices; }

}  // namespace stepladder
