// IDX, the format of MNIST (http://yann.lecun.com/exdb/mnist): big-endian 32-bit header words,
// then unsigned bytes.
//
//   images: 0x00000803, count, height, width, pixels [count, height, width]
//   labels: 0x00000801, count, labels [count]
//
// Errors are std::runtime_error with file, byte offset, expected and found content.
#pragma once

#include <filesystem>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

// Reads one file of images and its file of labels, plain or gzip. One channel, ten classes,
// origin "mnist".
Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace stepladder::data
