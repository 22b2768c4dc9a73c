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
// fewer than `batch` images, is dropped. A batch follows from the seed and its number alone: any
// replica can draw any part of any batch.
class Batches {
 public:
  // Keeps a reference: the data set must outlive this object. Each image is shifted at random by up
  // to `shift` pixels vertically and horizontally, its edges repeated; a network that sees shifted
  // digits generalises better. Throws std::invalid_argument unless 1 <= batch <= dataset.count()
  // and shift >= 0.
  Batches(const Dataset& dataset, int batch, std::uint64_t seed, int shift = 0);
  Batches(Dataset&&, int, std::uint64_t, int = 0) = delete;

  int per_epoch() const { return dataset_.count() / batch_; }
  std::int64_t epoch_of(std::int64_t number) const { return number / per_epoch(); }  // from 0

  // Images `first` to first + labels.size() - 1 of batch `number` (from 0). Fills x: [images,
  // channels * height * width] and labels: [images]. Throws std::invalid_argument if x has another
  // size, or if the batch has no such images.
  void draw(std::int64_t number, int first, std::span<float> x, std::span<std::uint8_t> labels);

 private:
  void shuffle_for(std::int64_t epoch);

  const Dataset& dataset_;
  int batch_, shift_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;          // of order_
  std::vector<std::int32_t> order_;  // [count], image numbers
};

}  // namespace stepladder::data
