#include "harness/io/result_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "harness/io/file.hpp"

namespace stepladder {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw std::runtime_error(fmt::format("{}: {}: {}", file.string(), what, std::strerror(errno)));
}

}  // namespace

AppendedFile::AppendedFile(std::filesystem::path file) : file_(std::move(file)) { open(); }

AppendedFile::~AppendedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void AppendedFile::open() {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(file_, "cannot be opened");
}

bool AppendedFile::is_empty() const {
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) fail(file_, "cannot be read");
  return status.st_size == 0;
}

void AppendedFile::append(std::string_view text) {
  const off_t before = lseek(descriptor_, 0, SEEK_END);
  if (write_all(descriptor_, text)) return;
  const int reason = errno;
  // If this fails too, the next Table that opens the file removes the torn line.
  [[maybe_unused]] const int truncated = ftruncate(descriptor_, before);
  errno = reason;
  fail(file_, "cannot be written");
}

void AppendedFile::replace(std::string_view text) {
  replace_file(file_, text);
  open();
}

}  // namespace stepladder
