#include "bench/supervisor.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "harness/measure/measure.hpp"
#include "harness/measure/work_record.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

constexpr auto poll = std::chrono::milliseconds(100);
constexpr int most_unexplained = 3;  // outside the problems
constexpr int most_losses = 2;       // of one problem

double resident_bytes(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/statm", process));
  double total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* name = sigabbrev_np(signal);
  return fmt::format("killed by SIG{} ({}){}", name != nullptr ? name : "?", strsignal(signal),
                     signal == SIGKILL ? ", perhaps because memory ran out" : "");
}

// Waits for a child and ends it when it breaks a limit.
class Watch {
 public:
  Watch(pid_t child, const WorkRecord& record, const Limits& limits)
      : child_(child), record_(record), limits_(limits) {}

  int wait() {
    for (;;) {
      int status = 0;
      const pid_t ended = waitpid(child_, &status, WNOHANG);
      if (ended == child_) return status;
      if (ended < 0 && errno != EINTR)
        throw std::runtime_error(
            fmt::format("the measuring process cannot be waited for: {}", std::strerror(errno)));
      if (interrupted && !passed_on_) {
        passed_on_ = true;
        kill(child_, SIGTERM);
      }
      look();
      std::this_thread::sleep_for(poll);
    }
  }
  // Why the supervisor ended the child; empty if it did not.
  const std::string& reason() const { return reason_; }

 private:
  void look() {
    if (!reason_.empty()) return;
    if (const double bytes = resident_bytes(child_); bytes > limits_.memory_bytes)
      return end(fmt::format("used {:.1f} GiB of memory; {:.1f} GiB are allowed", bytes / 0x1p30,
                             limits_.memory_bytes / 0x1p30));
    // Ticks are counted, not the clock: a process that was stopped for a while is no hang.
    ticks_ = record_.changes == changes_ ? ticks_ + 1 : 0;
    changes_ = record_.changes;
    const double allowed = limits_.seconds + 3 * record_.seconds;
    const double waited = std::chrono::duration<double>(poll).count() * ticks_;
    if (record_.is_active && waited > allowed)
      end(fmt::format("did not return within {:.0f} s", allowed));
  }
  void end(const std::string& reason) {
    reason_ = reason;
    kill(child_, SIGKILL);
  }

  pid_t child_;
  const WorkRecord& record_;
  Limits limits_;
  std::string reason_;
  std::uint64_t changes_ = 0;
  int ticks_ = 0;
  bool passed_on_ = false;
};

pid_t start_child(pid_t parent) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0)
    throw std::runtime_error(
        fmt::format("no process for the measurement: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it has ended already
  }
  return child;
}

// The subject of the record becomes the variant of its problem that crashes alone, if one does: it
// may have damaged the heap before the present subject ran. Returns whether one does.
bool find_culprit(AfterCrash after, WorkRecord& record, const Limits& limits,
                  const std::function<int(const AfterCrash&)>& measure) {
  after.suspect = record.subject.data();
  if (after.suspect.empty()) return false;
  set_subject(record, "");
  const pid_t child = start_child(getpid());
  if (child == 0) {
    keep_work_record(&record);
    int status = 1;
    try {
      status = measure(after);
    } catch (...) {  // the next process reports it
    }
    _exit(status);
  }
  Watch(child, record, limits).wait();
  record.is_active = false;
  if (record.subject.front() != '\0') return true;
  set_subject(record, after.suspect);
  return false;
}

}  // namespace

int supervise(const Limits& limits, const std::function<int(const AfterCrash&)>& measure) {
  WorkRecord* record = new_work_record();
  const pid_t own = getpid();
  AfterCrash after;
  std::map<std::string, int> losses;  // of each problem, between its variants
  for (int unexplained = 0;;) {
    const pid_t child = start_child(own);
    if (child == 0) {
      keep_work_record(record);
      return measure(after);
    }
    Watch watch(child, *record, limits);
    const int status = watch.wait();
    if (WIFEXITED(status) && !record->is_active) return WEXITSTATUS(status);
    if (interrupted) return 128 + SIGINT;
    // Nobody reads the output any more, as after `| head`. A rung does not write to it.
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && !record->is_active)
      return 128 + SIGPIPE;
    const std::string how = watch.reason().empty() ? how_it_ended(status) : watch.reason();
    after.finished_problems = record->finished_problems;
    ++after.restarts;
    const bool was_active = record->is_active.exchange(false);
    std::string reason = fmt::format("while it was {}: {}", record->stage.data(), how);
    const bool is_found = watch.reason().empty() && find_culprit(after, *record, limits, measure);
    if (interrupted) return 128 + SIGINT;
    if (is_found && !was_active)
      reason = fmt::format("while it was run alone: it damages memory; the run was {}", how);
    if (was_active || is_found) {
      after.crashed.push_back({record->subject.data(), reason});
      fmt::print(stderr, "{}: failed {}. The run goes on.\n", after.crashed.back().subject,
                 after.crashed.back().reason);
    } else {
      const std::string problem = record->problem.data();
      fmt::print(stderr, "The measuring process was lost between two variants{}: {}.\n",
                 problem.empty() ? "" : " of " + problem, how);
      set_problem(*record, "");
      if (!problem.empty()) {
        if (++losses[problem] < most_losses) continue;
        after.lost.push_back({problem, fmt::format("lost twice while no variant ran: {}", how)});
        fmt::print(stderr, "{}: failed, {}. The run goes on.\n", problem, after.lost.back().reason);
      } else if (++unexplained == most_unexplained)
        throw std::runtime_error(
            "the measuring process was lost three times; finished rows are on disk");
    }
  }
}

RecordOfRanks::RecordOfRanks(const std::filesystem::path& run, bool after_crash)
    : record_(run / ".work"), crashes_(run / ".crashes") {
  const MpiSession& mpi = mpi_session();
  std::string lost;
  std::int64_t finished = 0;
  if (mpi.rank() == 0 && after_crash) {
    if (!std::filesystem::exists(record_))
      throw std::runtime_error(fmt::format(
          "{}: --after-crash, but the last command in it ended by itself", run.string()));
    const WorkRecord* former = work_record_in(record_);
    finished = former->finished_problems;
    if (former->is_active)
      std::ofstream(crashes_, std::ios::app) << former->subject.data() << '\t' << "while it was "
                                             << former->stage.data() << ": the ranks ended\n";
    std::ifstream in(crashes_);
    lost.assign(std::istreambuf_iterator<char>(in), {});
  }
  lost = mpi.broadcast(lost);
  lost_.finished_problems = mpi.broadcast(finished);
  lost_.restarts = after_crash ? 1 : 0;
  std::istringstream lines(lost);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t tab = line.find('\t');
    if (tab != std::string::npos)
      lost_.crashed.push_back({line.substr(0, tab), line.substr(tab + 1)});
  }
  if (mpi.rank() != 0) return;
  std::filesystem::remove(record_);
  std::error_code error;
  made_folder_ = std::filesystem::create_directories(run, error);
  if (error) return;  // opening the run reports it
  keep_work_record(work_record_in(record_));
}

RecordOfRanks::~RecordOfRanks() {
  if (mpi_session().rank() != 0) return;
  keep_work_record(nullptr);
  std::error_code error;
  std::filesystem::remove(record_, error);
  std::filesystem::remove(crashes_, error);
  if (made_folder_) std::filesystem::remove(record_.parent_path(), error);  // if nothing is in it
}

}  // namespace stepladder
