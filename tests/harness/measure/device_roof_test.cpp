// The roof of a CUDA row follows from the ceilings of the device, never from those of the CPU.
#include <gtest/gtest.h>

#include "harness/measure/ceilings.hpp"

namespace stepladder {
namespace {

const std::vector<Ceiling> of_cpu = {{"fma_peak", "GFLOP/s", 1, "", 100},
                                     {"stream_copy", "GB/s", 1, "DRAM", 10}};
const std::vector<Ceiling> of_both = {{"fma_peak", "GFLOP/s", 1, "", 100},
                                      {"stream_copy", "GB/s", 1, "DRAM", 10},
                                      {"fma_peak", "GFLOP/s", 0, "", 60e3},
                                      {"tf32_peak", "GFLOP/s", 0, "", 480e3},
                                      {"stream_copy", "GB/s", 0, "device", 4e3}};
constexpr VariantInfo fp32{.name = "fp32", .technique = Technique::cuda, .adds = ""};
constexpr VariantInfo tf32{.name = "tf32",
                           .technique = Technique::cuda,
                           .adds = "",
                           .precision = Precision::tf32,
                           .operand_error = 0x1p-9};
constexpr VariantInfo tf32x3{
    .name = "tf32x3", .technique = Technique::cuda, .adds = "", .operand_error = 0x1p-21};

ProblemInfo problem(double flops, double bytes) {
  ProblemInfo info;
  info.flops = flops;
  info.bytes_read = info.bytes_written = bytes / 2;
  return info;
}

TEST(DeviceRoof, IsTheLongerOfTheTimesOfTheDevicesCeilings) {
  struct Row {
    double flops, bytes;
    const VariantInfo& info;
    const char* name;
  };
  for (const Row& row : {Row{60e12, 4e9, fp32, "fma_peak"},
                         {60e9, 4e12, fp32, "stream_copy_device"},
                         {480e12, 4e9, tf32, "tf32_peak"},
                         {160e12, 4e9, tf32x3, "tf32_peak/3"}}) {  // of three products
    const Roof roof = device_roof_of(problem(row.flops, row.bytes), row.info, of_both);
    EXPECT_EQ(roof.name, row.name);
    EXPECT_DOUBLE_EQ(roof.seconds, 1.0) << row.name;
  }
  const Roof none = device_roof_of(problem(60e12, 4e9), fp32, of_cpu);
  EXPECT_EQ(none.name, "");
  EXPECT_EQ(none.seconds, 0);
}

TEST(DeviceRoof, OfThreeProductsInTf32IsNotBelowThatOfFp32) {
  std::vector<Ceiling> slow = of_both;
  for (Ceiling& ceiling : slow)
    if (ceiling.name == "tf32_peak") ceiling.value = 100e3;
  EXPECT_EQ(device_roof_of(problem(60e12, 4e9), tf32x3, slow).name, "fma_peak");
  EXPECT_EQ(device_roof_of(problem(60e12, 4e9), tf32, slow).name, "tf32_peak");
}

TEST(DeviceRoof, IsLeftOutWhereItsPeakIsNotMeasured) {
  std::vector<Ceiling> old = of_both;
  std::erase_if(old, [](const Ceiling& ceiling) { return ceiling.name == "tf32_peak"; });
  EXPECT_EQ(device_roof_of(problem(60e12, 4e9), tf32, old).name, "");
  EXPECT_EQ(device_roof_of(problem(60e12, 4e9), tf32x3, old).name, "");
  EXPECT_EQ(device_roof_of(problem(60e12, 4e9), fp32, old).name, "fma_peak");
}

TEST(DeviceRoof, CpuRoofUsesTheCpuCeilings) {
  const Roof roof = roof_of(problem(1e9, 1e3), 1e3, true, 1, {}, of_both);
  EXPECT_DOUBLE_EQ(roof.seconds, 1e9 / 100e9);
}

}  // namespace
}  // namespace stepladder
