#include "bench/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "harness/io/mpi_session.hpp"

namespace stepladder {
namespace {

constexpr double line_seconds = 15;  // between lines where stderr is no terminal

}  // namespace

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      prints_(mpi_session().rank() == 0),
      start_(Clock::now()),
      last_(start_) {}

void Progress::advance(const std::string& finished) {
  ++done_;
  const Clock::time_point now = Clock::now();
  const double since = std::chrono::duration<double>(now - last_).count();
  if (!prints_ || since < (terminal_ ? 0.1 : line_seconds)) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  const std::string line =
      fmt::format("{}: {} of {}, about {:.0f} s left ({})", what_, done_, total_, left, finished);
  if (terminal_)
    fmt::print(stderr, "\r\033[K{:.110}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void Progress::finish() {
  if (prints_ && terminal_) fmt::print(stderr, "\r\033[K");
}

}  // namespace stepladder
