// Reads a folder of data, whichever format it holds.
#pragma once

#include <filesystem>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

// MNIST's IDX files (both spellings: train-images-idx3-ubyte and train-images.idx3-ubyte) or
// CIFAR-10's binary files, each plain or gzip; of several the first in that order. The origin is
// "generated" if generated.json says so. Throws std::runtime_error if the folder holds neither
// format (listing the names it looked for), both, or not all files of one; if a file is malformed;
// or if training and test images differ in size.
DatasetPair load(const std::filesystem::path& directory);

}  // namespace stepladder::data
