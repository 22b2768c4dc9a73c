// The operations of one step as a file that Perfetto and chrome://tracing open: a process for each
// configuration and rank, a thread for each operation at once.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/execution/measured_step.hpp"

namespace stepladder {

class StepTrace {
 public:
  // Runs a step of the configuration and adds its operations. Collective. Times are from the first
  // operation of any rank on; ranks of several hosts have clocks of their own, which are not
  // aligned.
  void add(Configuration& configuration);
  // Replaces the file; on one rank, as every rank has the operations of all.
  void write(const std::string& file) const;

 private:
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  int processes_ = 0;
};

}  // namespace stepladder
