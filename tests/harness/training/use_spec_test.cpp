// The variants that a --use specification selects.
#include "harness/rungs/use_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "harness/adapters/primitives.hpp"
#include "kernels/common/cpu/extensions.hpp"
#include "tests/error_messages.hpp"

namespace stepladder {
namespace {

bool is_vendor(const Variant& v) { return v.info->technique == Technique::vendor; }
bool is_cpu(const Variant& v) { return v.info->place == Place::cpu; }
bool is_serial(const Variant& v) { return v.info->technique == Technique::serial; }

std::vector<std::string> names(const std::string& spec, const std::string& name) {
  std::vector<std::string> all;
  for (const Variant& variant : UseSpec(spec).candidates(primitive(name)))
    all.push_back(variant.name);
  return all;
}

TEST(UseSpec, BestExcludesVendorsSerialRungsAndPthreads) {
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : UseSpec("best").candidates(*type)) {
      EXPECT_TRUE(is_cpu(variant) && !is_vendor(variant) && !is_serial(variant) &&
                  variant.info->technique != Technique::pthread)
          << type->name() << " " << variant.name;
      EXPECT_EQ(variant.why_unavailable, "") << variant.name;
    }
}

TEST(UseSpec, OnlyTheWidestBuildOfAFamilyThatRunsHere) {
  for (const char* spec : {"best", "simd", "openmp", "pthread"})
    for (const PrimitiveType* type : primitives()) {
      const std::vector<Variant> all = UseSpec(spec).candidates(*type);
      for (const Variant& a : all)
        for (const Variant& b : type->variants())
          if (a.info->name == std::string_view(b.info->name) && b.why_unavailable.empty()) {
            EXPECT_GE(a.info->isa, b.info->isa) << spec << ": " << a.name;
          }
    }
}

TEST(UseSpec, VendorIsTheVendorsOrElseTheBest) {
  for (const PrimitiveType* type : primitives()) {
    const std::vector<Variant> all = type->variants();
    const bool has_vendor = std::ranges::any_of(
        all, [](const Variant& v) { return is_vendor(v) && is_cpu(v) && !v.info->over_ranks; });
    if (has_vendor) {
      for (const Variant& variant : UseSpec("vendor").candidates(*type))
        EXPECT_TRUE(is_vendor(variant) && is_cpu(variant));
    } else {
      EXPECT_EQ(names("vendor", type->name()), names("best", type->name()));
    }
  }
}

TEST(UseSpec, AStepMultipliesAndUpdatesItsWeightsInOneProcess) {
  for (const char* type : {"matmul", "sgd_update"})
    for (const char* rung : {"best", "vendor", "simd", "serial", "cuda", "cuda_tf32"})
      for (const Variant& variant : UseSpec(rung).candidates(primitive(type)))
        EXPECT_FALSE(variant.info->over_ranks) << rung << " " << variant.name;
}

TEST(UseSpec, CudaIsTheCudaLadder) {
  for (const Variant& variant : UseSpec("cuda").candidates(primitive("matmul")))
    EXPECT_EQ(variant.info->technique, Technique::cuda);
  EXPECT_FALSE(UseSpec("cuda").candidates(primitive("matmul")).empty());
}

TEST(UseSpec, CudaIsFp32AndCudaTf32AlsoTf32) {
  const auto has_tf32 = [](const char* use) {
    const std::vector<Variant> found = UseSpec(use).candidates(primitive("matmul"));
    return std::ranges::any_of(
        found, [](const Variant& v) { return v.info->precision == Precision::tf32; });
  };
  EXPECT_FALSE(has_tf32("cuda"));
  EXPECT_TRUE(has_tf32("cuda_tf32"));
}

TEST(UseSpec, Bf16IsBestAndTheRungsThatRoundOperands) {
  if (!cpu_has(Extension::avx512_bf16)) {
    EXPECT_THROW(UseSpec("bf16"), std::invalid_argument);
    EXPECT_THROW(UseSpec("best,matmul=bf16"), std::invalid_argument);
    GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }
  for (const PrimitiveType* type : primitives()) {
    std::size_t rounding = 0;
    const std::vector<Variant> found = UseSpec("bf16").candidates(*type);
    for (const Variant& v : found)
      if (v.info->precision == Precision::bf16) {
        ++rounding;
        EXPECT_GT(v.info->operand_error, 0) << v.name;
        EXPECT_FALSE(type->needs_ranks()) << v.name << " sends bf16";
      }
    EXPECT_EQ(found.size() - rounding, UseSpec("best").candidates(*type).size()) << type->name();
    const std::string name = type->name();
    EXPECT_TRUE(name != "matmul" || rounding > 0);
    EXPECT_TRUE(name == "matmul" || name == "convolution" || rounding == 0) << name;
  }
}

TEST(UseSpec, Int8IsBestAndTheRungsThatQuantizeForConstantWeightsAlone) {
  if (!cpu_has(Extension::avx512_vnni)) {
    EXPECT_THROW(UseSpec("int8"), std::invalid_argument);
    GTEST_SKIP() << "this CPU has no AVX512_VNNI";
  }
  EXPECT_THROW(UseSpec("int8").candidates(matmul_type()), std::invalid_argument);
  const UseSpec constant = UseSpec("int8").of_constant_weights(),
                best = UseSpec("best").of_constant_weights();
  for (const PrimitiveType* type : primitives()) {
    const std::vector<Variant> found = constant.candidates(*type);
    const auto quantize = std::ranges::count_if(found, [](const Variant& v) {
      return v.info->precision == Precision::int8 && v.info->quantization_error > 0;
    });
    const std::string name = type->name();
    EXPECT_EQ(quantize, name == "matmul" || name == "convolution" ? 2 : 0) << name;
    EXPECT_EQ(std::ssize(found) - quantize, std::ssize(best.candidates(*type))) << name;
  }
}

// If a ladder lacks the technique, a lower one is used, never a higher one.
TEST(UseSpec, ATechniqueIsItsFirstRungOrALowerOne) {
  const std::vector<std::string> techniques = {"serial", "simd", "openmp", "pthread"};
  for (const PrimitiveType* type : primitives()) {
    if (type->needs_ranks()) continue;
    for (std::size_t named = 0; named < techniques.size(); ++named) {
      const std::vector<Variant> found = UseSpec(techniques[named]).candidates(*type);
      ASSERT_EQ(found.size(), 1U) << type->name() << " " << techniques[named];
      const auto got = std::ranges::find(techniques, name_of(found[0].info->technique));
      const bool by_word =
          std::string(found[0].info->name).find(techniques[named]) != std::string::npos;
      EXPECT_TRUE(by_word || got <= techniques.begin() + static_cast<std::ptrdiff_t>(named))
          << type->name() << " " << techniques[named] << ": " << found[0].name;
    }
  }
}

TEST(UseSpec, ANameIsThatVariant) {
  EXPECT_EQ(names("serial_ikj", "matmul"), std::vector<std::string>{"serial_ikj"});
  EXPECT_EQ(names("simd_sse42", "matmul"), std::vector<std::string>{"simd_sse42"});
}

TEST(UseSpec, CompilerIsEverySerialRungAsTheCompilerVectorizesItOrTheBest) {
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : UseSpec("compiler").candidates(*type))
      EXPECT_EQ(variant.info->by_compiler, !type->needs_ranks()) << variant.name;
  EXPECT_EQ(names("compiler", "matmul").size(), 4U);
  EXPECT_EQ(names("compiler", "all_reduce"), names("best", "all_reduce"));
}

