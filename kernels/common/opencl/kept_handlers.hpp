// Drivers and their compilers install handlers of signals, after which a crash of a rung would not
// end the process.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace stepladder::opencl {

// Puts the handlers back that there were when it was made.
class KeptHandlers {
 public:
  KeptHandlers() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &before_[i]);
  }
  ~KeptHandlers() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  static constexpr std::array signals{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGUSR2};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace stepladder::opencl
