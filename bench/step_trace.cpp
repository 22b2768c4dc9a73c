#include "bench/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/io/counted.hpp"
#include "harness/io/json_text.hpp"
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

}  // namespace

StepTrace::StepTrace(const nlohmann::json& before) {
  if (!before.is_object()) return;
  for (const auto& event : before.value("traceEvents", nlohmann::json::array())) {
    events_.push_back(Json(event));
    processes_ = std::max(processes_, event.value("pid", -1) + 1);
  }
}

void StepTrace::add(Configuration& configuration) {
  TrainableNetwork& network = *configuration.network;
  std::vector<nlohmann::json> ranks;
  for (const std::string& text : Communicator("the trace").texts(json_text(operations_of(network))))
    ranks.push_back(parse_json(text));
  double first = ranks.front().front()["start"];
  for (const nlohmann::json& rank : ranks)
    for (const nlohmann::json& operation : rank)
      first = std::min(first, operation["start"].get<double>());
  for (std::size_t r = 0; r < ranks.size(); ++r, ++processes_) {
    const std::string place = network.place() == Place::cuda
                                  ? std::string("device")
                                  : counted(configuration.options.threads, "thread");
    const std::string rank = ranks.size() > 1 ? fmt::format(", rank {}", r) : std::string();
    events_.push_back({{"name", "process_name"},
                       {"ph", "M"},
                       {"pid", processes_},
                       {"tid", 0},
                       {"args",
                        {{"name", fmt::format("{}, {}, {}, {}{}", network.description().name,
                                              configuration.use, configuration.mode, place, rank)},
                         {"network", network.description().name},
                         {"use", configuration.use},
                         {"mode", configuration.mode},
                         {"place", place},
                         {"rank", r},
                         {"ranks", ranks.size()}}}});
    for (const nlohmann::json& operation : ranks[r]) {
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

// One line for each event.
std::string StepTrace::text() const {
  std::string lines;
  for (const Json& event : events_) lines += (lines.empty() ? "" : ",\n") + json_text(event);
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + lines + "\n]}\n";
}

}  // namespace stepladder
