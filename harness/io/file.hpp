// Whole files in and out, and where the project's own files are. Errors are std::runtime_error and
// name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;  // of zlib

namespace stepladder {

// A file that is read from its beginning, decompressed if it is gzip: some kilobytes of gzip may
// hold gigabytes, so that no more is read than asked for. Byte offsets in errors, here and in
// fail_at(), count decompressed bytes.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  // Appends the next `count` bytes; fewer at the end of the file.
  void read(std::size_t count, std::vector<std::uint8_t>& bytes);
  bool is_gzip() const;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
  std::size_t offset_ = 0;
};

// The whole content of a text file, at most 256 MiB if it is gzip.
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path);

// The same of a small file that is not compressed; empty if it cannot be read.
std::string text_in(const std::filesystem::path& path);

// Writes a temporary file beside `path`, `path`.tmp-<process>, forces it to disk and renames it to
// `path`, which therefore always holds either its former content or all of `text`, even after a
// power failure. A process that is killed may leave its temporary file.
void replace_file(const std::filesystem::path& path, std::string_view text);
void replace_file(const std::filesystem::path& path, std::span<const std::string_view> parts);

// False, with errno set, when not all of `text` could be written.
bool write_all(int descriptor, std::string_view text);

// Throws "<path>: byte offset <offset>: expected <expected>, found <found>".
[[noreturn]] void fail_at(const std::filesystem::path& path, std::size_t offset,
                          const std::string& expected, const std::string& found);

// While it exists, other processes wait that lock the folder of the same file. Between reading a
// file and replacing it, this keeps what they add.
class FolderLock {
 public:
  // Throws when the folder of `path` cannot be opened or locked.
  explicit FolderLock(const std::filesystem::path& path);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_;
};

// The folder of suites, networks and results: the one that the environment variable
// STEPLADDER_SOURCE_DIR names, otherwise that of the sources that the program was built from.
// Throws if it has no suites.
std::filesystem::path source_directory();

// Standard output. Throws std::runtime_error unless all that was printed is out.
void flush_output();

}  // namespace stepladder
