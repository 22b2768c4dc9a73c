#include "harness/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <system_error>

namespace stepladder {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), what));
}

constexpr unsigned chunk = 1U << 16;

// A file that the destructor removes unless rename_to() succeeded.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : name_(fmt::format("{}.tmp-{}", target.string(), getpid())),
        descriptor_(open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~TemporaryFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    if (!renamed_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }

  bool write(std::span<const std::string_view> parts) {
    for (const std::string_view part : parts)
      if (!write_all(descriptor_, part)) return false;
    return fsync(descriptor_) == 0;
  }

  bool rename_to(const std::filesystem::path& target) {
    renamed_ = std::rename(name_.c_str(), target.c_str()) == 0;
    return renamed_;
  }

 private:
  std::string name_;
  int descriptor_;
  bool renamed_ = false;
};

// Forces the names in a folder to disk. True also where the file system or the permissions of the
// folder do not allow it.
bool sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES;
  const bool synced = fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int reason = errno;
  close(descriptor);
  errno = reason;
  return synced;
}

}  // namespace

void InputFile::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  errno = 0;
  file_.reset(gzopen(path.c_str(), "rb"));
  if (file_ == nullptr) {
    fail(path, fmt::format("cannot open: {}", errno != 0 ? std::strerror(errno) : "no memory"));
  }
  gzbuffer(file_.get(), chunk);
}

bool InputFile::is_gzip() const { return gzdirect(file_.get()) == 0; }

void InputFile::read(std::size_t count, std::vector<std::uint8_t>& bytes) {
  while (count > 0) {
    const auto wanted = static_cast<unsigned>(std::min<std::size_t>(count, chunk));
    const std::size_t filled = bytes.size();
    bytes.resize(filled + wanted);
    const int got = gzread(file_.get(), bytes.data() + filled, wanted);
    bytes.resize(filled + static_cast<std::size_t>(std::max(got, 0)));
    offset_ += bytes.size() - filled;
    count -= bytes.size() - filled;
    if (got < static_cast<int>(wanted)) break;
  }

  // gzread() reports a truncated gzip stream only in the error state.
  int status = Z_OK;
  const char* detail = gzerror(file_.get(), &status);
  if (status == Z_ERRNO) fail(path_, fmt::format("cannot read: {}", std::strerror(errno)));
  if (status == Z_BUF_ERROR) {
    fail_at(path_, offset_, "more compressed data", "the end of the file (truncated gzip)");
  }
  if (status != Z_OK && status != Z_STREAM_END) {
    fail_at(path_, offset_, "valid gzip data", fmt::format("damage ({})", detail));
  }
}

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
  constexpr std::size_t most = std::size_t{256} << 20U;
  InputFile file(path);
  std::vector<std::uint8_t> bytes;
  file.read(most, bytes);
  if (bytes.size() == most) {
    if (file.is_gzip()) fail_at(path, most, "the end of the text in this gzip file", "more");
    file.read(std::numeric_limits<std::size_t>::max(), bytes);
  }
  return bytes;
}

std::string text_in(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator(in), {}};
}

void replace_file(const std::filesystem::path& path, std::string_view text) {
  replace_file(path, std::span(&text, 1));
}

void replace_file(const std::filesystem::path& path, std::span<const std::string_view> parts) {
  TemporaryFile file(path);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!file.is_open() || !file.write(parts) || !file.rename_to(path) || !sync_folder(folder)) {
    fail(path, fmt::format("cannot write: {}", std::strerror(errno)));
  }
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void fail_at(const std::filesystem::path& path, std::size_t offset, const std::string& expected,
             const std::string& found) {
  fail(path, fmt::format("byte offset {}: expected {}, found {}", offset, expected, found));
}

FolderLock::FolderLock(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  folder_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ >= 0 && flock(folder_, LOCK_EX) == 0) return;
  const int reason = errno;
  if (folder_ >= 0) close(folder_);
  fail(path, fmt::format("cannot lock its folder: {}", std::strerror(reason)));
}
FolderLock::~FolderLock() { close(folder_); }

std::filesystem::path source_directory() {
  const char* chosen = std::getenv("STEPLADDER_SOURCE_DIR");
  std::filesystem::path folder = chosen != nullptr ? chosen : STEPLADDER_SOURCE_DIR;
  std::error_code error;
  if (!std::filesystem::is_directory(folder / "bench" / "suites", error))
    fail(folder,
         "has no folder bench/suites; STEPLADDER_SOURCE_DIR must name stepladder's sources");
  return folder;
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::runtime_error(errno != 0 ? std::strerror(errno) : "a part of it was lost");
}

}  // namespace stepladder
