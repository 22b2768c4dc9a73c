#include "harness/data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/io/file.hpp"

namespace stepladder::data {
namespace {

constexpr std::uint32_t images_magic = 0x00000803;  // unsigned bytes, three dimensions
constexpr std::uint32_t labels_magic = 0x00000801;  // unsigned bytes, one dimension
constexpr int digit_classes = 10;
constexpr std::uint64_t largest_count = std::numeric_limits<std::int32_t>::max();

// One IDX file; its size is checked against its header. No more is read than the header asks for.
class IdxFile {
 public:
  IdxFile(const std::filesystem::path& path, std::uint32_t magic, std::size_t dimensions)
      : path_(path) {
    InputFile file(path);
    file.read(4 + 4 * dimensions, bytes_);
    const std::uint32_t found = word(0, "the magic number");
    if (found != magic) {
      fail(0, fmt::format("magic number {:#010x}", magic), fmt::format("{:#010x}", found));
    };
    for (std::size_t i = 0; i < dimensions; ++i) read_size(4 + 4 * i);
    const std::uint64_t expected = length();
    file.read(expected - bytes_.size() + 1, bytes_);
    check_length(expected);
  }

  std::uint32_t size(std::size_t dimension) const { return sizes_[dimension]; }
  std::size_t header_bytes() const { return 4 + 4 * sizes_.size(); }
  std::vector<std::uint8_t> take_payload() {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(header_bytes()));
    return std::move(bytes_);
  }

  [[noreturn]] void fail(std::size_t offset, const std::string& expected,
                         const std::string& found) const {
    fail_at(path_, offset, expected, found);
  }

 private:
  std::uint32_t word(std::size_t offset, const char* meaning) const {
    if (bytes_.size() < offset + 4) {
      fail(bytes_.size(), fmt::format("{} (4 bytes at offset {})", meaning, offset),
           "the end of the file");
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes_[offset + i];
    return value;
  }

  void read_size(std::size_t offset) {
    const std::uint32_t value = word(offset, "a dimension");
    if (value == 0 || value > largest_count) {
      fail(offset, fmt::format("a dimension from 1 to {}", largest_count),
           fmt::format("{}", value));
    }
    sizes_.push_back(value);
  }

  std::string dimensions() const { return fmt::format("{}", fmt::join(sizes_, " x ")); }

  std::uint64_t length() const {
    std::uint64_t expected = 1;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (expected > std::numeric_limits<std::uint64_t>::max() / sizes_[i] - header_bytes()) {
        fail(4 + 4 * i, "dimensions whose product is below 2^64", dimensions());
      }
      expected *= sizes_[i];
    }
    return expected + header_bytes();
  }

  void check_length(std::uint64_t expected) const {
    if (bytes_.size() < expected) {
      fail(bytes_.size(), fmt::format("{} bytes for dimensions {}", expected, dimensions()),
           "the end of the file");
    }
    if (bytes_.size() > expected) {
      fail(static_cast<std::size_t>(expected),
           fmt::format("the end of the file after dimensions {}", dimensions()), "more bytes");
    }
  }

  std::filesystem::path path_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> sizes_;
};

}  // namespace

Dataset read_idx(const std::filesystem::path& images_path,
                 const std::filesystem::path& labels_path) {
  IdxFile images(images_path, images_magic, 3);
  IdxFile labels(labels_path, labels_magic, 1);
  const std::uint32_t count = images.size(0);
  if (labels.size(0) != count) {
    labels.fail(4, fmt::format("{} labels, one for each image of {}", count, images_path.string()),
                fmt::format("{}", labels.size(0)));
  }

  Dataset dataset{1,
                  static_cast<int>(images.size(1)),
                  static_cast<int>(images.size(2)),
                  digit_classes,
                  {},
                  labels.take_payload(),
                  "mnist"};
  const auto wrong = std::find_if(dataset.labels.begin(), dataset.labels.end(),
                                  [](std::uint8_t label) { return label >= digit_classes; });
  if (wrong != dataset.labels.end()) {
    const auto index = static_cast<std::size_t>(wrong - dataset.labels.begin());
    labels.fail(labels.header_bytes() + index, "a label from 0 to 9", fmt::format("{}", *wrong));
  }
  dataset.images = unit_interval(images.take_payload());
  return dataset;
}

}  // namespace stepladder::data
