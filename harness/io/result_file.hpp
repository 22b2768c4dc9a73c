// A result file that grows by whole lines. A crash or a full disk leaves what was there before.
// Errors are std::runtime_error and name the file.
#pragma once

#include <filesystem>
#include <string_view>

namespace stepladder {

class AppendedFile {
 public:
  explicit AppendedFile(std::filesystem::path file);  // creates it when there is none
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  bool is_empty() const;
  void append(std::string_view text);  // all of it, or nothing
  // Replaces the content; what is appended later follows it.
  void replace(std::string_view text);

 private:
  void open();

  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace stepladder
