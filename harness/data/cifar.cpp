#include "harness/data/cifar.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "harness/io/file.hpp"

namespace stepladder::data {
namespace {

constexpr std::size_t image_bytes = cifar_image_bytes;
constexpr std::size_t record_bytes = 1 + image_bytes;

}  // namespace

Dataset read_cifar(const std::vector<std::filesystem::path>& files) {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
  for (const std::filesystem::path& path : files) {
    const std::vector<std::uint8_t> bytes = read_bytes(path);
    if (bytes.empty()) fail_at(path, 0, "a record of 3073 bytes", "an empty file");
    if (bytes.size() % record_bytes != 0) {
      fail_at(path, bytes.size(), "a whole number of records of 3073 bytes",
              fmt::format("the end of the file {} bytes into record {}",
                          bytes.size() % record_bytes, bytes.size() / record_bytes));
    }
    for (std::size_t at = 0; at < bytes.size(); at += record_bytes) {
      if (bytes[at] >= cifar_classes) {
        fail_at(path, at, "a label from 0 to 9", fmt::format("{}", bytes[at]));
      }
      labels.push_back(bytes[at]);
      const auto image = bytes.begin() + static_cast<std::ptrdiff_t>(at) + 1;
      pixels.insert(pixels.end(), image, image + cifar_image_bytes);
    }
  }
  return {cifar_channels,        cifar_side,        cifar_side, cifar_classes,
          unit_interval(pixels), std::move(labels), "cifar10"};
}

}  // namespace stepladder::data
