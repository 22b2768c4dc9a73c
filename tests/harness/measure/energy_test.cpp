// Energy from RAPL counters in a folder of the test's own.
#include "harness/measure/energy.hpp"

#include <gtest/gtest.h>

#include "harness/measure/measure.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

class Energy : public testing::Test {
 protected:
  void add_zone(const std::string& zone, const std::string& name) {
    folder_.write(zone + "/name", name + "\n");
    folder_.write(zone + "/max_energy_range_uj", "1000000\n");
    set(zone, 0);
  }
  void set(const std::string& zone, long microjoules) {
    folder_.write(zone + "/energy_uj", std::to_string(microjoules) + "\n");
  }
  TemporaryFolder folder_;
};

TEST_F(Energy, IsTheSumOfThePackages) {
  add_zone("intel-rapl:0", "package-0");
  add_zone("intel-rapl:1", "package-1");
  EnergyCounter counter(folder_.path());
  EXPECT_EQ(counter.why_unavailable(), "");
  set("intel-rapl:0", 100);
  counter.start();
  set("intel-rapl:0", 250100);
  set("intel-rapl:1", 500000);
  EXPECT_DOUBLE_EQ(counter.stop().value(), 0.75);
}

TEST_F(Energy, PartsOfAPackageAndTheWholePlatformAreNotAdded) {
  add_zone("intel-rapl:0", "package-0");
  add_zone("intel-rapl:0:0", "core");
  add_zone("intel-rapl:1", "psys");
  add_zone("dtpm", "package-7");
  EnergyCounter counter(folder_.path());
  counter.start();
  for (const char* zone : {"intel-rapl:0", "intel-rapl:0:0", "intel-rapl:1", "dtpm"})
    set(zone, 1000);
  EXPECT_DOUBLE_EQ(counter.stop().value(), 1e-3);
}

TEST_F(Energy, ACounterThatWrapsIsCorrected) {
  add_zone("intel-rapl:0", "package-0");
  EnergyCounter counter(folder_.path());
  set("intel-rapl:0", 900000);
  counter.start();
  set("intel-rapl:0", 100000);
  EXPECT_DOUBLE_EQ(counter.stop().value(), 0.2);
}

TEST_F(Energy, WithoutCountersThereIsAReasonAndNoValue) {
  EnergyCounter none(folder_ / "nowhere");
  EXPECT_TRUE(says(none.why_unavailable(), {"nowhere", "no RAPL zone"}));
  none.start();
  EXPECT_FALSE(none.stop().has_value());

  add_zone("intel-rapl:0", "package-0");
  folder_.write("intel-rapl:0/energy_uj", "");
  EXPECT_TRUE(says(EnergyCounter(folder_.path()).why_unavailable(),
                   {"intel-rapl:0/energy_uj", "holds no number"}));
  std::filesystem::remove(folder_ / "intel-rapl:0/energy_uj");
  EXPECT_TRUE(says(EnergyCounter(folder_.path()).why_unavailable(),
                   {"intel-rapl:0/energy_uj", "No such file"}));
}

TEST_F(Energy, ARepetitionHasTheEnergyOfOneIteration) {
  add_zone("intel-rapl:0", "package-0");
  nlohmann::json json = nlohmann::json::array();
  Meter meter(json, EnergyCounter(folder_.path()));
  long spent = 0;
  const auto measured =
      meter.measure({{.name = "heats",
                      .run = [&](std::int64_t) { set("intel-rapl:0", spent += 500); },
                      .estimate_seconds = 1e-4}},
                    {.repetitions = 3, .budget_seconds = 0.003});
  ASSERT_GE(measured[0].samples.size(), 3U);
  for (const Sample& sample : measured[0].samples)
    EXPECT_NEAR(sample.energy_joules.value(), 500e-6, 1e-9);
}

}  // namespace
}  // namespace stepladder
