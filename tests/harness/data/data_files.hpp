// Folders of small MNIST and CIFAR-10 files with random pixels.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "harness/data/cifar.hpp"
#include "harness/data/dataset.hpp"
#include "harness/data/load.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder::data {

using Bytes = std::vector<std::uint8_t>;

inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

inline Bytes some_labels(std::size_t count) {
  Bytes labels;
  while (labels.size() < count) {
    labels.push_back(static_cast<std::uint8_t>(labels.size() * 7 % 10));
  }
  return labels;
}

inline Bytes to_bytes(const std::vector<float>& images) {
  Bytes bytes;
  for (const float value : images) {
    bytes.push_back(static_cast<std::uint8_t>(std::lround(value * 255.0F)));
  }
  return bytes;
}

inline void append_word(std::string& bytes, std::size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
}

// pixels: [count, height, width]
inline void write_idx_images(const TemporaryFolder& folder, const std::string& name, int height,
                             int width, const Bytes& pixels) {
  std::string bytes;
  append_word(bytes, 0x803);
  append_word(bytes, pixels.size() / static_cast<std::size_t>(height * width));
  append_word(bytes, static_cast<std::size_t>(height));
  append_word(bytes, static_cast<std::size_t>(width));
  folder.write(name, bytes.append(pixels.begin(), pixels.end()));
}

inline void write_idx_labels(const TemporaryFolder& folder, const std::string& name,
                             const Bytes& labels) {
  std::string bytes;
  append_word(bytes, 0x801);
  append_word(bytes, labels.size());
  folder.write(name, bytes.append(labels.begin(), labels.end()));
}

// pixels: [count, 3, 32, 32]
inline void write_cifar(const TemporaryFolder& folder, const std::string& name, const Bytes& pixels,
                        const Bytes& labels) {
  std::string bytes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bytes += static_cast<char>(labels[i]);
    const auto image = pixels.begin() + static_cast<std::ptrdiff_t>(i) * cifar_image_bytes;
    bytes.append(image, image + cifar_image_bytes);
  }
  folder.write(name, bytes);
}

// The four MNIST files: 12 training and 7 test images of 5x4.
struct MnistFolder {
  TemporaryFolder folder;
  Bytes train_pixels = random_bytes(12 * 20, 1), test_pixels = random_bytes(7 * 20, 2);

  explicit MnistFolder(const std::string& separator = "-") {
    write_idx_images(folder, "train-images" + separator + "idx3-ubyte", 5, 4, train_pixels);
    write_idx_labels(folder, "train-labels" + separator + "idx1-ubyte", some_labels(12));
    write_idx_images(folder, "t10k-images" + separator + "idx3-ubyte", 5, 4, test_pixels);
    write_idx_labels(folder, "t10k-labels" + separator + "idx1-ubyte", some_labels(7));
  }

  void expect_whole() const {
    const DatasetPair pair = load(folder.path());
    for (const auto& [set, pixels] :
         {std::pair(&pair.train, &train_pixels), std::pair(&pair.test, &test_pixels)}) {
      EXPECT_EQ(set->channels, 1);
      EXPECT_EQ(set->height, 5);
      EXPECT_EQ(set->width, 4);
      EXPECT_EQ(set->classes, 10);
      EXPECT_EQ(set->origin, "mnist");
      EXPECT_EQ(set->labels, some_labels(pixels->size() / 20));
      EXPECT_EQ(to_bytes(set->images), *pixels);
    }
  }
};

// The six CIFAR-10 files: training files of 1 to 5 images and a test file of 3.
struct CifarFolder {
  TemporaryFolder folder;
  Bytes train_pixels, train_labels;
  Bytes test_pixels = random_bytes(3 * cifar_image_bytes, 9);

  CifarFolder() {
    for (std::size_t i = 1; i <= 5; ++i) {
      const Bytes pixels = random_bytes(i * cifar_image_bytes, i);
      const Bytes labels = some_labels(i);
      write_cifar(folder, "data_batch_" + std::to_string(i) + ".bin", pixels, labels);
      train_pixels.insert(train_pixels.end(), pixels.begin(), pixels.end());
      train_labels.insert(train_labels.end(), labels.begin(), labels.end());
    }
    write_cifar(folder, "test_batch.bin", test_pixels, some_labels(3));
  }
};

}  // namespace stepladder::data
