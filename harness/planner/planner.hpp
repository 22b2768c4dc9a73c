// Predicts the time of one update of the weights in a mode of training: from the times of the
// layers, measured on the spot, and from what messages cost between the ranks. Nothing is trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/training/forecast.hpp"

namespace stepladder {

// Collective, as the times of the layers are. `links`: of the cluster; not read for modes of one
// process but for their curves of copies and additions.
Prediction predict(const network::NetworkDescription& network, const UseSpec& use,
                   const Cluster& cluster, const Links& links, LayerTimes& times,
                   const ModeSpec& mode);

// Model parallelism: bytes that all ranks together send per batch between two layers.
struct ActivationExchange {
  std::string from, to;
  double forward = 0, backward = 0;
  // Forward, as Table 4 of the survey counts: grouped layers exchange nothing, and one rank has the
  // last layer.
  double survey = 0;
};
std::vector<ActivationExchange> activation_exchanges(const network::NetworkDescription& network,
                                                     int ranks);

}  // namespace stepladder
