// The VariantInfo of every registered variant, and the order of the ladders.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/adapters/primitives.hpp"
#include "kernels/common/lattice.hpp"
#include "tests/error_messages.hpp"

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

TEST_P(Registry, AFamilyRunsInOnePlace) {
  std::map<std::string, Place> places;
  for (const Variant& variant : variants) {
    const auto [found, is_new] = places.emplace(variant.info->name, variant.info->place);
    EXPECT_EQ(found->second, variant.info->place) << variant.name;
  }
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

TEST_P(Registry, OwnCodeComesBeforeVendorsAndTheCpuBeforeCudaAndOpenCl) {
  const auto group = [](const Variant& v) {
    return 2 * static_cast<int>(v.info->place) + (v.info->technique == Technique::vendor);
  };
  EXPECT_TRUE(std::ranges::is_sorted(
      variants, [&](const Variant& a, const Variant& b) { return group(a) < group(b); }));
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

TEST_P(Registry, ARungAboveAnotherNamesItsIdea) {
  for (const Variant& variant : variants) {
    const VariantInfo& info = *variant.info;
    const bool adds_to_a_rung = *info.builds_on != '\0' && info.technique != Technique::vendor;
    if (adds_to_a_rung) {
      EXPECT_NE(info.idea, Idea::none) << variant.name;
      EXPECT_STRNE(name_of(info.idea), "") << variant.name;
    }
    if (info.technique == Technique::vendor) {
      EXPECT_EQ(info.idea, Idea::none) << variant.name;
    }
  }
}

TEST_P(Registry, EverySerialCpuRungIsAlsoBuiltByTheCompilerAlone) {
  for (const Variant& serial : variants) {
    if (serial.info->technique != Technique::serial || serial.info->isa != Isa::any) continue;
    int builds = 0;
    for (const Variant& other : variants) {
      if (other.info->name != serial.name + "_o3") continue;
      ++builds;
      EXPECT_TRUE(other.info->by_compiler);
      EXPECT_EQ(other.info->builds_on, serial.name);
      EXPECT_EQ(other.info->idea, Idea::compiler);
      EXPECT_NE(other.info->isa, Isa::any);
      EXPECT_EQ(other.info->triangle, serial.info->triangle);
      EXPECT_EQ(other.info->epilogue, serial.info->epilogue);
    }
    EXPECT_EQ(builds, 3) << serial.name;  // the tests are built for all instruction sets
  }
}

TEST_P(Registry, ALatticeHasEveryCombinationOfItsSwitchesAndNoRungs) {
  for (const Variant& variant : variants) EXPECT_EQ(variant.info->lattice, nullptr) << variant.name;
  std::map<Isa, std::set<unsigned>> corners;
  for (const Variant& variant : GetParam()->corners()) {
    const VariantInfo& info = *variant.info;
    ASSERT_NE(info.lattice, nullptr);
    EXPECT_TRUE(corners[info.isa].insert(info.corner).second) << variant.name;
    std::string name = "lattice";
    const auto switches = info.lattice->switches;
    EXPECT_EQ(switches.back().idea, Idea::threads);
    for (std::size_t i = 0; i < switches.size(); ++i)
      if ((info.corner >> i & 1) != 0) name += std::string("_") + switches[i].name;
    EXPECT_EQ(info.name, name);
    EXPECT_EQ(info.threaded, (info.corner >> (switches.size() - 1) & 1) != 0);
    EXPECT_TRUE(std::ranges::any_of(variants, [&](const Variant& rung) {
      return std::string_view(rung.info->name) == info.lattice->below;
    })) << info.lattice->below;
  }
  for (const auto& [isa, found] : corners)
    EXPECT_EQ(found.size(), 1U << GetParam()->corners().front().info->lattice->switches.size())
        << name_of(isa);
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
    return std::ranges::count_if(chosen, [&](const Variant& v) { return v.info->name == family; });
  };
  EXPECT_EQ(widths("simd"), 3);
  EXPECT_EQ(widths("openmp"), 1);
  EXPECT_EQ(widths("serial_ijk"), 1);
}

TEST(SelectVariants, AGlobMatchesFullNamesAndFamilies) {
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "packed_sse42")),
            std::vector<std::string>{"packed_sse42"});
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "serial_i??")),
            (std::vector<std::string>{"serial_ijk", "serial_ikj"}));
  EXPECT_EQ(select_variants(primitive("matmul"), "openmp").size(), 1U);
}

TEST(SelectVariants, CornersOfALatticeAreSelectedByTheirNamesAlone) {
  for (const Variant& variant : select_variants(primitive("matmul"), "*"))
    EXPECT_EQ(variant.info->lattice, nullptr) << variant.name;
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "lattice_vectors_tile_sse42")),
            std::vector<std::string>{"lattice_vectors_tile_sse42"});
  EXPECT_EQ(select_variants(primitive("max_pool"), "lattice_separable").size(), 1U);
  EXPECT_THROW(select_variants(primitive("reorder"), "lattice*"), UnknownName);
}

TEST(SelectVariants, SeveralGlobsSelectTheUnionOfTheirMatches) {
  EXPECT_EQ(names_of(select_variants(primitive("matmul"), "packed_sse42,serial_i??,serial_ijk")),
            (std::vector<std::string>{"serial_ijk", "serial_ikj", "packed_sse42"}));
  EXPECT_THROW(select_variants(primitive("matmul"), "serial_i??,no_such_rung"), UnknownName);
}

TEST(SelectVariants, AGlobWithoutMatchesSuggestsTheNearestNames) {
  EXPECT_EQ(suggestion_of([] { select_variants(primitive("matmul"), "serial_ijj"); }),
            "serial_ijk");
}

TEST(Primitives, AnUnknownNameSuggestsTheNearest) {
  EXPECT_EQ(suggestion_of([] { primitive("matmull"); }), "matmul");
}

}  // namespace
}  // namespace stepladder
