#include "harness/measure/noise.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/io/now.hpp"
#include "harness/measure/cores.hpp"
#include "harness/problem/threads.hpp"

namespace stepladder {
namespace {

// A chain of dependent multiplications: a fixed number of clock cycles, in about 10 us.
double time_chain() {
  const double start = now();
  std::uint64_t x = 3;
  for (int i = 0; i < 12000; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    asm volatile("" : "+r"(x));
  }
  return now() - start;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

rusage own_usage() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage;
}

double own_cpu_seconds() {
  const rusage usage = own_usage();
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// The fields of /proc/stat in which a core is busy, of all after its name.
constexpr std::size_t busy_fields[] = {0, 1, 2, 5, 6};  // user, nice, system, irq, soft irq
constexpr std::size_t stolen_field = 7;

std::vector<double> fields_of(std::istringstream& line) {
  std::vector<double> fields;
  for (double ticks = 0; line >> ticks;) fields.push_back(ticks / sysconf(_SC_CLK_TCK));
  return fields;
}

}  // namespace

void ShortestTime::add(double seconds) {
  if (seconds >= times_.back()) return;
  times_.back() = seconds;
  std::ranges::sort(times_);
}

// --- one repetition ------------------------------------------------------------------------------

bool take_turns(int ranks, long processors, bool hosts_are_emulated) {
  return ranks > processors || hosts_are_emulated;
}

NoiseGuard::NoiseGuard(bool shared_cores) : shared_cores_(shared_cores) {
  for (int i = 0; i < 50; ++i) calibrate();
}

NoiseGuard::~NoiseGuard() {
  for (const int file : threads_) close(file);
}

void NoiseGuard::expect(const Calibration& fastest) {
  fastest_.latency = std::min(fastest_.latency, fastest.latency);
  fastest_.throughput = std::min(fastest_.throughput, fastest.throughput);
}

double NoiseGuard::calibrate() {
  // The least of three. Some hypervisors interrupt a virtual machine every 60 us for 2.5 us: a
  // repetition takes 4 % longer, a loop that is hit a fifth.
  Calibration least;
  for (int i = 0; i < 3; ++i) {
    least.latency = std::min(least.latency, time_chain());
    least.throughput = std::min(least.throughput, time_throughput());
  }
  latency_.add(least.latency);
  throughput_.add(least.throughput);
  expect({latency_.seconds(), throughput_.seconds()});
  return std::max({1.0, least.latency / fastest_.latency, least.throughput / fastest_.throughput});
}

void NoiseGuard::find_threads() {
  for (const int file : threads_) close(file);
  threads_.clear();
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error))
    if (const int file = open((thread.path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC);
        file >= 0)
      threads_.push_back(file);
}

// schedstat has nanoseconds on a core, nanoseconds of waiting for one, and a count.
std::vector<double> NoiseGuard::queued_seconds() const {
  std::vector<double> all;
  for (const int file : threads_) {
    char text[96] = {};
    unsigned long long on_core = 0, waited = 0;
    const bool is_read = pread(file, text, sizeof text - 1, 0) > 0 &&
                         std::sscanf(text, "%llu %llu", &on_core, &waited) == 2;
    all.push_back(is_read ? 1e-9 * static_cast<double>(waited) : 0);  // the thread may have ended
  }
  return all;
}

void NoiseGuard::start() {
  calibration_ = calibrate();
  stolen_ = stolen_seconds();
  preemptions_ = own_usage().ru_nivcsw;
  queued_ = queued_seconds();
  start_ = now();
}

Disturbance NoiseGuard::stop() {
  Disturbance found{.elapsed = now() - start_};
  const std::vector<double> queued = queued_seconds();
  // A thread that is woken waits for its core too. Only one that has lost it was disturbed.
  if (own_usage().ru_nivcsw > preemptions_ && !shared_cores_)
    for (std::size_t i = 0; i < queued.size(); ++i)
      found.queued += std::max(0.0, queued[i] - queued_[i]);
  found.stolen = stolen_seconds() - stolen_;
  found.calibration_ratio = std::max(calibration_, calibrate());
  return found;
}

double NoiseGuard::stolen_seconds() {
  std::ifstream in("/proc/stat");
  return stolen_seconds_in(in);
}

double stolen_seconds_in(std::istream& proc_stat) {
  std::string line, label;
  std::getline(proc_stat, line);
  std::istringstream words(line);
  words >> label;
  const std::vector<double> fields = fields_of(words);
  return fields.size() > stolen_field ? fields[stolen_field] : 0;
}

// --- other processes -----------------------------------------------------------------------------

double busy_seconds_in(std::istream& proc_stat, const std::vector<int>& cores) {
  double seconds = 0;
  for (std::string line; std::getline(proc_stat, line);) {
    std::istringstream words(line);
    std::string label;
    words >> label;
    int core = 0;
    if (std::sscanf(label.c_str(), "cpu%d", &core) != 1 ||
        std::find(cores.begin(), cores.end(), core) == cores.end())
      continue;
    const std::vector<double> fields = fields_of(words);
    for (const std::size_t field : busy_fields)
      if (field < fields.size()) seconds += fields[field];
  }
  return seconds;
}

std::vector<int> own_cores() {
  std::vector<int> cores = processors_of_places();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cores.empty() && sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

bool are_disturbing(double cpu_seconds, double elapsed, std::size_t cores) {
  constexpr double share = 0.05, least_cores = 0.1;
  return cpu_seconds > elapsed * std::max(least_cores, share * static_cast<double>(cores));
}

Neighbours::Neighbours() : cores_(own_cores()) { restart(); }

double Neighbours::busy_seconds() const {
  std::ifstream in("/proc/stat");
  return busy_seconds_in(in, cores_);
}

void Neighbours::restart() {
  start_ = now();
  busy_ = busy_seconds();
  own_ = own_cpu_seconds();
}

double Neighbours::elapsed() const { return now() - start_; }

double Neighbours::cpu_seconds() const {
  return std::max(0.0, busy_seconds() - busy_ - (own_cpu_seconds() - own_));
}

bool Neighbours::are_busy() {
  constexpr double shortest = 0.1;
  const double seconds = elapsed();
  if (seconds >= shortest) were_busy_ = are_disturbing(cpu_seconds(), seconds, cores_.size());
  return were_busy_;
}

// --- the run -------------------------------------------------------------------------------------

NoiseTally& NoiseTally::operator+=(const NoiseTally& other) {
  repetitions += other.repetitions;
  disturbed += other.disturbed;
  elapsed_seconds += other.elapsed_seconds;
  stolen_seconds += other.stolen_seconds;
  others_seconds += other.others_seconds;
  return *this;
}

std::string NoiseTally::sentence() const {
  if (repetitions == 0) return "Nothing was timed.";
  const double share = 100.0 * static_cast<double>(disturbed) / static_cast<double>(repetitions);
  std::string text = fmt::format(
      "The machine was {}: {} of {} repetitions ({:.0f} %) were disturbed in {:.0f} s of timing; "
      "other processes used {:.1f} s of CPU time on its cores, other virtual machines {:.1f} s.",
      share < 5    ? "quiet"
      : share < 25 ? "somewhat noisy"
                   : "noisy",
      disturbed, repetitions, share, elapsed_seconds, others_seconds, stolen_seconds);
  if (share >= 5)
    text +=
        " Rows marked disturbed may show too long times: stop what else runs, and measure again "
        "(bench: with --resume --again).";
  return text;
}

}  // namespace stepladder
