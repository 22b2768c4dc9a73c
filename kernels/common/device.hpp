// An accelerator as the harness sees it: memory, copies, a clock. kernels/common/cuda_device.cu
// registers the CUDA one; without nvcc there is none, and device_status() says so.
#pragma once

#include <cstddef>
#include <string>

namespace stepladder {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;           // as the vendor prints it
  virtual void* allocate(std::size_t bytes) = 0;  // aligned to 256 bytes; throws std::runtime_error
  virtual void release(void* memory) = 0;
  virtual void upload(void* to_device, const void* from_host, std::size_t bytes) = 0;    // blocking
  virtual void download(void* to_host, const void* from_device, std::size_t bytes) = 0;  // blocking
  virtual void synchronize() = 0;   // throws when a kernel failed
  virtual void start_timer() = 0;   // records an event …
  virtual double stop_timer() = 0;  // … and waits for a second: seconds between
};

Device* device();             // the first; null when there is none
std::string device_status();  // empty, or why there is none: "no CUDA device", "built without CUDA"

int device_count();         // 0 when there is none
Device* device(int index);  // index < device_count(); throws std::runtime_error

// Called by a device's file before main().
struct Devices {
  Device* (*find)(std::string& why);  // the first; null, with the reason, when none is present
  int (*count)();
  Device* (*at)(int index);
};
void register_devices(const Devices& devices);

}  // namespace stepladder
