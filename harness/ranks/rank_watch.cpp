#include "harness/ranks/rank_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <vector>

#include "harness/io/number.hpp"

namespace stepladder {
namespace {

constexpr const char* variable = "STEPLADDER_RANK_TIMEOUT";
constexpr const char* place_names[] = {
    "other work",  "a barrier",     "a maximum over the ranks", "a comparison of the ranks",
    "a broadcast", "the end of MPI"};

std::size_t bytes_of(int lines) { return static_cast<std::size_t>(lines) * sizeof(RankWatch::Row); }

std::span<RankWatch::Row> map(int file, int lines) {
  void* memory = mmap(nullptr, bytes_of(lines), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return {};
  return {static_cast<RankWatch::Row*>(memory), static_cast<std::size_t>(lines)};
}

std::string name_of(const RankWatch::Row& row) {
  std::string name;
  for (const std::atomic<char>& c : row.name) {
    if (c == '\0') break;
    name += c;
  }
  return name;
}

std::string place_of(const RankWatch::Row& row) {
  const int place = row.place;
  const std::string last = name_of(row);
  if (place == RankWatch::named) return last;
  return place_names[place] + (last.empty() ? "" : " after " + last);
}

// The letter of proc(5): T for stopped, Z for ended. Z if there is no such process.
char state_of(int process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(in, text)) return 'Z';
  const std::size_t end_of_name = text.rfind(')');
  return end_of_name + 2 < text.size() ? text[end_of_name + 2] : 'Z';
}

bool is_lost(char state) { return state == 'T' || state == 't' || state == 'Z' || state == 'X'; }

std::string describe(char state) {
  switch (state) {
    case 'T':
    case 't':
      return "is stopped";
    case 'Z':
    case 'X':
      return "has ended";
    case 'R':
      return "is running";
    default:
      return "is sleeping";
  }
}

std::string describe(const RankWatch::Row& row) {
  const bool in_call = row.position % 2 == 1;
  const std::string last = name_of(row);
  const std::string where = in_call        ? "in " + place_of(row)
                            : last.empty() ? "between two calls"
                                           : "past " + last;
  return fmt::format("it is {}, and its process {} {}", where, row.process.load(),
                     describe(state_of(row.process)));
}

}  // namespace

RankWatch::Table RankWatch::make_table(int lines) {
  Table table;
  table.file = memfd_create("stepladder-ranks", MFD_CLOEXEC);
  if (table.file >= 0 && ftruncate(table.file, static_cast<off_t>(bytes_of(lines))) == 0)
    table.rows = map(table.file, lines);
  return table;
}

std::span<RankWatch::Row> RankWatch::open_table(int lines, int process, int file) {
  const int own = open(fmt::format("/proc/{}/fd/{}", process, file).c_str(), O_RDWR | O_CLOEXEC);
  if (own < 0) return {};
  const std::span<Row> rows = map(own, lines);
  close(own);
  return rows;
}

double RankWatch::limit_from_environment() {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return 60;
  const std::optional<double> seconds = number_in<double>(text);
  if (!seconds || *seconds < 0 || *seconds > 1e9)
    throw std::runtime_error(
        fmt::format("{}={}: expected seconds, such as 60, or 0 for no limit", variable, text));
  return *seconds;
}

RankWatch::RankWatch(int rank, int ranks, int hosts, double limit_seconds, std::span<Row> rows,
                     std::size_t row)
    : rank_(rank),
      ranks_(ranks),
      hosts_(hosts),
      limit_(limit_seconds),
      rows_(rows),
      own_(rows[row]) {
  own_.rank = rank;
  own_.process = getpid();
  // Signals are for the main thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { look(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

RankWatch::~RankWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

// Adds up the time between two looks, each at most a little more than planned: the time in which
// this process was suspended itself does not count.
void RankWatch::look() {
  using Clock = std::chrono::steady_clock;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const double pause = std::clamp(limit_ / 12, 0.05, 5.0);
  std::uint64_t position = 0;
  double waited = 0;
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return ends_; })) {
    const Clock::time_point time = Clock::now();
    const double passed = std::min(seconds(time - last), 2 * pause);
    last = time;
    const std::uint64_t before = position;
    position = own_.position;
    waited = position == before && position % 2 == 1 ? waited + passed : 0;
    if (waited > limit_ + expected_) end_run(waited);
  }
}

