// Networks and data as step and train take them from the command line.
#pragma once

#include <string>

#include "harness/data/dataset.hpp"
#include "harness/network/description.hpp"
#include "harness/training/tuning.hpp"

namespace stepladder {

struct NetworkChoice {
  std::string name;        // built in, or a JSON file
  std::int64_t batch = 0;  // 0: the network's own
  bool without_optional = false;

  network::NetworkDescription load() const;  // throws UnknownName, std::runtime_error
};

// The choices in the file of --tuned, or none when that is empty. Throws std::runtime_error.
Tuning load_tuning(const std::string& file);

// The pictures of `directory`, or generated ones when it is empty; cropped to the network's input and
// normalised. Throws std::runtime_error when they do not fit the network.
data::DatasetPair load_data(const std::string& directory,
                            const network::NetworkDescription& network, std::uint64_t seed);

}  // namespace stepladder
