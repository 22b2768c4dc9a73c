// One row of summary.csv: a variant on a problem with a number of threads; or, without a problem, a
// variant that can run none on this machine.
#pragma once

#include <limits>
#include <string>

#include "harness/measure/ceilings.hpp"
#include "harness/measure/measure.hpp"
#include "harness/problem/case.hpp"

namespace stepladder {

// The column `device`: "cpu", also for an OpenCL device that is the CPU, or the name of the GPU.
std::string device_of(const VariantInfo& variant);

struct BenchRow {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  const Variant* variant;
  const ProblemInfo* problem = nullptr;
  int threads = 1;
  bool cold = false;
  std::string status = "ok", reason{};  // ok, failed, unavailable or skipped
  bool verified = false;
  double error_ratio = none;        // largest error over its bound
  double relative_error = none;     // of a variant that compresses messages; see Case
  double prepare_seconds = none;    // of a prepacked variant
  double predicted_seconds = none;  // by the cost model of a variant over MPI
  Measured measured{};
  Summary summary{};
  Roof roof{};
  double speedup_vs_serial = none, speedup_vs_compiler = none, speedup_vs_vendor = none,
         speedup_vs_vendor_equal = none;
  // Bits per second of a link below which the cost model predicts that compression pays.
  double break_even_rate = none;
  std::string repeat_command{};

  bool is_ok() const { return status == "ok"; }
  std::string precision() const {  // of the problem's operands, or else of the variant
    return problem != nullptr && !problem->precision.empty() ? problem->precision
                                                             : name_of(variant->info->precision);
  }
  // Faster than its roof allows, unless its algorithm does less arithmetic (Winograd, FFT).
  bool is_beyond_roof() const {
    constexpr double most = 1.05;
    return is_ok() && roof.seconds > most * summary.median && !variant->info->normwise;
  }
  // A row that is not ok.
  void set(std::string new_status, std::string new_reason) {
    verified = false;
    status = std::move(new_status);
    reason = std::move(new_reason);
  }
};

}  // namespace stepladder
