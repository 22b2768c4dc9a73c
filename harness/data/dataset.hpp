// Labelled images, as all readers return them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepladder::data {

struct Dataset {
  int channels = 0;
  int height = 0;
  int width = 0;
  int classes = 0;
  std::vector<float> images;         // [count, channels, height, width], 0..1 as read
  std::vector<std::uint8_t> labels;  // [count], 0..classes-1
  std::string origin;                // "mnist", "cifar10", "mnist-5k" or "generated"

  int count() const { return static_cast<int>(labels.size()); }

  // Floats of one image: channels * height * width.
  std::size_t image_size() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
};

struct DatasetPair {
  Dataset train;
  Dataset test;
};

// Of all images and labels, 16 hexadecimal digits.
std::string hash_of(const DatasetPair& data);

// The centre of every image; if the margin is odd, one more row is removed at the bottom and one
// more column at the right. Throws std::invalid_argument unless 1 <= height <= dataset.height and
// 1 <= width <= dataset.width.
Dataset crop(const Dataset& dataset, int height, int width);

// Turns bytes 0..255 into floats 0..1 (byte / 255).
std::vector<float> unit_interval(const std::vector<std::uint8_t>& bytes);

}  // namespace stepladder::data
