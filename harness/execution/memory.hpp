// The memory that a network's plans work in: the host's, or the device's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// An array in the memory of the plans, and its copy in host memory. On the CPU they are the same,
// and copying does nothing.
template <class T>
struct Mirrored {
  T* here = nullptr;  // in the memory of the plans
  std::span<T> host;  // on a device: pinned

  // Asynchronous, in the order of the device's other work.
  void start_upload() const {
    if (here != host.data()) device()->start_upload(here, host.data(), host.size_bytes());
  }
  void start_download() const {
    if (here != host.data()) device()->start_download(host.data(), here, host.size_bytes());
  }
};

class Memory {
 public:
  // Place::cuda requires a device.
  explicit Memory(Place place) : place_(place) {}

  Place place() const { return place_; }

  // `count` zeros. The destructor of Memory releases them.
  template <class T>
  T* array(std::size_t count) {
    return static_cast<T*>(place_ == Place::cpu ? on_host(count * sizeof(T))
                                                : on_device(count * sizeof(T)));
  }
  template <class T>
  Mirrored<T> mirrored(std::size_t count) {
    T* here = array<T>(count);
    return {here,
            {place_ == Place::cpu ? here : static_cast<T*>(pinned(count * sizeof(T))), count}};
  }

  // Within the memory of the plans; on a device asynchronous, in the order of its other work.
  void copy(void* to, const void* from, std::size_t bytes) const;
  // Waits for all asynchronous work. Throws std::runtime_error if a kernel failed.
  void wait() const {
    if (place_ == Place::cuda) device()->synchronize();
  }

 private:
  void* on_host(std::size_t bytes);
  void* on_device(std::size_t bytes);
  void* pinned(std::size_t bytes);

  Place place_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> owned_;
};

}  // namespace stepladder
