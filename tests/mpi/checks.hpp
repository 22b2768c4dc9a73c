// The parts of all_reduce_mpi_test.
#pragma once

#include <string>

#include "harness/io/mpi_session.hpp"

namespace stepladder::test {

// Prints a failure with its rank and counts it. The test continues: all ranks must make the same
// collective calls.
void expect(bool holds, const std::string& what);

void check_session(const MpiSession& session);
void check_group(const MpiSession& session);
void check_algorithms(const MpiSession& session);  // of mpi_<algorithm>

}  // namespace stepladder::test
