// The processor by its numbers, where a hypervisor hides its name.
#include "harness/measure/machine.hpp"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(Microarchitecture, IsFoundByFamilyAndModel) {
  EXPECT_EQ(microarchitecture("AuthenticAMD", 25, 17), "Zen 4");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 25, 33), "Zen 3");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 26, 2), "Zen 5");
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 143), "Sapphire Rapids");
}

TEST(Microarchitecture, AnUnknownProcessorHasItsNumbers) {
  EXPECT_EQ(microarchitecture("AuthenticAMD", 26, 200), "family 26, model 200");
  EXPECT_EQ(microarchitecture("GenuineIntel", 25, 17), "family 25, model 17");
  EXPECT_EQ(microarchitecture("HygonGenuine", 24, 1), "");
}

// Two processors of one name have different tunings, cost models and calibrations.
TEST(Microarchitecture, IsPartOfTheModelOfTheMachine) {
  const std::string model = detect_machine().cpu_model;
#if defined(__x86_64__)
  EXPECT_TRUE(model.ends_with(")")) << model;
#endif
}

}  // namespace
}  // namespace stepladder
