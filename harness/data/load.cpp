#include "harness/data/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "harness/data/cifar.hpp"
#include "harness/data/idx.hpp"

namespace stepladder::data {
namespace {

namespace fs = std::filesystem;

enum class Format { mnist, cifar10 };

// The names that one file may have, in the order in which they are tried.
using Names = std::vector<std::string>;

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

// MNIST: training images, training labels, test images, test labels.
// CIFAR-10: five training files, then the test file.
std::span<const Names> files_of(Format format) {
  static const std::vector<Names> mnist = mnist_files();
  static const std::vector<Names> cifar = cifar_files();
  return format == Format::mnist ? mnist : cifar;
}

// The path under the first name that exists in the folder.
std::optional<fs::path> find_file(const fs::path& directory, const Names& names) {
  std::optional<fs::path> folder;
  for (const std::string& name : names) {
    std::error_code error;  // a path that cannot be examined counts as missing
    const fs::path path = directory / name;
    if (!fs::exists(path, error)) continue;
    if (!fs::is_directory(path, error)) return path;
    if (!folder) folder = path;
  }
  return folder;  // whose error names it
}

// Whether at least one file of the format exists.
bool holds(const fs::path& directory, Format format) {
  const std::span<const Names> files = files_of(format);
  return std::any_of(files.begin(), files.end(),
                     [&](const Names& names) { return find_file(directory, names).has_value(); });
}

[[noreturn]] void fail(const fs::path& directory, const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", directory.string(), what));
}

// The names of all files, one file per line.
std::string names_of(Format format) {
  std::string text;
  for (const Names& names : files_of(format)) {
    text += fmt::format("\n  {}", fmt::join(names, " or "));
  }
  return text;
}

std::vector<fs::path> find_all(const fs::path& directory, Format format) {
  std::vector<fs::path> paths;
  for (const Names& names : files_of(format)) {
    const std::optional<fs::path> path = find_file(directory, names);
    if (!path) fail(directory, fmt::format("expected {}, found none", fmt::join(names, " or ")));
    paths.push_back(*path);
  }
  return paths;
}

DatasetPair load_mnist(const fs::path& directory) {
  const std::vector<fs::path> files = find_all(directory, Format::mnist);
  DatasetPair pair{read_idx(files[0], files[1]), read_idx(files[2], files[3])};
  if (pair.train.height != pair.test.height || pair.train.width != pair.test.width) {
    fail(files[2],
         fmt::format("byte offset 8: expected images of {}x{} like the training images, "
                     "found {}x{}",
                     pair.train.height, pair.train.width, pair.test.height, pair.test.width));
  }
  return pair;
}

DatasetPair load_cifar(const fs::path& directory) {
  std::vector<fs::path> files = find_all(directory, Format::cifar10);
  const fs::path test = files.back();
  files.pop_back();
  return {read_cifar(files), read_cifar({test})};
}

}  // namespace

DatasetPair load(const fs::path& directory) {
  if (!fs::is_directory(directory)) fail(directory, "expected a folder of data, found none");
  const bool mnist = holds(directory, Format::mnist);
  const bool cifar10 = holds(directory, Format::cifar10);
  if (mnist && cifar10) {
    fail(directory, "holds both MNIST and CIFAR-10 files: expected a folder with one of them");
  }
  if (!mnist && !cifar10) {
    fail(directory, fmt::format("expected the files of MNIST:{}\nor those of CIFAR-10:{}\n"
                                "found none of them",
                                names_of(Format::mnist), names_of(Format::cifar10)));
  }
  return mnist ? load_mnist(directory) : load_cifar(directory);
}

}  // namespace stepladder::data
