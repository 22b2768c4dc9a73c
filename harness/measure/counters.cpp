#include "harness/measure/counters.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "kernels/common/cpu/instructions.hpp"

namespace stepladder {
namespace {

int open_counter(std::uint64_t event) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

}  // namespace

Counters::Counters() {
  for (const std::uint64_t event :
       {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_MISSES}) {
    const int file = open_counter(event);
    if (file >= 0) {
      files_.push_back(file);
      continue;
    }
    why_unavailable_ = fmt::format("perf_event_open: {}{}", std::strerror(errno),
                                   errno == EACCES || errno == EPERM
                                       ? "; lower /proc/sys/kernel/perf_event_paranoid to 2 or less"
                                       : "; this machine shows no hardware counters");
    for (const int open : files_) close(open);
    files_.clear();
    break;
  }
}

Counters::~Counters() {
  for (const int file : files_) close(file);
}

void Counters::start() {
  for (const int file : files_) {
    ioctl(file, PERF_EVENT_IOC_RESET, 0);
    ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
  }
}

std::optional<CounterValues> Counters::stop() {
  if (files_.empty()) return std::nullopt;
  std::array<double, 3> values{};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    ioctl(files_[i], PERF_EVENT_IOC_DISABLE, 0);
    std::array<std::uint64_t, 3> got{};  // value, time enabled, time running
    if (read(files_[i], got.data(), sizeof got) != sizeof got || got[2] == 0) return std::nullopt;
    // Events that share a counter take turns: scale to the whole time.
    values[i] =
        static_cast<double>(got[0]) * static_cast<double>(got[1]) / static_cast<double>(got[2]);
  }
  return CounterValues{values[0], values[1], values[2]};
}

std::uint64_t reference_cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#else  // of the generic timer, which has a frequency of its own
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

}  // namespace stepladder
