// Rank 1 throws while the others wait for it. The run must end immediately.
#include <exception>
#include <stdexcept>

#include "harness/ranks/mpi_session.hpp"

int main() {
  stepladder::MpiSession session;
  try {
    session.start();
    if (session.rank() == 1) throw std::runtime_error("no memory left for a test");
    session.barrier();
  } catch (const std::exception& error) {
    session.abort(error.what());
  }
  return 0;
}
