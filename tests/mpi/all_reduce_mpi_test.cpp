// Checks every all-reduce variant of this build on the ranks that mpirun starts:
//     mpirun -np 4 build/all_reduce_mpi_test
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/adapters/make_case.hpp"
#include "harness/verify/verify.hpp"
#include "tests/mpi/all_reduce_check.hpp"
#include "tests/mpi/broken_all_reduce.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {
namespace {

using all_reduce::Operation;
using all_reduce::Problem;
using all_reduce::Sample;

int not_checked = 0;  // variants that do not support a problem on these ranks

stepladder::Factory<all_reduce::AllReduce> factory_of(const detail::Entry& entry) {
  return reinterpret_cast<stepladder::Factory<all_reduce::AllReduce>>(entry.factory);
}

// Three runs of one plan with different results: a stale result is wrong.
std::vector<Sample> samples_of(const Problem& problem, int rank) {
  return {all_reduce::integer_sample(problem, rank, 1),
          all_reduce::uniform_sample(problem, rank, 2),
          all_reduce::integer_sample(problem, rank, 3)};
}

std::string name_of_problem(const Problem& problem, bool in_place) {
  return direction(problem) + " of " + shape(problem) + (in_place ? ", in place" : "") +
         (problem.node_ranks > 0 ? ", nodes of " + std::to_string(problem.node_ranks) : "");
}

// False if the variant does not support the problem.
bool check_variant(const detail::Entry& entry, const Problem& problem, bool in_place,
                   const std::vector<Sample>& samples, const MpiSession& session) {
  try {
    const auto factory = factory_of(entry);
    const bool has_bound = entry.info->contraction == 0;
    const std::string fault = all_reduce::fault_of(
        factory, problem, in_place,
        has_bound ? samples : all_reduce::recorded(factory, problem, samples, session), session,
        has_bound ? entry.info->operand_error : 0, entry.info->window);
    expect(fault.empty(),
           full_name(*entry.info) + ", " + name_of_problem(problem, in_place) + ": " + fault);
    return true;
  } catch (const Unsupported&) {
    ++not_checked;
    return false;
  }
}

// Fewer elements than ranks, odd and prime counts, and vectors long enough for rungs that divide
// chunks into segments. The more ranks share a core, the shorter.
std::vector<std::int64_t> counts_for(int ranks) {
  if (ranks > 3) return {0, 1, 5, 997, 20011};
  std::vector<std::int64_t> counts{0, 1, 2, 3, 997, 1000};
  if (ranks == 3) counts.push_back(150001);
  if (ranks == 2) counts.push_back((1 << 20) + 1);
  return counts;
}

// Of vectors and groups that take long: only the sum, and the mean in place. Beside other programs,
// each step of ranks that share a core takes as long as the time slices of those.
bool is_left_out(const MpiSession& session, Operation operation, bool in_place,
                 std::int64_t count = 0) {
  return (count > 1'000'000 || session.ranks() > 3) && in_place != (operation == Operation::mean);
}

void check_variants(const MpiSession& session) {
  int built = 0;
  for (const std::int64_t count : counts_for(session.ranks()))
    for (const Operation operation : {Operation::sum, Operation::mean}) {
      const Problem problem{operation, count, session.ranks()};
      const std::vector<Sample> samples = samples_of(problem, session.rank());
      for (const bool in_place : {false, true}) {
        if (is_left_out(session, operation, in_place, count)) continue;
        for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
          if (entry.factory == nullptr || entry.info->place != Place::cpu ||
              !cpu_has(entry.info->isa))
            continue;
          ++built;
          check_variant(entry, problem, in_place, samples, session);
        }
      }
    }
  expect(built > 0, "there are variants to check");
}

Verdict verdict_of(const detail::Entry& entry, const Problem& problem) {
  const auto owned = make_case<all_reduce::AllReduce>(problem, "test", "test");
  owned->allocate(1, nullptr);
  owned->fill(Tier::accuracy, 1);
  const Variant variant{all_reduce::AllReduce::name, entry.info->name, entry.info, entry, ""};
  std::unique_ptr<Runner> runner;
  return verify(*owned, variant, {1, mpi_session().communicator()}, runner);
}

// The sums of the results of variants with error feedback, and deliberately wrong ones.
void check_error_feedback(const MpiSession& session) {
  // Each check makes hundreds of calls: the more ranks share a core, the fewer problems.
  std::vector<std::int64_t> counts{1000};
  if (session.ranks() <= 3) counts = {0, 1, 37, 1000};
  if (session.ranks() == 2) counts = {0, 1, 2, 3, 37, 1000, 20000};
  for (const std::int64_t count : counts)
    for (const Operation operation : {Operation::sum, Operation::mean}) {
      if (session.ranks() > 3 && operation == Operation::sum) continue;
      for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
        if (entry.factory == nullptr || entry.info->contraction == 0) continue;
        const Problem problem{operation, count, session.ranks()};
        const Verdict verdict = verdict_of(entry, problem);
        expect(verdict.outcome == Outcome::passed, std::string(entry.info->name) + ", " +
                                                       name_of_problem(problem, false) + ": " +
                                                       verdict.reason);
      }
    }
  for (const detail::Entry& entry : detail::entries(all_reduce::BrokenAllReduce::name)) {
    if (entry.info->contraction == 0) continue;
    const Verdict verdict = verdict_of(entry, {Operation::mean, 1000, session.ranks()});
    const bool is_right = std::string_view(entry.info->name) == "feedback";
    expect(verdict.outcome == (is_right ? Outcome::passed
                               : session.ranks() == 1 && verdict.outcome == Outcome::unavailable
                                   ? Outcome::unavailable
                                   : Outcome::failed),
           std::string("the fault of ") + entry.info->name + " is found: " + verdict.reason);
  }
}

