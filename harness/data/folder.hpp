// The names under which a folder holds the files of each format.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stepladder::data {

enum class Format { mnist, cifar10 };

// The names one file may have, in the order in which they are looked for.
using Names = std::vector<std::string>;

// MNIST: training images, training labels, test images, test labels.
// CIFAR-10: five training files, then the test file.
std::span<const Names> files_of(Format format);

// The first name that the folder holds.
std::optional<std::filesystem::path> find_file(const std::filesystem::path& directory,
                                               const Names& names);

// Whether at least one file of the format is there.
bool holds(const std::filesystem::path& directory, Format format);

}  // namespace stepladder::data
