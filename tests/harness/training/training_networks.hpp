// Networks for the tests of training: those of bench/networks.json with small batches, and random
// ones.
#pragma once

#include <string>

#include "harness/data/dataset.hpp"
#include "harness/execution/network.hpp"
#include "harness/io/file.hpp"
#include "harness/network/description.hpp"
#include "harness/network/load.hpp"
#include "harness/problem/random.hpp"

namespace stepladder {

inline network::NetworkDescription builtin_network(const std::string& name, std::int64_t batch) {
  network::NetworkDescription description =
      network::load_network(name, source_directory() / "bench" / "networks.json");
  description.batch = batch;
  return description;
}

// Random images and labels.
inline void fill_batch(TrainableNetwork& network, std::uint64_t seed) {
  Random random(seed, "batch");
  for (float& pixel : network.images()) pixel = random.uniform(-1.0F, 1.0F);
  for (std::uint8_t& label : network.labels())
    label = static_cast<std::uint8_t>(random.integer(0, network.description().classes - 1));
}

// Images of 1 x 6 x 6 in three classes, through one convolution and two fully connected layers,
// with an optional dropout.
network::NetworkDescription small_network(std::int64_t batch);

// Images of that size: noise with one bright row of three, which is the label.
data::Dataset bright_rows(int count, std::uint64_t seed);

// Random shapes, layers and settings; images of at most 3 x 12 x 12. average_pool has no rung on a
// device.
network::NetworkDescription random_network(std::uint64_t seed, bool with_average_pool = true);

}  // namespace stepladder
