// Proof that a variant computes what its primitive says.
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
  double error_ratio = 0;  // largest error over bound; 0 in the exact tier
  double seconds = 0;      // of the last run, unflanked: an estimate
  std::string reason{};    // of failed and unavailable
};

// Values to prove a problem on.
struct Filling {
  Tier tier;
  std::uint64_t seed;
};

// Two or three, for one plan to be proved on in turn: results or packed weights that it keeps from one
// show at the next. The last is (accuracy, seed).
std::vector<Filling> fillings(const Case& problem, const std::vector<Variant>& variants,
                              std::uint64_t seed);

// Runs the variant on a case that is allocated and filled, from poisoned outputs. Exceptions of the
// variant are failures. Over MPI all ranks call it together and get the same verdict. `runner` is the plan
// to run, made here when it is null; it stays when it passes, and the operands hold its results.
Verdict verify(Case& problem, const Variant& variant, const Resources& resources,
               std::unique_ptr<Runner>& runner);

// After an illegal access a device does nothing more for this process. Whatever came next would fail for
// it, so the process ends.
class DeviceLost : public std::runtime_error {
 public:
  explicit DeviceLost(const std::string& after)
      : std::runtime_error("the device takes no more work from this process after " + after +
                           "; what comes after it was not tried. Go on without it: --variant") {}
};
bool device_is_lost();

// A variant with a declared bound above fp32's is not held to the exact tier.
bool takes_exact_tier(const Case& problem, const VariantInfo& variant);

}  // namespace stepladder
