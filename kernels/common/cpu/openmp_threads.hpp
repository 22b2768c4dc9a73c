// Sets the number of OpenMP threads for a scope. Libraries such as oneDNN read it when a primitive
// is created and when it runs.
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
