#include "bench/crash_report.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "harness/measure/work_record.hpp"

namespace stepladder {
namespace {

// Names the variant that ran when a signal ended the process, and for SIGILL the bytes of the
// instruction. Calls nothing that a signal handler may not call.
void tell_of_crash(int signal, siginfo_t* info, void*) {
  const auto say = [](const char* text) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  };
  const char* name = sigabbrev_np(signal);
  say("\nstepladder: ");
  if (const WorkRecord* record = kept_work_record(); record->is_active) {
    say(record->subject.data());
    say(" failed while it was verified: ");
  }
  say("killed by SIG");
  say(name != nullptr ? name : "?");
  if (signal == SIGILL) {
    constexpr int most_bytes = 8;
    constexpr const char* digits = "0123456789abcdef";
    std::array<char, 3 * most_bytes + 1> text{};
    const auto* bytes = static_cast<const unsigned char*>(info->si_addr);
    for (int i = 0; i < most_bytes; ++i) {
      text[3 * i] = ' ';
      text[3 * i + 1] = digits[bytes[i] >> 4U];
      text[3 * i + 2] = digits[bytes[i] & 15U];
    }
    say(" at the instruction");
    say(text.data());
  }
  say("\n");
  raise(signal);  // as without this handler
}

}  // namespace

void report_crashes() {
  keep_work_record(new_work_record());
  struct sigaction action {};
  action.sa_sigaction = tell_of_crash;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT})
    sigaction(signal, &action, nullptr);
}

}  // namespace stepladder
