// The memory that a network's plans work in: the host's, or the device's. All of it is allocated when the
// network is made.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/common/device.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

// An array where the plans work, with its image for the host. On the CPU the two are one, and copies
// between them do nothing.
template <class T>
struct Mirrored {
  T* here = nullptr;  // where the plans work
  std::span<T> host;  // on a device: pinned

  // In the order of the device's work; the host waits for neither.
  void start_upload() const {
    if (here != host.data()) device()->start_upload(here, host.data(), host.size_bytes());
  }
  void start_download() const {
    if (here != host.data()) device()->start_download(host.data(), here, host.size_bytes());
  }
};

class Memory {
 public:
  // Where there is no device, Place::cuda must not be asked for.
  explicit Memory(Place place) : place_(place) {}

  Place place() const { return place_; }

  // `count` zeros, for as long as this lives.
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

  // Both where the plans work; in the order of theirs.
  void copy(void* to, const void* from, std::size_t bytes) const;
  // Until all that was started is done. Throws std::runtime_error when a kernel failed.
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
