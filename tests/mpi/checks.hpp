// The parts of all_reduce_mpi_test.
#pragma once

#include "harness/ranks/mpi_session.hpp"
#include "tests/mpi/expect.hpp"

namespace stepladder::test {

void check_session(const MpiSession& session);
void check_group(const MpiSession& session);
void check_windows(const MpiSession& session);
void check_algorithms(const MpiSession& session);  // of mpi_<algorithm>

}  // namespace stepladder::test
