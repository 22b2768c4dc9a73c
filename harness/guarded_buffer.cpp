#include "harness/guarded_buffer.hpp"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "kernels/common/aligned.hpp"

namespace stepladder {
namespace {

constexpr unsigned char pattern = 0xA5;

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, Device* device) : bytes_(bytes), device_(device) {
  const std::size_t whole = (bytes + 2 * guard + cache_line - 1) / cache_line * cache_line;
  memory_ = device_ != nullptr ? device_->allocate(whole) : std::aligned_alloc(cache_line, whole);
  if (memory_ == nullptr) throw std::bad_alloc{};
  const std::vector<unsigned char> zone(guard, pattern);
  auto* first = static_cast<std::byte*>(memory_);
  for (std::byte* at : {first, first + guard + bytes_})
    if (device_ != nullptr)
      device_->upload(at, zone.data(), guard);
    else
      std::memcpy(at, zone.data(), guard);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : bytes_(other.bytes_), device_(other.device_), memory_(std::exchange(other.memory_, nullptr)) {}

GuardedBuffer::~GuardedBuffer() {
  if (memory_ == nullptr) return;
  if (device_ != nullptr)
    device_->release(memory_);
  else
    std::free(memory_);
}

void GuardedBuffer::write(const void* from_host) {
  if (device_ != nullptr)
    device_->upload(data(), from_host, bytes_);
  else
    std::memcpy(data(), from_host, bytes_);
}

void GuardedBuffer::read(void* to_host) const {
  if (device_ != nullptr)
    device_->download(to_host, data(), bytes_);
  else
    std::memcpy(to_host, data(), bytes_);
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
  std::vector<unsigned char> zone(guard);
  const auto read_zone = [&](const std::byte* from) {
    if (device_ != nullptr)
      device_->download(zone.data(), from, guard);
    else
      std::memcpy(zone.data(), from, guard);
  };
  const auto* first = static_cast<const std::byte*>(memory_);
  read_zone(first);
  for (std::size_t i = guard; i-- > 0;)
    if (zone[i] != pattern) return fmt::format("written out of bounds, {} bytes before its start", guard - i);
  read_zone(first + guard + bytes_);
  for (std::size_t i = 0; i < guard; ++i)
    if (zone[i] != pattern) return fmt::format("written out of bounds, {} bytes past its end", i);
  return {};
}

}  // namespace stepladder
