// Verifies variants, also deliberately wrong ones, on the ranks that mpirun started.
#pragma once

#include <string>

#include "tests/mpi/expect.hpp"
#include "tests/verdict.hpp"

namespace stepladder::test {

template <class Primitive>
Verdict verdict_on_ranks(const typename Primitive::Problem& problem, const Variant& variant) {
  return verdicts_of(*make_case<Primitive>(problem, "test", "test"), {variant}, 1,
                     mpi_session().communicator())
      .front();
}

// Expects that the plan fails, here or on another rank, and that the reason contains `part`; with
// an empty part, that it passes. A product takes its blocks from a grid.
template <class Primitive, class PlanClass>
void check_broken(const char* name, const typename Primitive::Problem& problem,
                  const std::string& part) {
  static const VariantInfo info{.name = "broken",
                                .technique = Technique::mpi,
                                .adds = "a fault",
                                .over_ranks = true,
                                .grid = true};
  const Variant variant{
      Primitive::name,
      name,
      &info,
      {&info, reinterpret_cast<detail::AnyFunction>(&make_plan<Primitive, PlanClass>), nullptr},
      ""};
  const Verdict verdict = verdict_on_ranks<Primitive>(problem, variant);
  if (part.empty())
    expect(verdict.outcome == Outcome::passed, std::string(name) + " passes: " + verdict.reason);
  else
    expect(verdict.outcome == Outcome::failed &&
               (verdict.reason.find(part) != std::string::npos ||
                verdict.reason.find("wrong on another rank") != std::string::npos),
           std::string(name) + " with " + direction(problem) + " is found: " + verdict.reason);
}

}  // namespace stepladder::test
