// Checks every all-reduce variant of this build on the ranks that mpirun starts:
//     mpirun -np 4 build/all_reduce_mpi_test
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tests/mpi/all_reduce_check.hpp"
#include "tests/mpi/broken_all_reduce.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {
namespace {

using all_reduce::Operation;
using all_reduce::Problem;
using all_reduce::Sample;

int checks = 0;
int failures = 0;
int this_rank = 0;

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
  return direction(problem) + " of " + shape(problem) + (in_place ? ", in place" : "");
}

void check_variants(const MpiSession& session) {
  int built = 0;
  for (const std::int64_t count : {0, 1, 2, 3, 997, 1000, 65537, 1 << 20})
    for (const Operation operation : {Operation::sum, Operation::mean}) {
      const Problem problem{operation, count, session.ranks()};
      const std::vector<Sample> samples = samples_of(problem, session.rank());
      for (const bool in_place : {false, true})
        for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
          if (entry.factory == nullptr || entry.info->place != Place::cpu) continue;
          ++built;
          const std::string fault =
              all_reduce::fault_of(factory_of(entry), problem, in_place, samples, session);
          expect(fault.empty(), std::string(entry.info->name) + ", " +
                                    name_of_problem(problem, in_place) + ": " + fault);
        }
    }
  expect(built > 0, "there are variants to check");
}

void check_broken_variants(const MpiSession& session) {
  const Problem problem{Operation::mean, 1000, session.ranks()};
  const std::vector<Sample> samples = samples_of(problem, session.rank());
  int tried = 0;
  for (const detail::Entry& entry : detail::entries(all_reduce::BrokenAllReduce::name)) {
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

void expect(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED on rank %d: %s\n", this_rank, what.c_str());
}

}  // namespace stepladder::test

int main() {
  using namespace stepladder::test;
  stepladder::MpiSession session;
  try {
    expect(session.rank() == 0 && session.ranks() == 1 && session.communicator() == nullptr,
           "before start() there is one rank");
    session.start();
    session.start();
    this_rank = session.rank();
    check_session(session);
    check_group(session);
    check_variants(session);
    check_broken_variants(session);
  } catch (const std::exception& error) {
    session.abort(error.what());
  }
  if (session.rank() == 0) std::printf("%d checks on each of %d ranks\n", checks, session.ranks());
  return session.max(failures) > 0 ? 1 : 0;
}
