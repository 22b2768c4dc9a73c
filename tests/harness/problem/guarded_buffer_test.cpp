// Writes out of bounds are found on both sides of operands of any size.
#include "harness/problem/guarded_buffer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/error_messages.hpp"
#include "tests/host_device.hpp"

namespace stepladder {
namespace {

TEST(GuardedBuffer, IsAlignedUndamagedAndContainsWhatWasWritten) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{67}, std::size_t{4096}}) {
    GuardedBuffer buffer(bytes, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    const std::vector<unsigned char> written(bytes, 7);
    buffer.write(written.data());
    std::vector<unsigned char> read(bytes);
    buffer.read(read.data());
    EXPECT_EQ(read, written);
    std::vector<std::byte> downloaded;
    const auto view = buffer.view(downloaded);
    EXPECT_EQ(view.data(), buffer.data());
    EXPECT_EQ(view.size(), bytes);
    EXPECT_TRUE(downloaded.empty());
    EXPECT_EQ(buffer.guard_damage(), "");
  }
}

TEST(GuardedBuffer, DamageIsNamedByItsDistanceFromTheEdge) {
  GuardedBuffer before(67, nullptr), past(67, nullptr);
  static_cast<unsigned char*>(before.data())[-1000] ^= 1;
  EXPECT_TRUE(says(before.guard_damage(), {"1000 bytes before its start"}));
  static_cast<unsigned char*>(past.data())[67 + 12] ^= 1;
  EXPECT_TRUE(says(past.guard_damage(), {"12 bytes past its end"}));
}

// Both zones are as wide as the longest stray write that is promised to be found, 1024 bytes.
TEST(GuardedBuffer, EveryByteOfBothZonesIsGuarded) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{67}}) {
    GuardedBuffer buffer(bytes, nullptr);
    EXPECT_EQ(buffer.bytes(), bytes);
    auto* first = static_cast<unsigned char*>(buffer.data());
    const auto damage_at = [&](unsigned char& byte) {
      byte ^= 0x80;
      const std::string found = buffer.guard_damage();
      byte ^= 0x80;
      return found;
    };
    for (int distance = 1; distance <= 1024; ++distance)
      EXPECT_EQ(damage_at(*(first - distance)),
                fmt::format("written out of bounds, {} bytes before its start", distance));
    for (int distance = 0; distance < 1024; ++distance)
      EXPECT_EQ(damage_at(first[bytes + static_cast<std::size_t>(distance)]),
                fmt::format("written out of bounds, {} bytes past its end", distance));
    EXPECT_EQ(buffer.guard_damage(), "");
  }
}

TEST(GuardedBuffer, TheNearestDamageIsNamedAndThatBeforeTheStartFirst) {
  GuardedBuffer buffer(64, nullptr);
  auto* first = static_cast<unsigned char*>(buffer.data());
  for (const int at : {64 + 5, 64 + 900}) first[at] ^= 1;
  EXPECT_TRUE(says(buffer.guard_damage(), {" 5 bytes past its end"}));
  for (const int at : {-3, -800}) first[at] ^= 1;
  EXPECT_TRUE(says(buffer.guard_damage(), {" 3 bytes before its start"}));
}

TEST(GuardedBuffer, PoisonIsNanAsAFloatInEveryElementAndNowhereElse) {
  GuardedBuffer buffer(3 * sizeof(float) + 1, nullptr);
  buffer.write(std::vector<unsigned char>(13, 7).data());
  buffer.poison();
  std::vector<unsigned char> bytes(13);
  buffer.read(bytes.data());
  EXPECT_EQ(bytes, std::vector<unsigned char>(13, 0xff));
  float value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(buffer.guard_damage(), "");
}

// Ranks of a node have their operands in a window of MPI, which is not the buffer's own.
TEST(GuardedBuffer, InMemoryOfTheCallerItStaysWithinWhatItAskedFor) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{67}}) {
    const std::size_t needed = GuardedBuffer::memory_for(bytes);
    EXPECT_EQ(needed % 64, 0U) << "the next buffer is aligned";
    EXPECT_LT(needed, bytes + 2 * 1024 + 64);
    alignas(64) std::byte memory[4096];
    std::fill(std::begin(memory), std::end(memory), std::byte{3});
    {
      GuardedBuffer buffer(bytes, std::span(memory + 64, needed));
      EXPECT_EQ(buffer.data(), memory + 64 + 1024);
      EXPECT_EQ(buffer.guard_damage(), "");
      memory[64 + 1024 - 1] ^= std::byte{1};
      EXPECT_TRUE(says(buffer.guard_damage(), {"1 bytes before its start"}));
    }
    EXPECT_EQ(memory[63], std::byte{3});
    EXPECT_EQ(memory[64 + needed], std::byte{3});
  }
}

