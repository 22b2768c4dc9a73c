// The processor by its numbers, where a hypervisor hides its name.
#include "harness/measure/machine.hpp"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

TEST(Microarchitecture, IsFoundByFamilyAndModel) {
  EXPECT_EQ(microarchitecture("AuthenticAMD", 25, 17, false), "Zen 4");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 25, 33, false), "Zen 3");
  EXPECT_EQ(microarchitecture("AuthenticAMD", 26, 2, false), "Zen 5");
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 143, true), "Sapphire Rapids");
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 167, false), "Rocket Lake");
}

TEST(Microarchitecture, AnUnknownProcessorHasItsNumbers) {
  EXPECT_EQ(microarchitecture("AuthenticAMD", 26, 200, false), "family 26, model 200");
  EXPECT_EQ(microarchitecture("GenuineIntel", 25, 17, false), "family 25, model 17");
  EXPECT_EQ(microarchitecture("HygonGenuine", 24, 1, false), "");
}

// As a hypervisor showed a processor with AMX.
TEST(Microarchitecture, ANumberThatContradictsTheInstructionsNamesNothing) {
  EXPECT_EQ(microarchitecture("GenuineIntel", 6, 167, true), "family 6, model 167 with AMX");
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
