// Reads a folder of MNIST or CIFAR-10 files.
#pragma once

#include <filesystem>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

// MNIST's IDX files (both spellings: train-images-idx3-ubyte and train-images.idx3-ubyte) or
// CIFAR-10's binary files, each plain or gzip; of several names the first in that order is read.
// Throws std::runtime_error if the folder holds neither format (listing the names), both, or not
// all files of one; if a file is malformed; or if training and test images differ in size.
DatasetPair load(const std::filesystem::path& directory);

}  // namespace stepladder::data
