#include "bench/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/io/file.hpp"
#include "harness/ranks/communicator.hpp"

namespace stepladder {
namespace {

using Json = nlohmann::ordered_json;

// {"layer", "phase", "variant", "start", "seconds", "lane"} of each operation of this rank.
Json operations_of(TrainableNetwork& network) {
  Json all = Json::array();
  for (const Operation& operation : network.operations())
    all.push_back({{"layer", operation.layer},
                   {"phase", name_of(operation.phase)},
                   {"variant", operation.variant},
                   {"start", operation.start},
                   {"seconds", operation.seconds},
                   {"lane", operation.lane}});
  return all;
}

// A name of a process or thread.
Json name_event(const char* what, int process, int thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

void StepTrace::add(Configuration& configuration) {
  TrainableNetwork& network = *configuration.network;
  network.timed_step(0.0);
  std::vector<Json> ranks;
  for (const std::string& text : Communicator("the trace").texts(operations_of(network).dump()))
    ranks.push_back(Json::parse(text));
  double first = ranks.front().front()["start"];
  for (const Json& rank : ranks)
    for (const Json& operation : rank) first = std::min(first, operation["start"].get<double>());
  for (std::size_t r = 0; r < ranks.size(); ++r, ++processes_) {
    const std::string place = network.place() == Place::cuda
                                  ? std::string("device")
                                  : fmt::format("{} thread{}", configuration.options.threads,
                                                configuration.options.threads == 1 ? "" : "s");
    events_.push_back(
        name_event("process_name", processes_, 0,
                   fmt::format("{}, {}, {}, {}{}", network.description().name, configuration.use,
                               configuration.mode, place,
                               ranks.size() > 1 ? fmt::format(", rank {}", r) : std::string())));
    for (const Json& operation : ranks[r]) {
      constexpr double microseconds = 1e6;
      const double start = operation["start"], seconds = operation["seconds"];
      events_.push_back({{"name", fmt::format("{} {}", operation["layer"].get<std::string>(),
                                              operation["phase"].get<std::string>())},
                         {"cat", operation["phase"]},
                         {"ph", "X"},
                         {"ts", microseconds * (start - first)},
                         {"dur", microseconds * seconds},
                         {"pid", processes_},
                         {"tid", operation["lane"]},
                         {"args", {{"rung", operation["variant"]}}}});
    }
  }
}

void StepTrace::write(const std::string& file) const {
  const Json all = {{"displayTimeUnit", "ms"}, {"traceEvents", events_}};
  replace_file(file, all.dump(1) + "\n");
}

}  // namespace stepladder
