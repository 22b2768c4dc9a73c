#include "harness/measure/work_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace stepladder {
namespace {

WorkRecord* kept = nullptr;

WorkRecord* map(int flags, int file, const std::string& what) {
  void* memory = mmap(nullptr, sizeof(WorkRecord), PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error(fmt::format("{}: cannot be mapped: {}", what, std::strerror(errno)));
  return static_cast<WorkRecord*>(memory);
}

template <std::size_t size>
void store(std::array<char, size>& target, std::string_view text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::copy_n(text.data(), length, target.data());
  target[length] = '\0';
}

}  // namespace

WorkRecord* new_work_record() {
  return map(MAP_SHARED | MAP_ANONYMOUS, -1, "the record of the supervisor");
}

WorkRecord* work_record_in(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(WorkRecord)) != 0)
    throw std::runtime_error(
        fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  WorkRecord* record = map(MAP_SHARED, descriptor, file.string());
  close(descriptor);
  return record;
}

void set_subject(WorkRecord& record, const std::string& name) { store(record.subject, name); }

void set_problem(WorkRecord& record, const std::string& name) { store(record.problem, name); }

void keep_work_record(WorkRecord* record) { kept = record; }
WorkRecord* kept_work_record() { return kept; }

ActiveSubject::ActiveSubject(const std::string& name, const char* stage, double expected_seconds) {
  if (kept == nullptr) return;
  set_subject(*kept, name);
  store(kept->stage, stage);
  kept->seconds = expected_seconds;
  ++kept->changes;
  kept->is_active = true;
}

ActiveSubject::~ActiveSubject() {
  if (kept != nullptr) kept->is_active = false;
}

}  // namespace stepladder
