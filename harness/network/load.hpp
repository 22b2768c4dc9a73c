// Reads networks from JSON files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/network/description.hpp"

namespace stepladder::network {

// A network by its name in the file `builtin`, or from a file, which contains one network, or an
// object with one network under its name. A built-in name takes precedence over a file of that
// name. Optional layers are included; without_optional() removes them. Shapes are inferred.
//
// Throws UnknownName if the argument is no built-in name and no file (it does not exist, has no '/'
// and does not end in .json); std::runtime_error if the file cannot be read or is malformed, with
// file, line, JSON pointer, the expected and the actual value.
//
// The keys of a network; those in brackets are optional:
//   input       {channels, height, width}
//   classes     10
//   batch       64
//   layers      objects of type, [name], [optional: false] and
//     fully_connected               outputs
//     convolution                   filters, kernel, [stride 1], [pad 0], [groups 1]
//     max_pool                      window, [stride = window], [pad 0]
//     dropout                       [rate 0.5]
//     local_response_normalization  [size 5], [alpha 1e-4], [beta 0.75], [k 2]
//     relu, sigmoid, tanh, softmax_cross_entropy (the last layer)
//   optimizer   type, learning_rate, [decay with decay_every_samples], [weight_decay],
//               [weight_decay_on: "all", "fully_connected" or "convolution"], and by type
//               momentum: [momentum]; adadelta, rmsprop: [rho], [epsilon]; adagrad: [epsilon];
//               adam: [beta1], [beta2], [epsilon]; defaults at OptimizerDescription
//   [source]    the publication that describes it
//   [initial_weights]  {normal_std}; see initial_deviation() for the default
// kernel, stride, pad and window are one number for both directions, or two numbers: kernel_h and
// kernel_w and so on.
NetworkDescription load_network(const std::string& name_or_file,
                                const std::filesystem::path& builtin);

// The names in `builtin`, in alphabetical order.
std::vector<std::string> network_names(const std::filesystem::path& builtin);

}  // namespace stepladder::network
