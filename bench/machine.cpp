// stepladder machine: the environment and the measured ceilings.
#include "harness/measure/machine.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "bench/commands.hpp"
#include "harness/io/counted.hpp"
#include "harness/io/json_text.hpp"
#include "harness/io/nearest.hpp"
#include "kernels/common/device.hpp"
#include "kernels/common/device_probe.hpp"
#include "kernels/common/opencl/devices.hpp"

namespace stepladder {
namespace {

void print_ceilings(const Machine& machine, int threads) {
  fmt::print("\nceilings on {}\n", threads == 0 ? device()->name() : counted(threads, "thread"));
  for (const Ceiling& c : measure_ceilings(machine.caches, threads))
    fmt::print("  {:<14} {:<6} {:8.1f} {}\n", c.name, c.level, c.value, c.unit);
}

// Probes the named features of the device, or all; the exit status.
int probe_features(const std::vector<std::string>& wanted) {
  std::vector<std::string> features;
  for (const DeviceProbe& probe : device_probes()) features.emplace_back(probe.feature);
  if (device() == nullptr)
    throw std::runtime_error("machine --probe needs a CUDA device: " + device_status());
  for (const std::string& name : wanted)
    if (std::ranges::find(features, name) == features.end())
      throw UnknownName("feature", name, features);

  std::vector<const DeviceProbe*> failed;
  std::string lost_by;
  fmt::print("features of {}\n", device()->name());
  for (const DeviceProbe& probe : device_probes()) {
    if (!wanted.empty() && std::ranges::find(wanted, probe.feature) == wanted.end()) continue;
    fmt::print("  {:<20} ", probe.feature);
    std::fflush(stdout);  // names a feature that hangs
    const ProbeOutcome outcome = run_probe(probe, lost_by);
    fmt::print("{}\n", outcome.text);
    if (outcome.failed) failed.push_back(&probe);
  }
  for (const DeviceProbe* probe : failed)
    fmt::print("\n{} failed; these rungs rely on it: {}\n", probe->feature, probe->rungs);
  return failed.empty() ? 0 : 1;
}

}  // namespace

Command machine_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("machine", "Print the environment and measure the ceilings");
  auto as_json = std::make_shared<bool>(false);
  app->add_flag("--json", *as_json, "Print the environment as JSON, without measuring");
  auto features = std::make_shared<std::vector<std::string>>();
  const CLI::Option* probe =
      app->add_option("--probe", *features,
                      "Probe the features of the device on which the CUDA rungs build: all, or "
                      "those that are named; nothing else is printed")
          ->expected(0, -1)
          ->default_str("")  // what no name stands for
          ->excludes("--json");
  return {app, [as_json, features, probe] {
            std::erase(*features, "");  // which CLI11 puts there if none is named
            if (probe->count() > 0) return probe_features(*features);
            opencl::expect_rungs();
            const Machine machine = detect_machine();
            const nlohmann::json environment = describe_environment(machine);
            if (*as_json) {
              fmt::print("{}\n", json_text(environment, 1));
              return 0;
            }
            for (const auto& [key, value] : environment.items())
              fmt::print("{:<18} {}\n", key,
                         value.is_string() ? value.get<std::string>() : json_text(value));
            print_ceilings(machine, 1);
            if (machine.threads_available > 1) print_ceilings(machine, machine.threads_available);
            if (device() != nullptr) print_ceilings(machine, 0);
            return 0;
          }};
}

}  // namespace stepladder
