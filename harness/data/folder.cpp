#include "harness/data/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace stepladder::data {
namespace {

// Both spellings are common: some unpackers replace the hyphen of the published name by a dot.
Names idx_names(const std::string& stem, const std::string& kind) {
  return {stem + "-" + kind, stem + "." + kind, stem + "-" + kind + ".gz",
          stem + "." + kind + ".gz"};
}

std::vector<Names> mnist_files() {
  std::vector<Names> files;
  for (const char* part : {"train", "t10k"}) {
    files.push_back(idx_names(fmt::format("{}-images", part), "idx3-ubyte"));
    files.push_back(idx_names(fmt::format("{}-labels", part), "idx1-ubyte"));
  }
  return files;
}

std::vector<Names> cifar_files() {
  std::vector<Names> files;
  for (int i = 1; i <= 5; ++i) {
    files.push_back({fmt::format("data_batch_{}.bin", i), fmt::format("data_batch_{}.bin.gz", i)});
  }
  files.push_back({"test_batch.bin", "test_batch.bin.gz"});
  return files;
}

}  // namespace

std::span<const Names> files_of(Format format) {
  static const std::vector<Names> mnist = mnist_files();
  static const std::vector<Names> cifar = cifar_files();
  return format == Format::mnist ? mnist : cifar;
}

std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const Names& names) {
  std::optional<std::filesystem::path> folder;
  for (const std::string& name : names) {
    std::error_code error;  // a path that cannot be examined counts as missing
    const std::filesystem::path path = directory / name;
    if (!std::filesystem::exists(path, error)) continue;
    if (!std::filesystem::is_directory(path, error)) return path;
    if (!folder) folder = path;
  }
  return folder;  // whose error names it
}

bool holds(const std::filesystem::path& directory, Format format) {
  const std::span<const Names> files = files_of(format);
  return std::any_of(files.begin(), files.end(),
                     [&](const Names& names) { return find_file(directory, names).has_value(); });
}

}  // namespace stepladder::data
