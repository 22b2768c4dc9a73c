#include "harness/data/generated.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "harness/data/cifar.hpp"
#include "harness/data/digits.hpp"
#include "harness/io/file.hpp"
#include "harness/data/folder.hpp"
#include "harness/data/idx.hpp"
#include "harness/data/shuffle.hpp"
#include "harness/problem/random.hpp"

namespace stepladder::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int classes = 10;
constexpr int most_images = 1'000'000;
constexpr const char* record_name = "generated.json";

// Keeps other processes (the ranks of one run, say) from writing the same folder; where a file
// system has no locks they draw the same bytes, and each file still appears whole.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& directory)
      : descriptor_(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
  }
  ~FolderLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

struct Drawing {
  std::vector<std::uint8_t> pixels;  // [count, image bytes]
  std::vector<std::uint8_t> labels;  // [count]
};

using Draw = void (*)(int digit, Random&, std::span<std::uint8_t> pixels);

// Every digit equally often (but for a remainder), in random order. Image i depends on the seed,
// the part ("train" or "test"), its label and i alone.
Drawing draw(Draw draw_one, std::size_t image_bytes, int count, std::uint64_t seed,
             const std::string& part) {
  const auto n = static_cast<std::size_t>(count);
  Drawing drawing{std::vector<std::uint8_t>(n * image_bytes), std::vector<std::uint8_t>(n)};
  for (std::size_t i = 0; i < n; ++i) drawing.labels[i] = static_cast<std::uint8_t>(i % classes);
  Random order(seed, part + " labels");
  shuffle(drawing.labels, order);
  for (std::size_t i = 0; i < n; ++i) {
    Random random(seed, fmt::format("{} image {}", part, i));
    draw_one(drawing.labels[i], random,
             std::span(drawing.pixels).subspan(i * image_bytes, image_bytes));
  }
  return drawing;
}

void write_record(const fs::path& directory, const json& record) {
  const std::string text = record.dump(2) + "\n";
  write_atomically(directory / record_name,
                   {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// Null if there is none.
json read_record(const fs::path& directory) {
  const fs::path path = directory / record_name;
  if (!fs::exists(path)) return nullptr;
  const std::vector<std::uint8_t> bytes = read_bytes(path);
  json record = json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("format") || !record.contains("complete") ||
      !record["complete"].is_boolean()) {
    throw std::runtime_error(
        fmt::format("{}: expected a JSON object with \"format\" and \"complete\": true or false; "
                    "remove the folder to have it generated again",
                    path.string()));
  }
  return record;
}

void check_counts(int train, int test, int least_train) {
  const auto check = [](const char* what, int count, int least) {
    if (count < least || count > most_images) {
      throw std::invalid_argument(fmt::format("cannot generate {} {} images: expected {} to {}",
                                              count, what, least, most_images));
    }
  };
  check("training", train, least_train);
  check("test", test, 1);
}

struct PlannedFile {
  fs::path path;
  std::uintmax_t bytes;
};

bool all_there(const std::vector<PlannedFile>& files) {
  return std::all_of(files.begin(), files.end(), [](const PlannedFile& file) {
    std::error_code error;
    return fs::file_size(file.path, error) == file.bytes && !error;
  });
}

// Calls write_files() unless `directory` already holds what `record` describes in these files.
template <class WriteFiles>
void write_once(const fs::path& directory, json record, const std::vector<PlannedFile>& files,
                WriteFiles write_files) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("{}: cannot create the folder: {}", directory.string(), error.message()));
  }
  const FolderLock lock(directory);
  const json found = read_record(directory);
  record["complete"] = true;
  if (found == record && all_there(files)) return;

  const bool foreign = found.is_null()
                           ? holds(directory, Format::mnist) || holds(directory, Format::cifar10)
                           : found["format"] != record["format"];
  if (foreign) {
    throw std::runtime_error(fmt::format(
        "{}: expected an empty folder, or one of generated {} files, to write generated digits "
        "to; found other data files",
        directory.string(), record["format"].get<std::string>()));
  }
  record["complete"] = false;
  write_record(directory, record);
  write_files();
  record["complete"] = true;
  write_record(directory, record);
}

json describe(const char* format, int train, int test, std::uint64_t seed) {
  return {{"generator_version", generator_version},
          {"format", format},
          {"train", train},
          {"test", test},
          {"seed", seed}};
}

}  // namespace

void write_generated(const fs::path& directory, int train, int test, std::uint64_t seed) {
  check_counts(train, test, 1);
  constexpr std::size_t image_bytes = std::size_t{digit_side} * digit_side;
  const std::span<const Names> names = files_of(Format::mnist);
  std::vector<PlannedFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto count = static_cast<std::uintmax_t>(i < 2 ? train : test);
    files.push_back({directory / names[i].front(), i % 2 == 0
                                                       ? idx_images_header + count * image_bytes
                                                       : idx_labels_header + count});
  }
  write_once(directory, describe("mnist", train, test, seed), files, [&] {
    const auto write = [&](std::size_t first, int count, const char* part) {
      const Drawing drawing = draw(draw_digit, image_bytes, count, seed, part);
      write_idx_images(files[first].path, digit_side, digit_side, drawing.pixels);
      write_idx_labels(files[first + 1].path, drawing.labels);
    };
    write(0, train, "train");
    write(2, test, "test");
  });
}

void write_generated_coloured(const fs::path& directory, int train, int test, std::uint64_t seed) {
  const std::span<const Names> names = files_of(Format::cifar10);
  const std::size_t train_files = names.size() - 1;
  check_counts(train, test, static_cast<int>(train_files));
  // File i takes the training images from first(i) to first(i + 1).
  const auto first = [&](std::size_t i) {
    return i * static_cast<std::size_t>(train) / train_files;
  };
  const auto count = [&](std::size_t i) {
    return i < train_files ? first(i + 1) - first(i) : static_cast<std::size_t>(test);
  };
  std::vector<PlannedFile> files;
  for (std::size_t i = 0; i < names.size(); ++i) {
    files.push_back({directory / names[i].front(), count(i) * (1 + cifar_image_bytes)});
  }
  write_once(directory, describe("cifar10", train, test, seed), files, [&] {
    const auto write = [](const fs::path& path, const Drawing& drawing, std::size_t from,
                          std::size_t images) {
      write_cifar(
          path,
          std::span(drawing.pixels).subspan(from * cifar_image_bytes, images * cifar_image_bytes),
          std::span(drawing.labels).subspan(from, images));
    };
    const Drawing training = draw(draw_coloured_digit, cifar_image_bytes, train, seed, "train");
    for (std::size_t i = 0; i < train_files; ++i) {
      write(files[i].path, training, first(i), count(i));
    }
    write(files.back().path, draw(draw_coloured_digit, cifar_image_bytes, test, seed, "test"), 0,
          count(train_files));
  });
}

bool is_generated(const fs::path& directory) {
  const json record = read_record(directory);
  if (record.is_null()) return false;
  if (!record["complete"].get<bool>()) {
    throw std::runtime_error(
        fmt::format("{}: generating these files was interrupted; expected \"complete\": true; "
                    "generate them again with the same seed and counts or remove the folder",
                    (directory / record_name).string()));
  }
  return true;
}

}  // namespace stepladder::data
