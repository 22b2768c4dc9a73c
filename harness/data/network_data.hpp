// The images that a network trains on: a folder of files, real digits by default, or generated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/data/dataset.hpp"
#include "harness/network/description.hpp"

namespace stepladder::data {

// data/mnist of the project, which `make data` fills with 5,000 real digits.
std::filesystem::path digits_directory();

// Whether the network's input is 1x28x28 with 10 classes.
bool takes_digits(const network::NetworkDescription& network);

// Images cropped to the network's input, normalised with the mean and standard deviation of the
// training set. `source` is a folder (see load()), "generated", or empty: then a network that takes
// digits gets those in `digits` if that folder exists, and any other network generated images. The
// origin is "mnist", "cifar10", "mnist-5k" (the 5,000 digits, by default) or "generated". Throws
// std::runtime_error if the folder cannot be loaded or its images do not fit the network.
DatasetPair data_for(const network::NetworkDescription& network, const std::string& source,
                     std::uint64_t seed, const std::filesystem::path& digits = digits_directory());

}  // namespace stepladder::data
