// The clock of all measurements.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

namespace stepladder {

inline double now() {  // seconds since some moment; never set back
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The same clock, asked of the kernel without any library: no rung can put its own function there.
inline double now_of_kernel() {
  timespec time{};
#if defined(__x86_64__)
  long result = SYS_clock_gettime;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(CLOCK_MONOTONIC), "S"(&time)
               : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clock_gettime;
  register long result asm("x0") = CLOCK_MONOTONIC;
  register timespec* to asm("x1") = &time;
  asm volatile("svc 0" : "+r"(result) : "r"(number), "r"(to) : "memory");
#else
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
#endif
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace stepladder
