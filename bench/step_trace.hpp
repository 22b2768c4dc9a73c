// The operations of one step of each configuration, as Perfetto and chrome://tracing read them: a
// process for each configuration and rank, a thread for each operation at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/execution/measured_step.hpp"

namespace stepladder {

class StepTrace {
 public:
  // Continues a trace, the JSON of text(); null begins a new one.
  explicit StepTrace(const nlohmann::json& before);
  // Adds the operations of the configuration's last timed step. Collective. Times are from the
  // first operation of any rank on; ranks of several hosts have clocks of their own, which are not
  // aligned.
  void add(Configuration& configuration);
  std::string text() const;  // the same on all ranks that began with the same trace

 private:
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  int processes_ = 0;
};

}  // namespace stepladder