TEST(UseSpec, ACornerOfALatticeIsUsedByItsNameAlone) {
  const std::vector<std::string> found = names("best,max_pool=lattice_vectors", "max_pool");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].find("lattice_vectors_"), 0U);
  for (const char* rung : {"best", "serial", "simd", "openmp", "compiler", "vendor"})
    for (const std::string& name : names(rung, "matmul"))
      EXPECT_NE(name.find("lattice"), 0U) << rung;
}

TEST(UseSpec, EveryVariantCanBeNamedForItsPrimitive) {
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : type->variants())
      EXPECT_EQ(names("best," + std::string(type->name()) + "=" + variant.name, type->name()),
                std::vector<std::string>{variant.name});
}

TEST(UseSpec, ARungOfAnotherLadderIsTheBest) {
  EXPECT_EQ(names("serial_ikj", "max_pool"), names("best", "max_pool"));
}

TEST(UseSpec, ExceptionsHoldForTheirPrimitiveOnly) {
  EXPECT_EQ(names("serial,convolution=im2col", "convolution"), std::vector<std::string>{"im2col"});
  EXPECT_EQ(names("serial,convolution=im2col", "matmul"), names("serial", "matmul"));
  EXPECT_EQ(names("convolution=im2col", "matmul"), names("best", "matmul"));
}

TEST(UseSpec, WithAddsAnException) {
  const UseSpec spec = UseSpec("best").with("convolution", "direct");
  EXPECT_EQ(spec.text(), "best,convolution=direct");
  EXPECT_EQ(names(spec.text(), "convolution"), std::vector<std::string>{"direct"});
  EXPECT_EQ(spec.candidates(primitive("convolution")).front().name, "direct");
}

TEST(UseSpec, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(suggestion_of([] { UseSpec("bset"); }), "best");
  EXPECT_EQ(suggestion_of([] { UseSpec("best,convolution=im2cal"); }), "im2col");
  EXPECT_EQ(suggestion_of([] { UseSpec("best,convolutoin=direct"); }), "convolution");
}

TEST(UseSpec, TwoRungsForAllPrimitivesAreRejected) {
  EXPECT_THROW(UseSpec("best,serial"), std::invalid_argument);
}

TEST(UseSpec, OnlyConstantWeightsAreChosenPrepackedRungsFor) {
  for (const char* use : {"best", "vendor"})
    for (const bool constant : {false, true}) {
      const UseSpec spec = constant ? UseSpec(use).of_constant_weights() : UseSpec(use);
      const std::vector<Variant> found = spec.candidates(primitive("matmul"));
      const bool has_prepacked =
          std::ranges::any_of(found, [](const Variant& v) { return v.info->prepacked; });
      const bool is_built =
          use == std::string("best") || std::ranges::any_of(found, [](const Variant& v) {
            return std::string(v.info->name).starts_with("onednn");
          });
      EXPECT_EQ(has_prepacked, constant && is_built) << use << " " << constant;
    }
}

}  // namespace
}  // namespace stepladder
