// stepladder modes: the modes of training, with their options.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/commands.hpp"
#include "harness/io/json_text.hpp"
#include "harness/training/mode_spec.hpp"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(ModeInfo::Replicas replicas) {
  constexpr const char* names[] = {"one", "threads", "ranks"};
  return names[static_cast<int>(replicas)];
}

Json as_json(const ModeInfo& info) {
  Json options = Json::array();
  for (const ModeOption& option : info.options)
    options.push_back(
        {{"name", option.name}, {"default", option.value}, {"meaning", option.meaning}});
  return {{"name", info.name},
          {"idea", info.idea},
          {"replicas", name_of(info.replicas)},
          {"synchronous", info.synchronous},
          {"divides_batches", info.divides_batches},
          {"options", options}};
}

int run(bool json) {
  if (json) {
    Json all = Json::array();
    for (const ModeEntry& entry : modes()) all.push_back(as_json(entry.info));
    fmt::print("{}\n", json_text(all, 1));
    return 0;
  }
  fmt::print("A mode with its options is written as in ssp,bound=2.\n");
  for (const ModeEntry& entry : modes()) {
    const ModeInfo& info = entry.info;
    fmt::print("{:<22} {:<17} {}\n", info.name, name_of(info.replicas), info.idea);
    for (const ModeOption& option : info.options)
      fmt::print("  {:<20} {:<17} {}\n", option.name, option.value, option.meaning);
  }
  return 0;
}

}  // namespace

Command modes_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("modes", "Print the modes of training: how replicas cooperate");
  auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "As JSON: name, idea, what its replicas are, options");
  return {app, [json] { return run(*json); }};
}

}  // namespace stepladder
