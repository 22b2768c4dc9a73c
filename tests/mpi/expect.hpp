// Checks that every rank makes, and the main() of a program of such checks.
#pragma once

#include <cstdio>
#include <exception>
#include <string>

#include "harness/ranks/mpi_session.hpp"

namespace stepladder::test {

inline int checks = 0, failures = 0;  // of this rank

// Prints a failure with its rank and counts it. The test continues: all ranks must make the same
// collective calls.
inline void expect(bool holds, const std::string& what) {
  ++checks;
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED on rank %d of %d: %s\n", mpi_session().rank(), mpi_session().ranks(),
               what.c_str());
}

// Starts MPI and calls check(ranks). The exit status: 1 on all ranks if a check failed on one.
template <class Check>
int run_checks(const Check& check) {
  MpiSession& session = mpi_session();
  try {
    session.start();
    check(session.ranks());
  } catch (const std::exception& error) {
    session.abort(error.what());
  }
  if (session.rank() == 0) std::printf("%d checks on each of %d ranks\n", checks, session.ranks());
  return session.max(failures) > 0 ? 1 : 0;
}

}  // namespace stepladder::test
