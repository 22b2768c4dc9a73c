// An accelerator as the harness sees it: memory, copies, a clock, work that is recorded and replayed.
// kernels/common/cuda/device.cu registers the CUDA one; without nvcc there is none, and device_status()
// says so.
//
// Kernels, copies and events go to one stream and so run in the order of their calls, while the host
// goes on; upload_beside() alone has a stream of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

// Work that starts as one.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void launch() = 0;
};

// A part of a recording.
struct Task {
  std::function<void()> start;
  std::vector<std::size_t> after;  // those before it that must be done when it begins, by number
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;           // as the vendor prints it
  virtual void* allocate(std::size_t bytes) = 0;  // aligned to 256 bytes; throws std::runtime_error
  virtual void release(void* memory) = 0;
  // Of the host, and pinned: the device reads and writes it while the host goes on.
  virtual void* allocate_host(std::size_t bytes) = 0;  // throws std::runtime_error
  virtual void release_host(void* memory) = 0;

  virtual void upload(void* to_device, const void* from_host, std::size_t bytes) = 0;    // blocking
  virtual void download(void* to_host, const void* from_device, std::size_t bytes) = 0;  // blocking
  // These return at once. Pinned memory must stay as it is, and what comes down is there, when
  // synchronize() returns.
  virtual void start_upload(void* to_device, const void* from_host, std::size_t bytes) = 0;
  virtual void start_download(void* to_host, const void* from_device, std::size_t bytes) = 0;
  virtual void start_copy(void* to_device, const void* from_device, std::size_t bytes) = 0;
  // Beside what runs on the device, which must not use `to_device`. What is started after
  // await_uploads() finds these uploads done.
  virtual void upload_beside(void* to_device, const void* from_host, std::size_t bytes) = 0;
  virtual void await_uploads() = 0;

  virtual void synchronize() = 0;             // throws when a kernel failed
  virtual void start_timer() = 0;             // records an event …
  virtual double stop_timer() = 0;            // … and waits for a second: seconds between
  virtual void mark(std::size_t number) = 0;  // records event `number`, in a recording too
  virtual double seconds_between(std::size_t first,
                                 std::size_t second) = 0;  // waits for the second

  // What the tasks start is not run but recorded, with its arguments as they are now. Launched, the kernels
  // and copies of one task run in their order; tasks that do not follow each other run in any, or at once. A
  // task must have run before, so that all of it is loaded. Throws std::runtime_error when one waits for the
  // device or allocates, which cannot be recorded; and whatever one throws.
  virtual std::unique_ptr<Recording> record(std::span<const Task> tasks) = 0;
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
