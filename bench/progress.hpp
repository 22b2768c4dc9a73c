// Progress of long work on stderr: a line that moves, with an estimate, on a terminal; else a line now
// and then. Rank 0 alone speaks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace stepladder {

class Progress {
 public:
  Progress(std::string what, std::size_t total);
  void advance(const std::string& finished);  // one of `total` is done
  void finish();                              // clears the moving line

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::size_t total_, done_ = 0;
  bool terminal_, speaks_;
  Clock::time_point start_, last_;
};

}  // namespace stepladder
