// The data of a network: by default real digits if they exist and fit, otherwise generated images.
#include "harness/data/network_data.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/error_messages.hpp"
#include "tests/harness/data/data_files.hpp"

namespace stepladder::data {
namespace {

network::NetworkDescription network_of(network::Shape input, std::int64_t classes = 10) {
  network::NetworkDescription network;
  network.name = "example";
  network.input = input;
  network.classes = classes;
  return network;
}

const network::NetworkDescription for_digits = network_of({1, 28, 28});
const network::NetworkDescription for_colours = network_of({3, 24, 24});

// Black digits of 28x28 under the names of MNIST.
struct Digits {
  TemporaryFolder folder;

  Digits(std::size_t train, std::size_t test) {
    write("train", train);
    write("t10k", test);
  }
  void write(const std::string& part, std::size_t count) {
    write_idx_images(folder, part + "-images-idx3-ubyte", 28, 28, Bytes(count * 784));
    write_idx_labels(folder, part + "-labels-idx1-ubyte", some_labels(count));
  }
};

TEST(NetworkData, TheDefaultIsTheFolderOfRealDigits) {
  const Digits digits(4000, 1000);
  const DatasetPair pair = data_for(for_digits, "", 1, digits.folder.path());
  EXPECT_EQ(pair.train.count(), 4000);
  EXPECT_EQ(pair.train.origin, "mnist-5k");
  EXPECT_EQ(pair.test.origin, "mnist-5k");
}

TEST(NetworkData, OtherDigitsInTheDefaultFolderAreNotCalledThe5000) {
  const Digits digits(30, 20);
  EXPECT_EQ(data_for(for_digits, "", 1, digits.folder.path()).train.origin, "mnist");
}

TEST(NetworkData, TheDefaultIsGeneratedWithoutThatFolder) {
  const TemporaryFolder folder;
  const DatasetPair pair = data_for(for_digits, "", 1, folder / "absent");
  EXPECT_EQ(pair.train.origin, "generated");
  EXPECT_EQ(pair.train.count(), 8000);
  EXPECT_EQ(pair.test.count(), 2000);
  EXPECT_NE(pair.train.images, data_for(for_digits, "", 2, folder / "absent").train.images);
}

TEST(NetworkData, AnIncompleteDefaultFolderIsAnError) {
  const Digits digits(30, 20);
  std::filesystem::remove(digits.folder / "t10k-labels-idx1-ubyte");
  EXPECT_TRUE(says(error_of([&] { data_for(for_digits, "", 1, digits.folder.path()); }),
                   {digits.folder.path().string(), "t10k-labels-idx1-ubyte"}));
}

TEST(NetworkData, GeneratedImagesCanBeAskedFor) {
  const Digits digits(30, 20);
  EXPECT_EQ(data_for(for_digits, "generated", 1, digits.folder.path()).test.origin, "generated");
}

TEST(NetworkData, NetworksThatTakeNoDigitsGetGeneratedImagesOfTheirSize) {
  const Digits digits(30, 20);
  for (const network::NetworkDescription& network :
       {for_colours, network_of({1, 24, 24}), network_of({1, 28, 28}, 7)}) {
    EXPECT_FALSE(takes_digits(network));
    const DatasetPair pair = data_for(network, "", 1, digits.folder.path());
    EXPECT_EQ(pair.train.origin, "generated");
    EXPECT_EQ(pair.train.channels, network.input.channels);
    EXPECT_EQ(pair.train.height, network.input.height);
    EXPECT_EQ(pair.train.width, network.input.width);
    EXPECT_EQ(pair.train.classes, network.classes);
  }
}

TEST(NetworkData, ANamedFolderIsTakenWhateverTheDefault) {
  const Digits digits(30, 20), others(3, 2);
  const DatasetPair pair =
      data_for(for_digits, others.folder.path().string(), 1, digits.folder.path());
  EXPECT_EQ(pair.train.count(), 3);
  EXPECT_EQ(pair.train.origin, "mnist");
}

TEST(NetworkData, ImagesAreCroppedAndNormalised) {
  const CifarFolder cifar;
  const DatasetPair pair = data_for(for_colours, cifar.folder.path().string(), 1);
  EXPECT_EQ(pair.train.origin, "cifar10");
  EXPECT_EQ(pair.test.height, 24);
  EXPECT_EQ(pair.test.width, 24);
  EXPECT_LT(*std::ranges::min_element(pair.train.images), -1);
}

TEST(NetworkData, AFolderThatDoesNotFitIsAnError) {
  const MnistFolder mnist;
  EXPECT_TRUE(says(error_of([&] { data_for(for_digits, mnist.folder.path().string(), 1); }),
                   {"example needs 10 classes of 1x28x28", "the data has 10 of 1x5x4"}));
}

TEST(NetworkData, TooManyClassesOrTooLargeImagesAreNotGenerated) {
  for (const network::NetworkDescription& network :
       {network_of({3, 8, 8}, 1000), network_of({3, 227, 227})})
    EXPECT_TRUE(says(error_of([&] { data_for(network, "", 1); }),
                     {"example: no data can be generated for", "--data"}));
}

}  // namespace
}  // namespace stepladder::data
