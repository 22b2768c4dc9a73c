// Proof that a variant computes what its primitive says.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/case.hpp"

namespace stepladder {

enum class Outcome { passed, failed, unavailable };

struct Verdict {
  Outcome outcome = Outcome::failed;
  double error_ratio = 0;  // largest error over bound; 0 in the exact tier
  double seconds = 0;      // of the last run, unflanked: an estimate
  std::string reason{};    // of failed and unavailable
};

// Runs the variant on a case that is allocated and filled, each of `runs` times from poisoned outputs
// with the same plan: state kept from one run shows in the next. Exceptions of the variant are failures.
// Over MPI all ranks call it together and get the same verdict. When it passes, `runner` (if asked for)
// holds the plan that was proved, and the operands its results.
Verdict verify(Case& problem, const Variant& variant, const Resources& resources,
               int runs = 2, std::unique_ptr<Runner>* runner = nullptr);

// A variant with a declared bound above fp32's is not held to the exact tier.
bool takes_exact_tier(const Case& problem, const VariantInfo& variant);

}  // namespace stepladder