// The rank that is behind, in the order of the calls, hangs. When all are in the same call, only a
// process that is stopped or ended gives itself away.
std::string RankWatch::reason(double seconds) const {
  std::vector<const Row*> here, behind;
  for (const Row& row : rows_)
    if (row.process != 0) here.push_back(&row);
  const auto by_position = [](const Row* a, const Row* b) { return a->position < b->position; };
  const std::uint64_t first = (*std::min_element(here.begin(), here.end(), by_position))->position;
  const std::uint64_t last = (*std::max_element(here.begin(), here.end(), by_position))->position;
  for (const Row* row : here)
    if (is_lost(state_of(row->process))) behind.push_back(row);
  if (behind.empty() && first < last)
    for (const Row* row : here)
      if (row->position == first) behind.push_back(row);

  const std::string waited = fmt::format("waited {:.0f} s in {}", seconds, place_of(own_));
  if (behind.size() == 1 && behind.front() == &own_)
    return fmt::format("has been in {} for {:.0f} s, and the others wait for it", place_of(own_),
                       seconds);
  if (!behind.empty()) {
    std::string missing;
    for (const Row* row : behind)
      missing += fmt::format("{}rank {} ({})", missing.empty() ? "" : " and ", row->rank.load(),
                             describe(*row));
    return fmt::format("{} for {}", waited, missing);
  }
  std::vector<int> ranks;
  for (const Row* row : here) ranks.push_back(row->rank);
  std::sort(ranks.begin(), ranks.end());
  if (static_cast<int>(ranks.size()) == ranks_)
    return fmt::format("{}; all ranks are in it", waited);
  return fmt::format("{}; {} {} came to it, and another rank did not", waited,
                     ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

void RankWatch::end_run(double seconds) {
  if (rows_.front().reported.exchange(1) == 0) {
    std::fflush(stdout);
    const std::string line = fmt::format("stepladder: rank {} of {}: {} (limit: {})\n", rank_,
                                         ranks_, reason(seconds), variable);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    // The ranks of other hosts have their own tables: they need time to print what they know.
    if (hosts_ > 1) std::this_thread::sleep_for(std::chrono::seconds(6));
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(10));  // the launcher ends this process first
  }
  // Not every launcher ends a stopped process: it runs on, waits for the others and ends itself.
  for (const Row& row : rows_)
    if (row.process != 0 && state_of(row.process) == 'T') kill(row.process, SIGCONT);
  std::_Exit(1);
}

RankWatch::Call::Call(RankWatch* watch, Place place) : watch_(watch) { enter(place, 0); }

RankWatch::Call::Call(RankWatch* watch, const std::string& name, double expected_seconds)
    : watch_(watch) {
  if (watch_ == nullptr) return;
  const std::size_t length = std::min(name.size(), Row::longest_name);
  for (std::size_t i = 0; i < length; ++i)
    watch_->own_.name[i].store(name[i], std::memory_order_relaxed);
  watch_->own_.name[length].store('\0', std::memory_order_relaxed);
  enter(named, expected_seconds);
}

void RankWatch::Call::enter(Place place, double expected_seconds) {
  if (watch_ == nullptr) return;
  Row& own = watch_->own_;
  outer_place_ = own.place.load(std::memory_order_relaxed);
  outer_seconds_ = watch_->expected_.load(std::memory_order_relaxed);
  watch_->expected_.store(std::max(expected_seconds, outer_seconds_), std::memory_order_relaxed);
  own.place.store(place, std::memory_order_relaxed);
  advance(own);
}

// From even to odd and back; from odd to odd in a nested call. Only this thread writes it.
void RankWatch::Call::advance(Row& own) const {
  const std::uint64_t step = outer_place_ == elsewhere ? 1 : 2;
  own.position.store(own.position.load(std::memory_order_relaxed) + step,
                     std::memory_order_release);
}

RankWatch::Call::~Call() {
  if (watch_ == nullptr) return;
  Row& own = watch_->own_;
  advance(own);
  own.place.store(outer_place_, std::memory_order_relaxed);
  watch_->expected_.store(outer_seconds_, std::memory_order_relaxed);
}

}  // namespace stepladder
