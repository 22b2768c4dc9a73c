#include "harness/training/clock.hpp"

#include <chrono>
#include <thread>

namespace stepladder {

double training_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void training_sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace stepladder
