// The probes of a GPU's features pass in the emulator, and name the failure that loses the device.
// tests/faults/probe-*.patch plant faults that they must find.
#include <gtest/gtest.h>

#include "kernels/common/device_probe.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

TEST(Probe, AllFeaturesPass) {
  ASSERT_FALSE(device_probes().empty());
  std::string lost_by;
  for (const DeviceProbe& probe : device_probes()) {
    const ProbeOutcome outcome = run_probe(probe, lost_by);
    EXPECT_FALSE(outcome.failed) << probe.feature;
    const bool has_remark = std::string_view(probe.feature) == "tma_tf32";
    EXPECT_EQ(outcome.text, has_remark ? "ok: the TMA leaves all bits, so wgmma truncates" : "ok")
        << probe.feature;
  }
  EXPECT_EQ(lost_by, "");
}

TEST(Probe, AFailureThatDoesNotLoseTheDeviceStopsNoOther) {
  const DeviceProbe fails{"feature", "rungs",
                          []() -> std::string { throw std::runtime_error("expected 1, found 2"); }};
  std::string lost_by;
  const ProbeOutcome outcome = run_probe(fails, lost_by);
  EXPECT_TRUE(outcome.failed);
  EXPECT_EQ(outcome.text, "FAILED: expected 1, found 2");
  EXPECT_EQ(lost_by, "");
}

TEST(Probe, NothingIsTriedAfterTheDeviceIsLost) {
  simt::break_device(true);
  std::string lost_by;
  const ProbeOutcome first = run_probe(device_probes()[0], lost_by);
  const ProbeOutcome second = run_probe(device_probes()[1], lost_by);
  simt::break_device(false);
  EXPECT_TRUE(first.failed);
  EXPECT_EQ(first.text.find("FAILED: "), 0U);
  EXPECT_FALSE(second.failed);
  EXPECT_EQ(second.text,
            std::string("not tried: the device was lost by ") + device_probes()[0].feature);
}

}  // namespace
}  // namespace stepladder
