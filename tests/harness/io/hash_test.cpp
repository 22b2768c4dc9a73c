#include "harness/io/hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace stepladder {
namespace {

TEST(HashOfWords, SeesEveryByteOfEveryLength) {
  std::set<std::uint64_t> hashes;
  std::size_t texts = 0;
  for (std::size_t bytes = 0; bytes < 20; ++bytes)
    for (std::size_t changed = 0; changed <= bytes; ++changed, ++texts) {
      std::vector<std::byte> text(bytes, std::byte{1});
      if (changed < bytes) text[changed] = std::byte{2};
      hashes.insert(hash_of_words(text));
    }
  EXPECT_EQ(hashes.size(), texts);
}

// They are the highest bits of two words.
TEST(HashOfWords, SeesTwoChangedSigns) {
  std::vector<float> values(64, 1);
  const std::uint64_t before = hash_of_words(std::as_bytes(std::span(values)));
  for (std::size_t i = 3; i < values.size(); i += 2) {
    values[1] = values[i] = -1;
    EXPECT_NE(hash_of_words(std::as_bytes(std::span(values))), before) << i;
    values[i] = 1;
  }
}

}  // namespace
}  // namespace stepladder
