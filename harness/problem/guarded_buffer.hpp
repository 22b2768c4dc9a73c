// An operand in memory between two guard zones. Their pattern reveals writes out of bounds, and its
// values are so large that reads out of bounds spoil the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/common/device.hpp"

namespace stepladder {

inline constexpr std::size_t guard_bytes = 1024;  // before an operand, and after it

// In host memory, or on `device` if it is not null; data() is then a device pointer.
class GuardedBuffer {
 public:
  GuardedBuffer(std::size_t bytes, Device* device);
  // In host memory that the caller owns: memory_for(bytes) bytes, aligned to a cache line.
  GuardedBuffer(std::size_t bytes, std::span<std::byte> memory);
  static std::size_t memory_for(std::size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  // Aligned to a cache line.
  void* data() const { return static_cast<std::byte*>(memory_) + guard_bytes; }
  std::size_t bytes() const { return bytes_; }
  bool is_on_device() const { return device_ != nullptr; }
  void write(const void* from_host);  // bytes() bytes
  void write_at(std::size_t first, std::span<const std::byte> from_host);
  void read(void* to_host) const;  // bytes() bytes
  void read_at(std::size_t first, std::span<std::byte> to_host) const;
  // The operand itself, or, if it is on a device, its copy in `downloaded`, which is resized.
  std::span<const std::byte> view(std::vector<std::byte>& downloaded) const;
  void poison();  // every byte 0xff: NaN as float, 255 as an arg-max
  // Empty, or the side that was overwritten and the distance from the operand's edge.
  std::string guard_damage() const;

 private:
  void write_guards();

  std::size_t bytes_;
  Device* device_;
  std::uint32_t number_;  // selects the pattern; different for each buffer
  void* memory_;
  bool owned_ = true;
};

}  // namespace stepladder
