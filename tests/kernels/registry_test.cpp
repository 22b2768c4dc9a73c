// The VariantInfo of every registered variant, and the order of the ladders.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "harness/io/nearest.hpp"

namespace stepladder {
namespace {

class Registry : public testing::TestWithParam<const PrimitiveType*> {
 protected:
  const std::vector<Variant> variants = GetParam()->variants();
};

TEST_P(Registry, HasALadder) { EXPECT_FALSE(variants.empty()); }

TEST_P(Registry, VariantsDescribeThemselves) {
  for (const Variant& variant : variants) {
    const std::string name = variant.info->name;
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string::npos)
        << name;
    EXPECT_GT(std::string(variant.info->adds).size(), 10U) << name;
    EXPECT_STRNE(name_of(variant.info->precision), "") << name;
    EXPECT_GE(variant.info->bound_factor, 1.0) << name;
  }
}

TEST_P(Registry, FullNamesAreUnique) {
  std::set<std::string> names;
  for (const Variant& variant : variants)
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
}

TEST_P(Registry, ARungComesAfterTheOneItBuildsOn) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string below = variants[i].info->builds_on;
    if (below.empty()) continue;
    const auto is_below = [&](const Variant& other) { return other.info->name == below; };
    EXPECT_TRUE(
        std::any_of(variants.begin(), variants.begin() + static_cast<std::ptrdiff_t>(i), is_below))
        << variants[i].name << " builds on " << below << ", which is not before it";
  }
}

TEST_P(Registry, TheFirstRungBuildsOnNothing) {
  EXPECT_STREQ(variants.front().info->builds_on, "");
}

TEST_P(Registry, OwnCodeComesBeforeVendorsAndTheCpuBeforeTheGpu) {
  const auto group = [](const Variant& v) {
    return 2 * (v.info->place == Place::cuda) + (v.info->technique == Technique::vendor);
  };
  EXPECT_TRUE(
      std::is_sorted(variants.begin(), variants.end(),
                     [&](const Variant& a, const Variant& b) { return group(a) < group(b); }));
}

TEST_P(Registry, AFamilyBuiltPerIsaHasEveryWidthNarrowestFirst) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (variants[i].info->isa != Isa::sse42) continue;
    ASSERT_LE(i + 3, variants.size());
    const std::string family = variants[i].info->name;
    EXPECT_EQ(variants[i].name, family + "_sse42");
    EXPECT_EQ(variants[i + 1].name, family + "_avx2");
    EXPECT_EQ(variants[i + 2].name, family + "_avx512");
  }
}

TEST_P(Registry, AVariantHasAFactoryOrAReason) {
  for (const Variant& variant : variants) {
    if (variant.entry.factory == nullptr) {
      EXPECT_NE(variant.why_unavailable, "") << variant.name;
    }
    if (variant.why_unavailable.empty()) {
      EXPECT_NE(variant.entry.factory, nullptr) << variant.name;
      EXPECT_TRUE(cpu_has(variant.info->isa)) << variant.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Primitives, Registry,
                         testing::ValuesIn(primitives().begin(), primitives().end()),
                         [](const auto& info) { return info.param->name(); });

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  return names;
}

TEST(SelectVariants, WithoutAGlobSelectsEveryWidthOfSimdAndTheWidestOfOtherFamilies) {
  const std::vector<Variant> chosen = select_variants(primitive("matmul"), "");
  const auto widths = [&](const std::string& family) {
    return std::count_if(chosen.begin(), chosen.end(),
                         [&](const Variant& v) { return v.info->name == family; });
  };
  EXPECT_EQ(widths("simd"), 3);
  EXPECT_EQ(widths("openmp"), 1);
  EXPECT_EQ(widths("serial_ijk"), 1);
}

TEST(SelectVariants, AGlobMatchesFullNamesAndFamilies) {
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "packed_sse42")),
            std::vector<std::string>{"packed_sse42"});
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "serial_*")),
            (std::vector<std::string>{"serial_ijk", "serial_ikj"}));
  EXPECT_EQ(select_variants(primitive("matmul"), "openmp").size(), 1U);
}

TEST(SelectVariants, SeveralGlobsSelectTheUnionOfTheirMatches) {
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "packed_sse42,serial_*,serial_ijk")),
            (std::vector<std::string>{"serial_ijk", "serial_ikj", "packed_sse42"}));
  EXPECT_THROW(select_variants(primitive("matmul"), "serial_*,no_such_rung"), UnknownName);
}

TEST(SelectVariants, AGlobWithoutMatchesSuggestsTheNearestNames) {
  try {
    select_variants(primitive("matmul"), "serial_ijj");
    FAIL() << "nothing was thrown";
  } catch (const UnknownName& error) {
    EXPECT_EQ(error.suggestions().front(), "serial_ijk");
  }
}

TEST(Primitives, AnUnknownNameSuggestsTheNearest) {
  try {
    primitive("matmull");
    FAIL() << "nothing was thrown";
  } catch (const UnknownName& error) {
    EXPECT_EQ(error.suggestions().front(), "matmul");
  }
}

}  // namespace
}  // namespace stepladder
