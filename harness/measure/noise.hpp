// What slows the machine beside the subject that is timed: a slower clock, the hypervisor, and
// other processes on the same cores or the same memory.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

namespace stepladder {

// Disturbances during a number of repetitions.
struct NoiseTally {
  std::int64_t repetitions = 0, disturbed = 0;
  double elapsed_seconds = 0, stolen_seconds = 0;
  double others_seconds = 0;  // CPU time of other processes on our cores

  NoiseTally& operator+=(const NoiseTally& other);
  std::string sentence() const;  // for the user
};

// Times of the two calibration loops, in seconds.
struct Calibration {
  static constexpr double unknown = std::numeric_limits<double>::infinity();
  double latency = unknown;  // a chain of dependent multiplications: the clock
  double throughput =
      unknown;  // time_throughput(): the units of the core, which another thread may use
};

// The fifth shortest of the times so far; unknown before five. A clock that jumps shortens single
// ones.
class ShortestTime {
 public:
  ShortestTime() { times_.fill(Calibration::unknown); }
  void add(double seconds);
  double seconds() const { return times_.back(); }

 private:
  std::array<double, 5> times_;  // sorted
};

// During one repetition.
struct Disturbance {
  double elapsed = 0;            // seconds, as the others
  double calibration_ratio = 1;  // of the slower calibration loop: its time over its shortest
  double stolen = 0;             // CPU time that the hypervisor gave to others
  double queued = 0;             // threads of this process were ready and waited for a core

  bool is_large() const {
    return calibration_ratio > slow_ratio || stolen > 0.02 * elapsed + 0.005 ||
           queued > 0.02 * elapsed + 50e-6;
  }
  static constexpr double slow_ratio = 1.25;
};

// Whether ranks take turns on a core, so that waiting for it is no disturbance: there are more of
// them than processors, or their hosts are emulated on one machine.
bool take_turns(int ranks, long processors, bool hosts_are_emulated);

class NoiseGuard {
 public:
  // `shared_cores`: see take_turns().
  explicit NoiseGuard(bool shared_cores = false);
  ~NoiseGuard();
  NoiseGuard(const NoiseGuard&) = delete;
  NoiseGuard& operator=(const NoiseGuard&) = delete;

  // Finds the threads of this process, for the intervals that follow.
  void find_threads();
  // Times of earlier runs on this machine, so that a neighbour that is always there is seen.
  void expect(const Calibration& fastest);
  const Calibration& fastest() const { return fastest_; }

  // An interval. Both run each calibration loop three times (about 60 µs) on the calling thread.
  void start();
  Disturbance stop();

  // Stolen seconds of all CPUs since boot; 0 where the kernel does not report them.
  static double stolen_seconds();

 private:
  double calibrate();  // at least 1
  // Seconds that each thread has waited for a core since it began.
  std::vector<double> queued_seconds() const;

  ShortestTime latency_, throughput_;
  Calibration fastest_;  // of this process and of earlier ones
  bool shared_cores_;
  std::vector<int> threads_;  // files
  double start_ = 0, calibration_ = 1, stolen_ = 0;
  std::int64_t preemptions_ = 0;
  std::vector<double> queued_;
};

// From the text of /proc/stat, in seconds since boot. stolen_seconds_in: CPU time of all CPUs that
// the hypervisor gave to others, 0 where it is not reported. busy_seconds_in: in which these cores
// were busy.
double stolen_seconds_in(std::istream& proc_stat);
double busy_seconds_in(std::istream& proc_stat, const std::vector<int>& cores);

// The processors of OpenMP's places; without places, those that the calling thread may run on.
std::vector<int> own_cores();

// Whether other processes that used `cpu_seconds` of the time of our cores in `elapsed` seconds
// disturb: more than 5 % of it, and more than a tenth of a core.
bool are_disturbing(double cpu_seconds, double elapsed, std::size_t cores);

// The CPU time of other processes on the cores of this one. The kernel counts it in ticks of 10 ms,
// so that an interval should last for a quarter of a second.
class Neighbours {
 public:
  Neighbours();
  void restart();  // a new interval begins
  double elapsed() const;
  double cpu_seconds() const;  // of others in this interval
  // are_disturbing(). After a short interval: as in the one before.
  bool are_busy();

 private:
  double busy_seconds() const;  // of our cores, by all processes, since boot

  std::vector<int> cores_;
  double start_ = 0, busy_ = 0, own_ = 0;
  bool were_busy_ = false;
};

}  // namespace stepladder
