// Zero mean and unit variance of each channel.
#pragma once

#include <vector>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

struct Normalization {
  std::vector<float> mean;                // [channels]
  std::vector<float> standard_deviation;  // [channels], 1 where a channel is constant
};

// Over all pixels of all images, in double precision. Computed from the training set only.
Normalization normalization_of(const Dataset& dataset);

// Replaces every pixel by (pixel - mean) / standard deviation of its channel; pixels are then no
// longer in 0..1. Throws std::invalid_argument if the numbers of channels differ.
void normalize(Dataset& dataset, const Normalization& normalization);

// Normalises both sets with the mean and standard deviation of the training set.
void normalize(DatasetPair& pair);

}  // namespace stepladder::data
