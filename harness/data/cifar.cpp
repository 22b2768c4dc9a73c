#include "harness/data/cifar.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "harness/io/file.hpp"

namespace stepladder::data {
namespace {

constexpr std::size_t image_bytes = cifar_image_bytes;
constexpr std::size_t record_bytes = 1 + image_bytes;
constexpr std::size_t most_records = 100'000;  // ten times those of a published file

}  // namespace

Dataset read_cifar(const std::vector<std::filesystem::path>& files) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  for (const std::filesystem::path& path : files) {
    InputFile file(path);
    std::vector<std::uint8_t> bytes;
    for (std::size_t record = 0;; ++record) {
      bytes.clear();
      file.read(record_bytes, bytes);
      const std::size_t at = record * record_bytes;
      if (bytes.empty() && record > 0) break;
      if (bytes.empty()) fail_at(path, 0, "a record of 3073 bytes", "an empty file");
      if (record == most_records)
        fail_at(path, at, fmt::format("at most {} records of 3073 bytes", most_records), "more");
      if (bytes.size() < record_bytes) {
        fail_at(path, at + bytes.size(), "a whole number of records of 3073 bytes",
                fmt::format("the end of the file {} bytes into record {}", bytes.size(), record));
      }
      if (bytes[0] >= cifar_classes) {
        fail_at(path, at, "a label from 0 to 9", fmt::format("{}", bytes[0]));
      }
      labels.push_back(bytes[0]);
      pixels.insert(pixels.end(), bytes.begin() + 1, bytes.end());
    }
  }
  return {cifar_channels,        cifar_side,        cifar_side, cifar_classes,
          unit_interval(pixels), std::move(labels), "cifar10"};
}

}  // namespace stepladder::data
