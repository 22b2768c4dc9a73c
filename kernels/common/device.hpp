// The interface of an accelerator: memory, copies, timers, recorded work.
// kernels/common/cuda/device.cu registers the CUDA devices; in a build without nvcc there are none,
// and device_status() reports it.
//
// Kernels, copies and events are asynchronous and go to one stream, so they run in the order of
// their calls. Only upload_concurrently() uses a stream of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

// Recorded work, launched as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void launch() = 0;
};

// One node of a recording.
struct Task {
  std::function<void()> start;
  std::vector<std::size_t> after;  // the earlier tasks that it depends on, by index
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;           // as the vendor prints it
  virtual std::string pci_address() const = 0;    // "0000:1B:00.0"
  virtual std::size_t l2_bytes() const = 0;       // its last-level cache
  virtual void* allocate(std::size_t bytes) = 0;  // aligned to 256 bytes; throws std::runtime_error
  virtual void release(void* memory) = 0;
  // Pinned host memory, required for asynchronous copies.
  virtual void* allocate_host(std::size_t bytes) = 0;  // throws std::runtime_error
  virtual void release_host(void* memory) = 0;

  virtual void upload(void* to_device, const void* from_host, std::size_t bytes) = 0;    // blocking
  virtual void download(void* to_host, const void* from_device, std::size_t bytes) = 0;  // blocking
  // Asynchronous: host memory must be pinned, and must not be changed, or read after a download,
  // before synchronize() returns.
  virtual void start_upload(void* to_device, const void* from_host, std::size_t bytes) = 0;
  virtual void start_download(void* to_host, const void* from_device, std::size_t bytes) = 0;
  virtual void start_copy(void* to_device, const void* from_device, std::size_t bytes) = 0;
  // Concurrent with the other work, which must not use `to_device`. Work that is started after
  // await_uploads() runs after these uploads.
  virtual void upload_concurrently(void* to_device, const void* from_host, std::size_t bytes) = 0;
  virtual void await_uploads() = 0;

  virtual void synchronize() = 0;             // throws if a kernel failed
  virtual void start_timer() = 0;             // records an event
  virtual double stop_timer() = 0;            // waits; seconds since start_timer()
  virtual void mark(std::size_t number) = 0;  // records event `number`, also within a recording
  // Seconds between two marks; waits for the second.
  virtual double seconds_between(std::size_t first, std::size_t second) = 0;

  // Records the work of the tasks, with its current arguments, instead of running it. When
  // launched, the kernels and copies of a task run in order; independent tasks run in any order or
  // concurrently. Every task must have run before, so that its kernels are loaded. Throws
  // std::runtime_error if a task waits for the device or allocates, and rethrows exceptions of
  // tasks.
  virtual std::unique_ptr<Recording> record(std::span<const Task> tasks) = 0;
};

Device* device();             // the first; null if there is none
std::string device_status();  // empty, or the reason: "no CUDA device", "built without CUDA"

int device_count();         // 0 if there is none
Device* device(int index);  // index < device_count(); throws std::runtime_error

// Called by a device's file before main().
struct Devices {
  Device* (*find)(std::string& why);  // the first device; null and the reason if there is none
  int (*count)();
  Device* (*at)(int index);
};
void register_devices(const Devices& devices);

}  // namespace stepladder
