#include "harness/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

namespace stepladder {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), what));
}

struct CloseGzip {
  void operator()(gzFile file) const { gzclose_r(file); }
};

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

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
  errno = 0;
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    fail(path, fmt::format("cannot open: {}", errno != 0 ? std::strerror(errno) : "no memory"));
  }
  constexpr unsigned chunk = 1U << 16;
  gzbuffer(file.get(), chunk);

  std::vector<std::uint8_t> bytes;
  std::size_t filled = 0;
  for (;;) {
    bytes.resize(filled + chunk);
    const int got = gzread(file.get(), bytes.data() + filled, chunk);
    if (got > 0) filled += static_cast<std::size_t>(got);
    if (got < static_cast<int>(chunk)) break;
  }
  bytes.resize(filled);

  // gzread() reports a truncated gzip stream only in the error state.
  int status = Z_OK;
  const char* detail = gzerror(file.get(), &status);
  if (status == Z_ERRNO) fail(path, fmt::format("cannot read: {}", std::strerror(errno)));
  if (status == Z_BUF_ERROR) {
    fail_at(path, filled, "more compressed data", "the end of the file (truncated gzip)");
  }
  if (status != Z_OK && status != Z_STREAM_END) {
    fail_at(path, filled, "valid gzip data", fmt::format("damage ({})", detail));
  }
  return bytes;
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
  const std::filesystem::path folder = chosen != nullptr ? chosen : STEPLADDER_SOURCE_DIR;
  std::error_code error;
  if (!std::filesystem::is_directory(folder / "bench" / "suites", error))
    fail(folder,
         "has no folder bench/suites; STEPLADDER_SOURCE_DIR must name stepladder's sources");
  return folder;
}

}  // namespace stepladder
