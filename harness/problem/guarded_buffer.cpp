#include "harness/problem/guarded_buffer.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder {
namespace {

// The content of the guard zones of one buffer. As floats all values are about 3.4e38. The lower
// half of each word depends on the buffer and on the offset: an elementwise kernel that runs past
// the end of all its operands copies one guard zone into another, and must not go unnoticed.
using GuardZone = std::array<std::uint32_t, guard_bytes / sizeof(std::uint32_t)>;

GuardZone guard_zone(std::uint32_t buffer) {
  GuardZone zone;
  for (std::uint32_t word = 0; word < zone.size(); ++word)
    zone[word] = 0x7F7F0000U | ((buffer * 40503U + word * 31153U) & 0xFFFFU);
  return zone;
}

std::atomic<std::uint32_t> buffers_made = 0;

// From host memory to that of a buffer, and back.
void copy_in(Device* device, void* to, const void* from, std::size_t bytes) {
  if (device != nullptr)
    device->upload(to, from, bytes);
  else if (bytes > 0)  // the pointers may be null otherwise
    std::memcpy(to, from, bytes);
}

void copy_out(Device* device, void* to, const void* from, std::size_t bytes) {
  if (device != nullptr)
    device->download(to, from, bytes);
  else if (bytes > 0)
    std::memcpy(to, from, bytes);
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, Device* device)
    : bytes_(bytes), device_(device), number_(buffers_made++) {
  const std::size_t whole = bytes + 2 * guard_bytes;
  memory_ = device_ != nullptr ? device_->allocate(whole) : allocate_aligned(whole);
  if (memory_ == nullptr) throw std::bad_alloc{};
  write_guards();
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::span<std::byte> memory)
    : bytes_(bytes),
      device_(nullptr),
      number_(buffers_made++),
      memory_(memory.data()),
      owned_(false) {
  write_guards();
}

std::size_t GuardedBuffer::memory_for(std::size_t bytes) {
  return round_up(bytes + 2 * guard_bytes, cache_line);
}

void GuardedBuffer::write_guards() {
  const GuardZone zone = guard_zone(number_);
  auto* first = static_cast<std::byte*>(memory_);
  for (std::byte* at : {first, first + guard_bytes + bytes_})
    copy_in(device_, at, zone.data(), guard_bytes);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : bytes_(other.bytes_),
      device_(other.device_),
      number_(other.number_),
      memory_(std::exchange(other.memory_, nullptr)),
      owned_(other.owned_) {}

GuardedBuffer::~GuardedBuffer() {
  if (memory_ == nullptr || !owned_) return;
  if (device_ != nullptr)
    device_->release(memory_);
  else
    std::free(memory_);
}

void GuardedBuffer::read_at(std::size_t first, std::span<std::byte> to_host) const {
  copy_out(device_, to_host.data(), static_cast<std::byte*>(data()) + first, to_host.size());
}

void GuardedBuffer::write_at(std::size_t first, std::span<const std::byte> from_host) {
  copy_in(device_, static_cast<std::byte*>(data()) + first, from_host.data(), from_host.size());
}

void GuardedBuffer::write(const void* from_host) { copy_in(device_, data(), from_host, bytes_); }

void GuardedBuffer::read(void* to_host) const { copy_out(device_, to_host, data(), bytes_); }

std::span<const std::byte> GuardedBuffer::view(std::vector<std::byte>& downloaded) const {
  if (device_ == nullptr) return {static_cast<const std::byte*>(data()), bytes_};
  downloaded.resize(bytes_);
  read(downloaded.data());
  return downloaded;
}

void GuardedBuffer::poison() {
  if (device_ == nullptr) {
    std::memset(data(), 0xff, bytes_);
    return;
  }
  const std::vector<unsigned char> bad(bytes_, 0xff);
  device_->upload(data(), bad.data(), bytes_);
}

std::string GuardedBuffer::guard_damage() const {
  const GuardZone zone = guard_zone(number_);
  const auto* expected = reinterpret_cast<const std::byte*>(zone.data());
  std::array<std::byte, guard_bytes> found;
  const auto is_intact = [&](const std::byte* from) {
    copy_out(device_, found.data(), from, guard_bytes);
    return std::memcmp(found.data(), expected, guard_bytes) == 0;
  };
  const auto* first = static_cast<const std::byte*>(memory_);
  if (!is_intact(first)) {
    std::size_t i = guard_bytes;
    while (found[i - 1] == expected[i - 1]) --i;
    return fmt::format("written out of bounds, {} bytes before its start", guard_bytes - i + 1);
  }
  if (!is_intact(first + guard_bytes + bytes_)) {
    std::size_t i = 0;
    while (found[i] == expected[i]) ++i;
    return fmt::format("written out of bounds, {} bytes past its end", i);
  }
  return {};
}

}  // namespace stepladder
