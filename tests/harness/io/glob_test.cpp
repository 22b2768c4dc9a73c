// Globs select names; the glob of a name selects that name alone.
#include "harness/io/glob.hpp"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

using Globs = std::vector<std::string>;

TEST(Glob, ListsAreSplitAtCommasThatAreNotEscaped) {
  EXPECT_EQ(split_globs("simd_*,openblas"), (Globs{"simd_*", "openblas"}));
  EXPECT_EQ(split_globs("a\\,b,c\\\\,d"), (Globs{"a\\,b", "c\\\\", "d"}));
  EXPECT_EQ(split_globs(""), Globs{""});
}

TEST(Glob, MatchesAsInAShell) {
  EXPECT_TRUE(glob_matches("mlp.*.forward", "mlp.fc1.forward"));
  EXPECT_TRUE(glob_matches("fc[12]", "fc2"));
  EXPECT_FALSE(glob_matches("fc?", "fc10"));
  EXPECT_FALSE(glob_matches("fc", "fc1"));
}

TEST(Glob, OfANameMatchesItAlone) {
  for (const std::string name : {"mlp.fc1", "50 %, all*", "[x]?", "back\\slash"}) {
    ASSERT_EQ(split_globs(glob_of(name)).size(), 1U) << name;
    EXPECT_TRUE(glob_matches(glob_of(name), name)) << name;
  }
  EXPECT_FALSE(glob_matches(glob_of("all*"), "all of them"));
  EXPECT_FALSE(glob_matches(glob_of("[x]"), "x"));
}

}  // namespace
}  // namespace stepladder
