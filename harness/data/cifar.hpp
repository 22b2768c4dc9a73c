// CIFAR-10, binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of 3073 bytes,
// a label 0..9, then pixels [3, 32, 32] in the order red, green, blue.
#pragma once

#include <filesystem>
#include <vector>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

inline constexpr int cifar_channels = 3;
inline constexpr int cifar_side = 32;
inline constexpr int cifar_classes = 10;
inline constexpr int cifar_image_bytes = cifar_channels * cifar_side * cifar_side;

// Reads the files, plain or gzip, into one dataset with origin "cifar10". Errors are
// std::runtime_error with file, byte offset, expected and found content.
Dataset read_cifar(const std::vector<std::filesystem::path>& files);

}  // namespace stepladder::data
