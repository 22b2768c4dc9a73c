// Progress and remaining time on stderr: one line that is overwritten on a terminal, otherwise a
// line every 15 seconds. Only rank 0 prints.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace stepladder {

class ProgressLine {
 public:
  // With `again`, all are done again in about as much time.
  ProgressLine(std::string what, std::size_t total, bool again = false);
  void advance(const std::string& finished);  // one of `total` is done
  // All are done once, and are done again; `share_left` of the time for that is left.
  void advance_again(const std::string& finished, double share_left);
  void finish();  // clears the line

 private:
  using Clock = std::chrono::steady_clock;
  bool is_due();  // for the next line
  void print(const std::string& line);

  std::string what_;
  std::size_t total_, done_ = 0;
  bool again_, terminal_, prints_;
  Clock::time_point start_, last_;
  double seconds_once_ = 0;  // of the first time
};

}  // namespace stepladder
