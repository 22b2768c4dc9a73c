#include "harness/execution/memory.hpp"

#include <cstdlib>
#include <cstring>

#include "kernels/common/cpu/aligned.hpp"

namespace stepladder {

void* Memory::on_host(std::size_t bytes) {
  owned_.emplace_back(allocate_aligned(bytes), [](void* memory) { std::free(memory); });
  std::memset(owned_.back().get(), 0, bytes);
  return owned_.back().get();
}

void* Memory::on_device(std::size_t bytes) {
  owned_.emplace_back(device()->allocate(bytes), [](void* memory) { device()->release(memory); });
  device()->upload(owned_.back().get(), std::vector<std::byte>(bytes).data(), bytes);
  return owned_.back().get();
}

void* Memory::pinned(std::size_t bytes) {
  owned_.emplace_back(device()->allocate_host(bytes),
                      [](void* memory) { device()->release_host(memory); });
  std::memset(owned_.back().get(), 0, bytes);
  return owned_.back().get();
}

void Memory::copy(void* to, const void* from, std::size_t bytes) const {
  if (place_ == Place::cuda)
    device()->start_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace stepladder
