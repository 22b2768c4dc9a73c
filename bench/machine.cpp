// stepladder machine: the environment and the measured ceilings.
#include "harness/measure/machine.hpp"

#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "kernels/common/device.hpp"

namespace stepladder {
namespace {

void print_ceilings(const Machine& machine, int threads) {
  fmt::print("\nceilings on {}\n", threads == 0   ? device()->name()
                                   : threads == 1 ? "1 thread"
                                                  : fmt::format("{} threads", threads));
  for (const Ceiling& c : measure_ceilings(machine.caches, threads))
    fmt::print("  {:<14} {:<6} {:8.1f} {}\n", c.name, c.level, c.value, c.unit);
}

}  // namespace

Command machine_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("machine", "Print the environment and measure the ceilings");
  auto as_json = std::make_shared<bool>(false);
  app->add_flag("--json", *as_json, "Print the environment as JSON, without measuring");
  return {app, [as_json] {
            const Machine machine = detect_machine();
            const nlohmann::json environment = describe_environment(machine);
            if (*as_json) {
              fmt::print("{}\n", environment.dump(1));
              return 0;
            }
            for (const auto& [key, value] : environment.items())
              fmt::print("{:<18} {}\n", key,
                         value.is_string() ? value.get<std::string>() : value.dump());
            print_ceilings(machine, 1);
            if (machine.threads_available > 1) print_ceilings(machine, machine.threads_available);
            if (device() != nullptr) print_ceilings(machine, 0);
            return 0;
          }};
}

}  // namespace stepladder
