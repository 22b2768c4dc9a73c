// Generated images: a seed repeats them, classes are balanced, a network can learn them.
#include "harness/data/generated.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepladder::data {
namespace {

constexpr ImageFormat mnist_format{};
constexpr ImageFormat cifar_format{.channels = 3, .height = 32, .width = 32};

TEST(Generated, HasTheRequestedSizes) {
  for (const ImageFormat& format :
       {mnist_format, cifar_format,
        ImageFormat{.channels = 2, .height = 1, .width = 9, .classes = 3}}) {
    const DatasetPair pair = generate(format, 30, 20, 5);
    EXPECT_EQ(pair.train.count(), 30);
    EXPECT_EQ(pair.test.count(), 20);
    for (const Dataset* set : {&pair.train, &pair.test}) {
      EXPECT_EQ(set->channels, format.channels);
      EXPECT_EQ(set->height, format.height);
      EXPECT_EQ(set->width, format.width);
      EXPECT_EQ(set->classes, format.classes);
      EXPECT_EQ(set->origin, "generated");
      EXPECT_EQ(set->images.size(), set->labels.size() * set->image_size());
      EXPECT_TRUE(
          std::ranges::all_of(set->images, [](float pixel) { return pixel >= 0 && pixel <= 1; }));
    }
  }
}

TEST(Generated, OneSeedGivesTheSameImagesAndAnotherOthers) {
  const DatasetPair first = generate(mnist_format, 300, 40, 1);
  const DatasetPair again = generate(mnist_format, 300, 40, 1);
  const DatasetPair other = generate(mnist_format, 300, 40, 2);
  EXPECT_EQ(first.train.images, again.train.images);
  EXPECT_EQ(first.train.labels, again.train.labels);
  EXPECT_EQ(first.test.images, again.test.images);
  EXPECT_EQ(first.test.labels, again.test.labels);
  EXPECT_NE(first.train.images, other.train.images);
  EXPECT_NE(first.train.labels, other.train.labels);
  EXPECT_NE(first.test.images, other.test.images);
  EXPECT_NE(first.test.labels, other.test.labels);
}

std::uint32_t checksum(const DatasetPair& pair) {
  uLong crc = crc32(0, nullptr, 0);
  for (const Dataset* set : {&pair.train, &pair.test}) {
    std::vector<std::uint8_t> bytes = set->labels;
    for (const float pixel : set->images)
      bytes.push_back(static_cast<std::uint8_t>(std::lround(pixel * 255.0F)));
    crc = crc32(crc, bytes.data(), static_cast<uInt>(bytes.size()));
  }
  return static_cast<std::uint32_t>(crc);
}

// Machines, compilers and optimisation must not change the data.
TEST(Generated, TheImagesOfASeedAreFixed) {
  EXPECT_EQ(checksum(generate(mnist_format, 500, 100, 1)), 1176123091U);
  EXPECT_EQ(checksum(generate(cifar_format, 500, 100, 1)), 4286918891U);
}

TEST(Generated, ClassesAreBalancedAndInRandomOrder) {
  const DatasetPair pair = generate(mnist_format, 1005, 100, 3);
  for (const Dataset* set : {&pair.train, &pair.test}) {
    std::array<int, 10> counts{};
    for (const std::uint8_t label : set->labels) ++counts.at(label);
    const auto [least, most] = std::ranges::minmax_element(counts);
    EXPECT_LE(*most - *least, 1);
    int ascents = 0;
    for (std::size_t i = 1; i < set->labels.size(); ++i) {
      ascents += set->labels[i] == (set->labels[i - 1] + 1) % 10 ? 1 : 0;
    }
    EXPECT_LT(ascents, set->count() / 4);
  }
}

TEST(Generated, TrainingAndTestImagesAreAllDifferent) {
  const DatasetPair pair = generate(mnist_format, 500, 500, 4);
  std::set<std::vector<float>> images;
  for (const Dataset* set : {&pair.train, &pair.test}) {
    for (auto at = set->images.begin(); at != set->images.end(); at += 784) {
      images.emplace(at, at + 784);
    }
  }
  EXPECT_EQ(images.size(), 1000U);
}

// If the mean image of each class were a good classifier, accuracy would measure nothing; if the
// nearest training image were a poor one, there would be nothing to learn.
TEST(Generated, CanBeLearnedButNotByTheMeanOfAClass) {
  const DatasetPair pair = generate(mnist_format, 2000, 200, 6);
  constexpr std::size_t size = 784;
  const auto distance = [](const float* a, const float* b) {
    float sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  };
  std::vector<float> means(10 * size);
  for (std::size_t i = 0; i < pair.train.labels.size(); ++i)
    for (std::size_t j = 0; j < size; ++j)
      means[pair.train.labels[i] * size + j] += pair.train.images[i * size + j] / 200.0F;

  int by_mean = 0, by_neighbour = 0;
  for (std::size_t t = 0; t < pair.test.labels.size(); ++t) {
    const float* image = &pair.test.images[t * size];
    const auto nearest = [&](const std::vector<float>& candidates) {
      std::size_t best = 0;
      float least = distance(image, candidates.data());
      for (std::size_t i = 1; i < candidates.size() / size; ++i) {
        const float d = distance(image, &candidates[i * size]);
        if (d < least) least = d, best = i;
      }
      return best;
    };
    by_mean += nearest(means) == pair.test.labels[t] ? 1 : 0;
    by_neighbour += pair.train.labels[nearest(pair.train.images)] == pair.test.labels[t] ? 1 : 0;
  }
  EXPECT_LT(by_mean, 0.80 * 200);
  EXPECT_GT(by_neighbour, 0.85 * 200);
}

TEST(Generated, ImpossibleSizesAreRefused) {
  EXPECT_THROW(generate(mnist_format, 0, 10, 1), std::invalid_argument);
  EXPECT_THROW(generate(mnist_format, 10, -1, 1), std::invalid_argument);
  EXPECT_THROW(generate({.channels = 0}, 10, 10, 1), std::invalid_argument);
  EXPECT_THROW(generate({.height = 0}, 10, 10, 1), std::invalid_argument);
  EXPECT_THROW(generate({.classes = 257}, 10, 10, 1), std::invalid_argument);
}

}  // namespace
}  // namespace stepladder::data
