// Batches of a data set in random order, epoch after epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/data/dataset.hpp"
#include "harness/problem/random.hpp"

namespace stepladder::data {

// Every epoch shuffles all images anew and cuts the order into batches; what is left over at the
// end of an epoch, fewer than `batch` images, is dropped. The order follows from the seed alone.
class Batches {
 public:
  // Keeps a reference: the data set must outlive this object. Each image is moved at random by up to
  // `shift` pixels up or down and left or right, its edges repeated; where digits stand is not what they
  // mean, and a network that sees them elsewhere each epoch generalises better. Throws
  // std::invalid_argument unless 1 <= batch <= dataset.count() and shift >= 0.
  Batches(const Dataset& dataset, int batch, std::uint64_t seed, int shift = 0);
  Batches(Dataset&&, int, std::uint64_t, int = 0) = delete;

  int per_epoch() const { return dataset_.count() / batch_; }

  // Epoch of the batch that next() gave last, from 0.
  int epoch() const { return epoch_; }

  // Fills x: [batch, channels * height * width] and labels: [batch]. Throws std::invalid_argument
  // if a span has another size.
  void next(std::span<float> x, std::span<std::uint8_t> labels);

 private:
  void copy_shifted(const float* image, float* to);

  const Dataset& dataset_;
  int batch_, shift_;
  Random random_;
  std::vector<std::int32_t> order_;  // [count], the epoch's order of image numbers
  std::size_t position_ = 0;         // in order_
  int epoch_ = 0;
};

}  // namespace stepladder::data
