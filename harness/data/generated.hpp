// Generated images of any size, for networks that have no real data at hand. Each class has a few
// random smooth templates; an image is one of them, shifted, with a contrast of its own and noise
// on every pixel. A small network learns them; the mean image of a class is a poor classifier.
#pragma once

#include <cstdint>

#include "harness/data/dataset.hpp"

namespace stepladder::data {

struct ImageFormat {
  int channels = 1, height = 28, width = 28;
  int classes = 10;
};

// `train` and `test` images with origin "generated". Class sizes differ by at most one and the
// order is random. All arithmetic is in integers: a seed gives the same images on every machine.
// Throws std::invalid_argument unless all sizes are positive and there are at most 256 classes.
DatasetPair generate(const ImageFormat& format, int train, int test, std::uint64_t seed);

}  // namespace stepladder::data
