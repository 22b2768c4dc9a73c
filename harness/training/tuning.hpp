// The choices of `best` as `stepladder tune` measured them on a machine, kept in a CSV file.
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

  // Nothing is known: `best` is measured when a network is made.
  Tuning() = default;
  // Throws std::runtime_error when the file is malformed, or of a machine with another processor.
  Tuning(const std::filesystem::path& file, const std::string& cpu_model);

  // By the name of a network's problem, "matmul forward 64x512x784 nn", and threads; null if unknown.
  const Choice* find(const std::string& problem, int threads) const;
  void set(const std::string& problem, int threads, Choice choice);
  // Replaces the file whole or not at all.
  void save(const std::filesystem::path& file, const std::string& cpu_model) const;

 private:
  std::map<std::pair<std::string, int>, Choice> choices_;
};

}  // namespace stepladder
