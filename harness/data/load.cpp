#include "harness/data/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/data/cifar.hpp"
#include "harness/data/folder.hpp"
#include "harness/data/idx.hpp"

namespace stepladder::data {
namespace {

namespace fs = std::filesystem;

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
