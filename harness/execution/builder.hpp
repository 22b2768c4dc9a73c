// Allocates a network's tensors and chooses the plans of its operations.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/execution/options.hpp"
#include "harness/execution/parts.hpp"
#include "harness/network/description.hpp"
#include "harness/rungs/plan_store.hpp"
#include "harness/rungs/use_spec.hpp"

namespace stepladder {

// The plans of `use` work in `place`. Throws std::runtime_error if the variant chosen for a layer
// fails verification, NoVariant if none supports it.
std::unique_ptr<NetworkParts> build_network(const network::NetworkDescription& description,
                                            Place place, const UseSpec& use,
                                            const NetworkOptions& options, PlanStore& plans);

}  // namespace stepladder