TEST(GuardedBuffer, AMovedBufferIsTheSame) {
  GuardedBuffer from(8, nullptr);
  const double written = 1.5;
  from.write(&written);
  void* const at = from.data();
  const GuardedBuffer to = std::move(from);
  EXPECT_EQ(to.data(), at);
  EXPECT_EQ(to.bytes(), 8U);
  EXPECT_EQ(to.guard_damage(), "");
  double read = 0;
  to.read(&read);
  EXPECT_EQ(read, written);
}

// The error of an elementwise kernel that runs past the end of all its operands.
TEST(GuardedBuffer, TheGuardOfAnotherBufferIsDamage) {
  std::vector<GuardedBuffer> from;
  for (int i = 0; i < 40; ++i) from.emplace_back(64, nullptr);
  GuardedBuffer to(64, nullptr);
  auto* past = static_cast<float*>(to.data()) + 16;
  for (const GuardedBuffer& other : from)
    for (int i = 0; i < 256; ++i) {
      const float before = past[i];
      past[i] = static_cast<const float*>(other.data())[16 + i];
      EXPECT_NE(to.guard_damage(), "");
      past[i] = before;
    }
}

// Nor does a write that is shifted by some elements go unnoticed.
TEST(GuardedBuffer, NoTwoElementsOfAGuardAreTheSame) {
  const GuardedBuffer buffer(0, nullptr);
  const auto* first = static_cast<const float*>(buffer.data());
  EXPECT_EQ(std::set<float>(first - 256, first).size(), 256U);
  EXPECT_EQ(std::set<float>(first, first + 256).size(), 256U);
}

TEST(GuardedBuffer, OnADeviceItIsCheckedAsInHostMemory) {
  HostDevice device;
  {
    GuardedBuffer buffer(8, &device);
    EXPECT_EQ(device.allocations(), 1U);
    const double written = 1.5;
    buffer.write(&written);
    double read = 0;
    std::memcpy(&read, device.in_host(buffer.data(), 8), 8);
    EXPECT_EQ(read, written);
    read = 0;
    buffer.read(&read);
    EXPECT_EQ(read, written);
    EXPECT_EQ(buffer.guard_damage(), "");
    std::vector<std::byte> downloaded(100);
    EXPECT_EQ(buffer.view(downloaded).data(), downloaded.data());
    ASSERT_EQ(downloaded.size(), 8U);
    EXPECT_EQ(std::memcmp(downloaded.data(), &written, 8), 0);

    buffer.poison();
    std::vector<unsigned char> bytes(8);
    buffer.read(bytes.data());
    EXPECT_EQ(bytes, std::vector<unsigned char>(8, 0xff));
    EXPECT_EQ(buffer.guard_damage(), "");

    auto* const first = static_cast<std::byte*>(buffer.data());
    *device.in_host(first + 8 + 1023, 1) ^= 1;
    EXPECT_TRUE(says(buffer.guard_damage(), {"1023 bytes past its end"}));
    *device.in_host(first - 1024, 1) ^= 1;
    EXPECT_TRUE(says(buffer.guard_damage(), {"1024 bytes before its start"}));
    const GuardedBuffer moved = std::move(buffer);
    EXPECT_TRUE(says(moved.guard_damage(), {"1024 bytes before its start"}));
  }
  EXPECT_EQ(device.allocations(), 0U);
}

TEST(GuardedBuffer, ValuesOutOfBoundsAreLarge) {
  const GuardedBuffer buffer(64, nullptr);
  EXPECT_GT(static_cast<float*>(buffer.data())[16], 1e38F);
  EXPECT_GT(static_cast<float*>(buffer.data())[-1], 1e38F);
}

}  // namespace
}  // namespace stepladder
