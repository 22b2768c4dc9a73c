// The clock of all measurements.
#pragma once

#include <chrono>

namespace stepladder {

inline double now() {  // seconds since some moment; never set back
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace stepladder
