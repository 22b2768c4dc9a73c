// Libraries such as oneDNN take as many threads as OpenMP would, both when a primitive is made and
// when it runs: sets that number for a scope.
#pragma once

#include <omp.h>

namespace stepladder {

class OpenMpThreads {
 public:
  explicit OpenMpThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~OpenMpThreads() { omp_set_num_threads(before_); }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_;
};

}  // namespace stepladder
