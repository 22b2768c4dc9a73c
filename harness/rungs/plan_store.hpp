// Chooses, verifies and makes the plans of a network. The Case of a layer's problem is made once:
// several configurations of a network share its reference.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "harness/adapters/make_case.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/rungs/cost_model.hpp"
#include "harness/rungs/tuning.hpp"
#include "harness/rungs/use_spec.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {

template <class Primitive>
struct Chosen {
  std::unique_ptr<PlanOf<Primitive>> plan;
  Variant variant;
  std::vector<Variant> close{};  // others that took little longer
};

// No candidate supports the problem on this machine; what() has the reason of each.
class NoVariant : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Whether one of the variants makes a plan for the problem.
template <class Primitive>
bool any_supports(const std::vector<Variant>& variants, const typename Primitive::Problem& problem,
                  const Resources& resources) {
  return std::ranges::any_of(variants, [&](const Variant& variant) {
    try {
      return variant.why_unavailable.empty() &&
             plan_variant<Primitive>(variant.entry, problem, resources);
    } catch (const Unsupported&) {
      return false;
    }
  });
}

// What is known of `best` without measuring: the tuned rung of a problem; without one, the
// predictions of a model.
struct KnownChoices {
  Tuning tuning{};
  CostModel model{};
};

class PlanStore {
 public:
  // Without `verifies` an only candidate is used as it is: for simulations of many ranks, after one
  // of few ranks that has verified it.
  explicit PlanStore(std::uint64_t seed, KnownChoices known = {}, bool verifies = true)
      : seed_(seed), known_(std::move(known)), verifies_(verifies) {}

  // The fastest candidate of `use` for this problem, measured; of those that may be the fastest by
  // what is known, if `use` selects `best`. The candidates must work in one place. Throws NoVariant
  // if none supports the problem, std::runtime_error if one fails verification. Collective, and the
  // same on all ranks, unless `alone`.
  template <class Primitive>
  Chosen<Primitive> choose(const typename Primitive::Problem& problem, const PrimitiveType& type,
                           const UseSpec& use, int threads, bool alone = false) {
    const Resources resources{threads, mpi_session().communicator()};
    std::vector<Variant> candidates = use.candidates(type);
    if (use.selects_vendor(type.name()) && !any_supports<Primitive>(candidates, problem, resources))
      candidates = use.with(type.name(), "best").candidates(type);
    if (!verifies_ && candidates.size() == 1)
      return {plan_variant<Primitive>(candidates.front().entry, problem, resources),
              candidates.front()};
    const Place place = candidates.empty() ? Place::cpu : candidates.front().info->place;
    Case& known = case_of<Primitive>(problem, type, place);
    if (use.selects_best(type.name())) candidates = best(known, std::move(candidates), resources);
    choices_.push_back({&known, candidates, resources});
    const Variant winner = preferred_or_fastest(known, candidates, resources, alone);
    chosen_[key_of(known, resources)] = winner.name;
    return {plan_variant<Primitive>(winner.entry, problem, resources), winner,
            close_to(winner, known, candidates, resources)};
  }

  // The variant chosen for each problem and number of threads, "matmul forward 64x512x784 nn | 2".
  // A training that goes on prefers the same ones, where they are among the candidates: then it
  // computes the same bits.
  using Names = std::map<std::string, std::string>;
  const Names& chosen() const { return chosen_; }
  void prefer(Names names) { preferred_ = std::move(names); }

  // All choices so far, in order.
  struct Choice {
    Case* problem;
    std::vector<Variant> candidates;
    Resources resources;
  };
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  template <class Primitive>
  Case& case_of(const typename Primitive::Problem& problem, const PrimitiveType& type,
                Place place) {
    std::string name = fmt::format("{} {} {}", type.name(), direction(problem), shape(problem));
    if constexpr (requires { problem.ranks; })
      if (problem.ranks > 1) name += fmt::format(" on {} ranks", problem.ranks);
    std::unique_ptr<Case>& known = cases_[{place, name}];
    if (!known) {
      known = make_case<Primitive>(problem, "network", name);
      known->allocate(1, place == Place::cuda ? device() : nullptr);
      known->fill(Tier::accuracy, seed_);
    }
    return *known;
  }

  // The candidate that the tuning names; without one, those that the model predicts to take less
  // than uncertain_factor times the shortest prediction; all if it predicts none.
  std::vector<Variant> best(Case& problem, std::vector<Variant> candidates,
                            const Resources& resources) const;
  // The candidate that the tuning names; null if it has no entry. Throws std::runtime_error if it
  // names another variant.
  const Variant* tuned(const Case& problem, const std::vector<Variant>& candidates,
                       const Resources& resources) const;
  Variant preferred_or_fastest(Case& problem, const std::vector<Variant>& candidates,
                               const Resources& resources, bool alone);
  static std::string key_of(const Case& problem, const Resources& resources);
  static std::string key_of(const Case& problem, const Variant& variant,
                            const Resources& resources);
  // The fastest first, few of them. The same on all ranks, whose times are those of the slowest.
  std::vector<Variant> close_to(const Variant& winner, const Case& problem,
                                const std::vector<Variant>& candidates,
                                const Resources& resources) const;
  Variant fastest(Case& problem, const std::vector<Variant>& candidates, const Resources& resources,
                  bool alone);

  std::uint64_t seed_;
  KnownChoices known_;
  bool verifies_;
  std::vector<Choice> choices_;
  Names chosen_, preferred_;
  std::map<std::pair<Place, std::string>, std::unique_ptr<Case>> cases_;  // by name
  std::map<std::string, double> verified_;  // "case | variant | threads" -> seconds of one run
};

}  // namespace stepladder
