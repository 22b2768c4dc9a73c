// One row of summary.csv: a variant on a problem with a number of threads; or, without a problem, a
// variant that can run none on this machine.
#pragma once

#include <limits>
#include <string>

#include "harness/measure/ceilings.hpp"
#include "harness/measure/measure.hpp"
#include "harness/problem/case.hpp"

namespace stepladder {

struct BenchRow {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  const Variant* variant;
  const ProblemInfo* problem = nullptr;
  int threads = 1;
  bool cold = false;
  std::string status = "ok", reason{};  // ok, failed, unavailable or skipped
  bool verified = false;
  double error_ratio = none;      // largest error over its bound
  double prepare_seconds = none;  // of a prepacked variant
  Measured measured{};
  Summary summary{};
  Roof roof{};
  double speedup_vs_serial = none, speedup_vs_vendor = none;
  std::string repeat_command{};

  bool is_ok() const { return status == "ok"; }
  void set(std::string new_status, std::string new_reason) {
    status = std::move(new_status);
    reason = std::move(new_reason);
  }
};

}  // namespace stepladder
