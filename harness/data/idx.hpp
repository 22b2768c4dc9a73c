// IDX, the format of MNIST (http://yann.lecun.com/exdb/mnist): big-endian 32-bit header words,
// then unsigned bytes.
//
//   images: 0x00000803, count, height, width, pixels [count, height, width]
//   labels: 0x00000801, count, labels [count]
//
// Errors are std::runtime_error: file, byte offset, what was expected and what was found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

inline constexpr int idx_images_header = 16;  // bytes
inline constexpr int idx_labels_header = 8;   // bytes

// Reads one file of images and its file of labels, plain or gzip. One channel, ten classes,
// origin "mnist".
Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

// Writes pixels [count, height, width]; count follows from the size, which must be a multiple of
// height * width (std::invalid_argument otherwise).
void write_idx_images(const std::filesystem::path& path, int height, int width,
                      std::span<const std::uint8_t> pixels);
void write_idx_labels(const std::filesystem::path& path, std::span<const std::uint8_t> labels);

}  // namespace stepladder::data
