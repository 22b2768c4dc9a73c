// What the modes that split a network have in common: its segments, and the weights of a part.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/execution/network.hpp"

namespace stepladder {

// Layers [first, end) of a network, as TrainableNetwork orders them.
struct Segment {
  std::size_t first, end;
};

// A segment begins at every layer with weights; with `by_channel` also at every layer that needs
// all channels of its input, local response normalization and the loss.
std::vector<Segment> segments_of(const network::NetworkDescription& ordered, bool by_channel);

// A segment of a network whose filters and neurons are divided among ranks (split_network.hpp).
struct SplitSegment {
  network::NetworkDescription part;  // on the rank that has most channels
  std::string layer;                 // its first one
  bool is_split = false;             // each rank has some channels; else each has all
  bool receives_own = false;         // each rank needs what it computed in the segment before
  double values = 0;                 // of the input of all ranks, per sample
};
std::vector<SplitSegment> split_segments(const network::NetworkDescription& network, int ranks);

// Divides consecutive segments, at least as many as `stages`, into stages whose longest is as short
// as possible; returns the first segment of each. `seconds` of each segment. O(stages segments^2).
std::vector<std::size_t> balanced_stages(const std::vector<double>& seconds, std::size_t stages);

// Parameters of a layer in a network and in a part of it. The part has the filters or neurons
// [from, from + count) of `all`.
struct ParameterSlice {
  ParameterRange whole, part;
  std::int64_t all, from, count;
  bool is_by_column;  // weights of a fully connected layer: [inputs, neurons]
};
// The slices of all layers of `part`, which has the names of `whole`; `from` is the first filter or
// neuron of the part in its only layer with weights, 0 for whole layers.
std::vector<ParameterSlice> slices_of(TrainableNetwork& whole, TrainableNetwork& part,
                                      std::int64_t from);

// Copies the slices between the parameters of two networks, and between their optimizers' states.
void take_slices(const std::vector<ParameterSlice>& slices, TrainableNetwork& whole,
                 TrainableNetwork& part);
void put_slices(const std::vector<ParameterSlice>& slices, TrainableNetwork& part,
                TrainableNetwork& whole);

}  // namespace stepladder
