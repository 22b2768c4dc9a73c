// Reads networks from JSON files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/network/description.hpp"

namespace stepladder::network {

// A network by its name in the file `builtin`, or from a file, which contains one network, or an
// object with one network under its name; a built-in name takes precedence. Optional layers are
// included. Shapes are inferred. Throws UnknownName if the argument is no built-in name and no file
// (it does not exist, has no '/' and does not end in .json); std::runtime_error if the file cannot
// be read or is malformed, with file, line, JSON pointer, the expected and the actual value.
//
// Keys (those in brackets are optional; description.hpp has types and defaults):
//   input {channels, height, width}, classes, batch, [source], [initial_weights {normal_std}]
//   layers      objects of type, [name], [optional], and the members of the type's struct; in place
//               of kernel_h and kernel_w, kernel is one number for both; so are stride, pad, window
//   optimizer   type, learning_rate, [decay with decay_every_samples], [weight_decay],
//               [weight_decay_on: "all", "fully_connected" or "convolution"], and the members of
//               OptimizerDescription that the type uses
NetworkDescription load_network(const std::string& name_or_file,
                                const std::filesystem::path& builtin);

// The names in `builtin`, in alphabetical order.
std::vector<std::string> network_names(const std::filesystem::path& builtin);

}  // namespace stepladder::network
