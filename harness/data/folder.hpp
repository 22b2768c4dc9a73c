// File names of the MNIST and CIFAR-10 formats.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepladder::data {

enum class Format { mnist, cifar10 };

// The names that one file may have, in the order in which they are tried.
using Names = std::vector<std::string>;

// MNIST: training images, training labels, test images, test labels.
// CIFAR-10: five training files, then the test file.
std::span<const Names> files_of(Format format);

// The path under the first name that exists in the folder.
std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const Names& names);

// Whether at least one file of the format exists.
bool holds(const std::filesystem::path& directory, Format format);

}  // namespace stepladder::data
