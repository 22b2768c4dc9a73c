// Verifies that a variant computes its primitive.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

enum class Outcome { passed, failed, unavailable };

struct Verdict {
  Outcome outcome = Outcome::failed;
  double error_ratio = 0;     // largest error over bound; 0 in the exact tier
  double relative_error = 0;  // of the first run; see Case
  double seconds = 0;         // of the run; only an estimate
  std::string reason{};       // of failed and unavailable
  bool runs_nowhere = false;  // unavailable for every problem on this machine
};

// Values of the operands.
struct Filling {
  Tier tier;
  std::uint64_t seed;
};

// Two or three fillings on which one plan runs in turn, so that stale results and stale packed
// weights are detected. The last is (accuracy, seed).
std::vector<Filling> fillings(const Case& problem, const std::vector<Variant>& variants,
                              std::uint64_t seed);

// Several processes compute the problem together; GPUs of one process do not count.
bool over_ranks(const Case& problem);

// Of one call of a variant whose time is unknown; generous.
double expected_seconds(const Case& problem);

// Runs the variant on a case that is allocated and filled, with poisoned outputs. Exceptions of the
// variant are failures. With MPI all ranks call it together and get the same verdict. `runner` is
// the plan; it is made here when null, and kept when it passes. The operands then hold its results.
Verdict verify(Case& problem, const Variant& variant, const Resources& resources,
               std::unique_ptr<Runner>& runner);

// Makes the plan of a variant that was verified before and, with `warm_up`, runs it once, on
// operands that are changed a little, so that its workspaces are warm; the results are checked
// after the timing. Exceptions are failures.
Verdict plan_again(Case& problem, const Variant& variant, const Resources& resources, bool warm_up,
                   std::unique_ptr<Runner>& runner);

// After an illegal memory access a device refuses all further work of the process, so the process
// ends.
class DeviceLost : public std::runtime_error {
 public:
  explicit DeviceLost(const std::string& after)
      : std::runtime_error("the device refuses all work of this process after " + after +
                           "; the rest was not tried. Leave it out with --variant") {}
};
bool device_is_lost();

// False for a variant with a declared bound above that of fp32, and for messages in 16 bits or with
// error feedback.
bool takes_exact_tier(const Case& problem, const VariantInfo& variant);

}  // namespace stepladder
