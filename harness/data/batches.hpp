// Batches of a data set in random order, epoch after epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/data/dataset.hpp"
#include "harness/problem/random.hpp"

namespace stepladder::data {

// Every epoch shuffles all images and splits the order into batches. The remainder of an epoch,
// fewer than `batch` images, is dropped. The order depends on the seed alone.
class Batches {
 public:
  // Keeps a reference: the data set must outlive this object. Each image is shifted at random by up
  // to `shift` pixels vertically and horizontally, its edges repeated; a network that sees shifted
  // digits generalises better. Throws std::invalid_argument unless 1 <= batch <= dataset.count()
  // and shift >= 0.
  Batches(const Dataset& dataset, int batch, std::uint64_t seed, int shift = 0);
  Batches(Dataset&&, int, std::uint64_t, int = 0) = delete;

  int per_epoch() const { return dataset_.count() / batch_; }

  // Epoch of the batch that next() returned last, from 0.
  int epoch() const { return epoch_; }

  // Fills x: [batch, channels * height * width] and labels: [batch]. Throws std::invalid_argument
  // if a span has another size.
  void next(std::span<float> x, std::span<std::uint8_t> labels);

 private:
  void copy_shifted(const float* image, float* to);

  const Dataset& dataset_;
  int batch_, shift_;
  Random random_;
  std::vector<std::int32_t> order_;  // [count], image numbers in the order of this epoch
  std::size_t position_ = 0;         // in order_
  int epoch_ = 0;
};

}  // namespace stepladder::data