// The verification of `verify` and `bench` gives all ranks the same verdict. Rungs in a window of
// shared memory get one; a rank whose own results are right fails with the others.
void check_verification(const MpiSession& session) {
  const Problem problem{Operation::mean, 1000, session.ranks()};
  int in_window = 0;
  for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
    if (entry.factory == nullptr || !entry.info->window) continue;
    ++in_window;
    const Verdict verdict = verdict_of(entry, problem);
    expect(verdict.outcome == Outcome::passed,
           std::string(entry.info->name) + " in a window: " + verdict.reason);
    expect(session.max(verdict.error_ratio) == verdict.error_ratio, "one error ratio of all ranks");
    // Every copy has operands of its own in the window.
    const auto owned = make_case<all_reduce::AllReduce>(problem, "test", "test");
    owned->allocate(3, nullptr);
    owned->fill(Tier::accuracy, 1);
    const Variant variant{all_reduce::AllReduce::name, entry.info->name, entry.info, entry, ""};
    const auto plan = owned->plan(variant, {1, session.communicator()});
    owned->reset_all();
    for (const std::size_t copy : {0, 2, 1}) {
      plan->run(copy);
      expect(owned->check(*entry.info, copy).passed, "each copy of the operands in a window");
    }
  }
  expect(in_window > 0, "there are rungs in a window");
  for (const detail::Entry& entry : detail::entries(all_reduce::BrokenAllReduce::name)) {
    if (entry.info->contraction > 0) continue;
    const std::string_view name = entry.info->name;
    const Verdict verdict = verdict_of(entry, problem);
    const bool passes = name == "stale";  // a single run cannot tell that results are
    expect(verdict.outcome == (passes ? Outcome::passed : Outcome::failed) ||
               (session.ranks() < 3 && verdict.outcome == Outcome::unavailable),
           std::string("verify finds the fault of ") + entry.info->name + ": " + verdict.reason);
    if (verdict.outcome != Outcome::failed) continue;
    if (name == "own_order")
      expect(verdict.reason == "the ranks hold different results", verdict.reason);
    if (name == "wrong_on_the_last_rank")
      expect(session.rank() == session.ranks() - 1 ? verdict.reason.starts_with("output[500] is ")
                                                   : verdict.reason == "wrong on another rank",
             verdict.reason);
  }
}

// Nodes of 1, 2 and 3 ranks, the last one smaller where the ranks do not divide evenly.
void check_two_level_variants(const MpiSession& session) {
  for (const int node_ranks : {1, 2, 3})
    for (const std::int64_t count : {1, 5, 4099})
      for (const Operation operation : {Operation::sum, Operation::mean}) {
        if (node_ranks >= session.ranks()) continue;
        const Problem problem{operation, count, session.ranks(), false, node_ranks};
        const std::vector<Sample> samples = samples_of(problem, session.rank());
        for (const bool in_place : {false, true}) {
          if (is_left_out(session, operation, in_place)) continue;
          for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
            if (!std::string_view(entry.info->name).starts_with("hierarchical_")) continue;
            const bool supported = check_variant(entry, problem, in_place, samples, session);
            // The ranks of mpirun on one machine share memory, so that any two form a node.
            if (node_ranks == 1 || session.hosts() == 1)
              expect(supported == (node_ranks > 1),
                     std::string(entry.info->name) + " with nodes of " +
                         std::to_string(node_ranks) + (supported ? " ran" : " did not run"));
          }
        }
      }
}

void check_broken_variants(const MpiSession& session) {
  const Problem problem{Operation::mean, 1000, session.ranks()};
  const std::vector<Sample> samples = samples_of(problem, session.rank());
  int tried = 0;
  for (const detail::Entry& entry : detail::entries(all_reduce::BrokenAllReduce::name)) {
    if (entry.info->contraction > 0) continue;
    try {
      const std::string fault =
          all_reduce::fault_of(factory_of(entry), problem, false, samples, session);
      expect(!fault.empty(), std::string("the fault of ") + entry.info->name + " is found");
      ++tried;
    } catch (const Unsupported&) {  // this fault needs more ranks
    }
  }
  expect(tried >= (session.ranks() < 3 ? 4 : 6), "the broken variants were tried");
}

}  // namespace

}  // namespace stepladder::test

int main() {
  using namespace stepladder::test;
  const stepladder::MpiSession& session = stepladder::mpi_session();
  expect(session.rank() == 0 && session.ranks() == 1 && session.communicator() == nullptr,
         "before start() there is one rank");
  return run_checks([&](int) {
    stepladder::mpi_session().start();  // once more
    check_session(session);
    check_group(session);
    check_windows(session);
    check_algorithms(session);
    check_variants(session);
    check_two_level_variants(session);
    check_broken_variants(session);
    check_error_feedback(session);
    check_verification(session);
    if (session.rank() == 0) std::printf("%d not possible on these ranks\n", not_checked);
  });
}
