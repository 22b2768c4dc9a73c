// Networks and tuning choices as step, train and tune take them from the command line.
#pragma once

#include <string>

#include "harness/network/description.hpp"
#include "harness/training/tuning.hpp"

namespace stepladder {

struct NetworkChoice {
  std::string name;          // built in, or a JSON file
  std::int64_t batch = 0;    // 0: the network's own
  std::string optimizer{};   // a name of sgd_update; empty: the network's own
  double learning_rate = 0;  // 0: that of the optimizer
  bool without_optional = false;

  network::NetworkDescription load() const;  // throws UnknownName, std::runtime_error
  // The optimizer of the network loaded, as train.csv names it.
  std::string optimizer_text(const network::NetworkDescription& network) const;
};

// The choices in the file of --tuned, or none when that is empty. Throws std::runtime_error.
Tuning load_tuning(const std::string& file);

}  // namespace stepladder
