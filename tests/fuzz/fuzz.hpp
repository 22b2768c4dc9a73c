// What the fuzz targets share. A reader may return or throw a std::exception whose message is one
// line of printable text. All else is a finding, and ends the target: a crash, undefined behaviour,
// a hang, gigabytes for a small file, an empty or a garbled message.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/io/csv.hpp"

namespace stepladder::fuzz {

// Ends the target unless `message` is one line of printable text.
inline void check_message(std::string_view message) {
  bool good = !message.empty();
  for (const char c : message) good = good && static_cast<unsigned char>(c) >= 32 && c != 127;
  if (good) return;
  std::fprintf(stderr, "not one line of printable text: %zu bytes: ", message.size());
  std::fwrite(message.data(), 1, message.size(), stderr);
  std::abort();
}

template <class Read>
void expect_result_or_message(const Read& read) {
  try {
    read();
  } catch (const std::exception& error) {
    check_message(error.what());
  }
}

// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("input", 0)) {
    if (descriptor_ < 0) std::abort();
  }
  const std::filesystem::path& write(std::string_view bytes) {
    if (ftruncate(descriptor_, 0) != 0 ||
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    return path_;
  }

 private:
  int descriptor_;
  std::filesystem::path path_ = "/proc/self/fd/" + std::to_string(descriptor_);
};

// A folder in memory, removed at exit.
class MemoryFolder {
 public:
  explicit MemoryFolder(const std::string& name)
      : path_("/dev/shm/stepladder-fuzz-" + name + "-" + std::to_string(getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A CSV file of these columns: `rows`, with commas added to the short ones, below the header. The
// corpus therefore outlives new columns.
inline std::string table_of(const std::vector<std::string>& columns, std::string_view rows) {
  std::string text = csv_line(columns);
  while (!rows.empty()) {
    const std::size_t end = std::min(rows.find('\n'), rows.size());
    const std::string_view row = rows.substr(0, end);
    const auto fields = static_cast<std::size_t>(std::count(row.begin(), row.end(), ',')) + 1;
    text += row;
    if (fields < columns.size()) text.append(columns.size() - fields, ',');
    if (end < rows.size()) text += '\n';
    rows.remove_prefix(std::min(end + 1, rows.size()));
  }
  return text;
}

// Cuts the first line off `text` and returns it.
inline std::string first_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace stepladder::fuzz
