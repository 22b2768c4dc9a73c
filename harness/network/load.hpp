// Reads networks from JSON files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/network/description.hpp"

namespace stepladder::network {

// A network by its name in the file `builtin`, or from a file of the user's own, which holds one
// network, or an object with one network under its name. A built-in name wins over a file of that
// name. Optional layers are kept; without_optional() leaves them out. Shapes are inferred.
//
// Throws UnknownName for what is neither a built-in name nor looks like a file (exists, holds a
// '/' or ends in .json); std::runtime_error for a file that cannot be read or is malformed: file,
// line, place in the document, what was expected and what was found.
//
// The form of one network; a key in brackets may be left out:
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
//   [source]    where it comes from
//   [initial_weights]  {normal_std}; without it see initial_deviation()
// kernel, stride, pad and window are one number for both directions; or two, as kernel_h and
// kernel_w and so on.
NetworkDescription load_network(const std::string& name_or_file,
                                const std::filesystem::path& builtin);

// The names in `builtin`, in alphabetical order.
std::vector<std::string> network_names(const std::filesystem::path& builtin);

}  // namespace stepladder::network
