// A device in host memory. Its pointers lie in pages that the host must not touch, so that code
// which takes one for a host pointer crashes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/common/device.hpp"

namespace stepladder {

class HostDevice final : public Device {
 public:
  std::string name() const override { return "host"; }
  std::string pci_address() const override { return "none"; }
  std::size_t l2_bytes() const override { return 1; }
  void* allocate(std::size_t bytes) override {
    void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no address space");
    memory_[static_cast<std::byte*>(at)] = std::string(bytes, '\0');
    return at;
  }
  void release(void* memory) override {
    const auto found = memory_.find(static_cast<std::byte*>(memory));
    if (found == memory_.end()) throw std::runtime_error("released twice");
    munmap(memory, found->second.size());
    memory_.erase(found);
  }
  void upload(void* to_device, const void* from_host, std::size_t bytes) override {
    std::memcpy(in_host(to_device, bytes), from_host, bytes);
  }
  void download(void* to_host, const void* from_device, std::size_t bytes) override {
    std::memcpy(to_host, in_host(from_device, bytes), bytes);
  }
  std::size_t allocations() const { return memory_.size(); }
  // Where the content of device memory is.
  char* in_host(const void* device, std::size_t bytes) {
    const auto* at = static_cast<const std::byte*>(device);
    auto next = memory_.upper_bound(const_cast<std::byte*>(at));
    if (next == memory_.begin()) throw std::runtime_error("no device memory");
    auto& [first, content] = *--next;
    const auto offset = static_cast<std::size_t>(at - first);
    if (offset + bytes > content.size()) throw std::runtime_error("past the end of device memory");
    return content.data() + offset;
  }

  // What no test needs.
  void* allocate_host(std::size_t) override { return none<void*>(); }
  void release_host(void*) override { none<void*>(); }
  void start_upload(void*, const void*, std::size_t) override { none<int>(); }
  void start_download(void*, const void*, std::size_t) override { none<int>(); }
  void start_copy(void*, const void*, std::size_t) override { none<int>(); }
  void upload_concurrently(void*, const void*, std::size_t) override { none<int>(); }
  void await_uploads() override { none<int>(); }
  void synchronize() override {}
  void start_timer() override { none<int>(); }
  double stop_timer() override { return none<double>(); }
  void mark(std::size_t) override { none<int>(); }
  double seconds_between(std::size_t, std::size_t) override { return none<double>(); }
  std::unique_ptr<Recording> record(std::span<const Task>) override { return nullptr; }

 private:
  template <class T>
  static T none() {
    throw std::logic_error("not in this device");
  }
  std::map<std::byte*, std::string> memory_;  // content by first address
};

}  // namespace stepladder
