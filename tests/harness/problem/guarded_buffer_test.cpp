// Writes out of bounds are found on both sides of operands of any size.
#include "harness/problem/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/error_messages.hpp"

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

TEST(GuardedBuffer, PoisonIsNanAsAFloat) {
  GuardedBuffer buffer(4, nullptr);
  buffer.poison();
  float value = 0;
  buffer.read(&value);
  EXPECT_TRUE(std::isnan(value));
}

// The error of an elementwise kernel that runs past the end of all its operands.
TEST(GuardedBuffer, TheGuardOfAnotherBufferIsDamage) {
  GuardedBuffer from(64, nullptr), to(64, nullptr);
  static_cast<float*>(to.data())[16] = static_cast<float*>(from.data())[16];
  EXPECT_NE(to.guard_damage(), "");
}

TEST(GuardedBuffer, ValuesOutOfBoundsAreLarge) {
  const GuardedBuffer buffer(64, nullptr);
  EXPECT_GT(static_cast<float*>(buffer.data())[16], 1e38F);
  EXPECT_GT(static_cast<float*>(buffer.data())[-1], 1e38F);
}

}  // namespace
}  // namespace stepladder
