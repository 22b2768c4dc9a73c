#include "bench/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

constexpr double line_seconds = 15;  // between lines where stderr is no terminal

}  // namespace

ProgressLine::ProgressLine(std::string what, std::size_t total, bool again)
    : what_(std::move(what)),
      total_(total),
      again_(again),
      terminal_(isatty(STDERR_FILENO) != 0),
      prints_(mpi_session().rank() == 0),
      start_(Clock::now()),
      last_(start_) {}

bool ProgressLine::is_due() {
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_).count();
  if (!prints_ || since < (terminal_ ? 0.1 : line_seconds)) return false;
  last_ = now;
  return true;
}

void ProgressLine::print(const std::string& line) {
  if (terminal_)
    fmt::print(stderr, "\r\033[K{:.110}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void ProgressLine::advance(const std::string& finished) {
  ++done_;
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double left =
      elapsed / static_cast<double>(done_) * static_cast<double>((again_ ? 2 : 1) * total_ - done_);
  seconds_once_ = elapsed;
  if (!is_due()) return;
  print(
      fmt::format("{}: {} of {}, about {:.0f} s left ({})", what_, done_, total_, left, finished));
}

void ProgressLine::advance_again(const std::string& finished, double share_left) {
  if (is_due())
    print(fmt::format("{}: all {} done once, about {:.0f} s left ({}, again)", what_, total_,
                      share_left * seconds_once_, finished));
}

void ProgressLine::finish() {
  if (prints_ && terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace stepladder
