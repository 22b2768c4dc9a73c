#include "harness/io/ranks.hpp"

namespace stepladder {

MpiSession& mpi_session() {
  static MpiSession session;
  return session;
}

}  // namespace stepladder
