// What a measuring process is doing, in memory that outlives it: after a crash it names the
// variant.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace stepladder {

struct WorkRecord {
  static constexpr std::size_t longest_subject = 511;  // longer names are cut

  std::atomic<std::uint64_t> changes;             // of the subject
  std::atomic<bool> is_active;                    // whether the subject's code runs
  std::atomic<double> seconds;                    // within which it should return
  std::atomic<std::int64_t> finished_problems;    // first visits
  std::array<char, longest_subject + 1> subject;  // its name, with a final zero
  std::array<char, 32> stage;                     // "verified" or "timed"
  std::array<char, longest_subject + 1> problem;  // that is visited; empty between two visits
};

// Mapped memory, zeroed when new: shared with processes that are forked later, or in a file, which
// keeps it when they all end. Throws std::runtime_error.
WorkRecord* new_work_record();
WorkRecord* work_record_in(const std::filesystem::path& file);

void set_subject(WorkRecord& record, const std::string& name);
void set_problem(WorkRecord& record, const std::string& name);

// The record that is kept now; null: none.
void keep_work_record(WorkRecord* record);
WorkRecord* kept_work_record();

// Marks a subject as active, for as long as it lives.
class ActiveSubject {
 public:
  ActiveSubject(const std::string& name, const char* stage, double expected_seconds);
  ~ActiveSubject();
  ActiveSubject(const ActiveSubject&) = delete;
  ActiveSubject& operator=(const ActiveSubject&) = delete;
};

}  // namespace stepladder
