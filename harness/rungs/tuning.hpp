// The variants that `best` uses, as measured by `stepladder tune` on a machine, in a CSV file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace stepladder {

class Tuning {
 public:
  struct Choice {
    std::string variant;
    double median_seconds = 0;
  };

  // No entries: `best` is measured when a network is made.
  Tuning() = default;
  // Throws std::runtime_error if the file is malformed or from a machine with another processor.
  Tuning(const std::filesystem::path& file, const std::string& cpu_model);

  // By problem, "matmul forward 64x512x784 nn", and threads; null if there is no entry.
  const Choice* find(const std::string& problem, int threads) const;
  void set(const std::string& problem, int threads, Choice choice);
  // Replaces the file atomically.
  void save(const std::filesystem::path& file, const std::string& cpu_model) const;

 private:
  std::map<std::pair<std::string, int>, Choice> choices_;
};

}  // namespace stepladder
