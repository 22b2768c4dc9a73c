// Data files: sound files are read, damaged ones are an error that names file and offset. Batches,
// cropping and normalisation.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/data/batches.hpp"
#include "harness/data/cifar.hpp"
#include "harness/data/idx.hpp"
#include "harness/data/load.hpp"
#include "harness/data/normalization.hpp"
#include "harness/io/file.hpp"
#include "harness/io/glob.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/data/data_files.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder::data {
namespace {

namespace fs = std::filesystem;

// Replaces a plain file by a packed one. Returns its path, which ends in ".gz".
fs::path gzip(const fs::path& plain) {
  const std::string content = content_of(plain);
  const fs::path packed = plain.string() + ".gz";
  gzFile file = gzopen(packed.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            static_cast<int>(content.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  fs::remove(plain);
  return packed;
}

std::vector<fs::path> files_in(const TemporaryFolder& folder) {
  return {fs::directory_iterator(folder.path()), {}};
}

// The error of loading the folder of MnistFolder or CifarFolder.
template <class Folder>
std::string load_error(const Folder& data) {
  return error_of([&] { load(data.folder.path()); });
}

TEST(Idx, ReadsPlainFilesUnderBothSpellings) {
  for (const char* separator : {"-", "."}) MnistFolder(separator).expect_whole();
}

TEST(Idx, ReadsGzipUnderBothSpellings) {
  for (const char* separator : {"-", "."}) {
    const MnistFolder mnist(separator);
    for (const fs::path& path : files_in(mnist.folder)) gzip(path);
    mnist.expect_whole();
  }
}

TEST(Idx, SomeFilesMayBeGzipAndOthersPlain) {
  const MnistFolder mnist;
  gzip(mnist.folder / "train-images-idx3-ubyte");
  mnist.expect_whole();
}

TEST(Idx, TheHeaderIsBigEndianAsPublished) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const Bytes& bytes) {
    return folder.write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  const Dataset dataset =
      read_idx(write("images", {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6}),
               write("labels", {0, 0, 8, 1, 0, 0, 0, 1, 7}));
  EXPECT_EQ(dataset.height, 2);
  EXPECT_EQ(dataset.width, 3);
  EXPECT_EQ(to_bytes(dataset.images), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(dataset.labels, Bytes{7});
}

TEST(Idx, EveryTruncationIsAnErrorThatNamesFileAndOffset) {
  const MnistFolder mnist;
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const std::string whole = content_of(mnist.folder / name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      mnist.folder.write(name, whole.substr(0, length));
      EXPECT_TRUE(says(load_error(mnist), {name, "byte offset " + std::to_string(length),
                                           "expected", "found the end of the file"}));
    }
    mnist.folder.write(name, whole);
  }
  mnist.expect_whole();
}

TEST(Idx, EveryTruncationOfAGzipFileIsAnError) {
  const MnistFolder mnist;
  const std::string whole = content_of(gzip(mnist.folder / "train-images-idx3-ubyte"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    mnist.folder.write("train-images-idx3-ubyte.gz", whole.substr(0, length));
    EXPECT_TRUE(
        says(load_error(mnist), {"train-images-idx3-ubyte.gz: byte offset ", "expected", "found"}))
        << length;
  }
}

TEST(Idx, DamageIsAnErrorThatNamesFileOffsetExpectedAndFound) {
  struct Damage {
    const char* file;
    std::size_t offset;
    std::string bytes;    // overwrite, or append at the end
    const char* message;  // a glob
  };
  const char *train = "train-images-idx3-ubyte", *test = "t10k-labels-idx1-ubyte";
  const Damage damages[] = {
      {train, 3, "\x01", "0: expected magic number 0x00000803, found 0x00000801"},
      {test, 2, "\x0d", "0: expected magic number 0x00000801, found 0x00000d01"},
      {train, 4, std::string(4, '\0'), "4: expected a dimension from 1*found 0"},
      {train, 12, std::string(4, '\0'), "12: expected a dimension from 1*found 0"},
      {train, 8, "\xff\xff\xff\xff", "8: expected a dimension from 1*found 4294967295"},
      {train, 4, "\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff",
       "12:*product is below 2^64*2147483647 x 2147483647"},
      {train, 8, "\x7f\xff\xff\xff", "256:*12 x 2147483647 x 4*found the end of the file"},
      {train, 16 + 12 * 20, "abc", "256: expected the end of the file*found more bytes"},
      {test, 8 + 4, "\x0a", "12: expected a label from 0 to 9, found 10"}};
  for (const Damage& damage : damages) {
    const MnistFolder mnist;
    std::string content = content_of(mnist.folder / damage.file);
    content.resize(std::max(content.size(), damage.offset + damage.bytes.size()));
    content.replace(damage.offset, damage.bytes.size(), damage.bytes);
    mnist.folder.write(damage.file, content);
    const std::string found = load_error(mnist);
    EXPECT_TRUE(
        glob_matches(fmt::format("*{}: byte offset {}*", damage.file, damage.message), found))
        << "expected " << damage.message << "\nfound " << found;
  }
}

// Both files of gzip end before their text does, which shows only where all of it is read.
TEST(Idx, GzipIsReadOnlyAsFarAsTheHeaderAsks) {
  const MnistFolder mnist;
  const fs::path plain = mnist.folder / "train-images-idx3-ubyte";
  mnist.folder.write("train-images-idx3-ubyte", content_of(plain) + std::string(10'000'000, '\0'));
  const fs::path packed = gzip(plain);
  fs::resize_file(packed, fs::file_size(packed) - 100);
  EXPECT_TRUE(says(load_error(mnist),
                   {"byte offset 256: expected the end of the file after dimensions 12 x 5 x 4, "
                    "found more bytes"}));
}

TEST(Cifar, GzipIsReadOnlyUpToTheFirstDamage) {
  const CifarFolder cifar;
  const fs::path packed =
      gzip(cifar.folder.write("test_batch.bin", std::string(10'000'000, '\x0a')));
  fs::resize_file(packed, fs::file_size(packed) - 100);
  EXPECT_TRUE(says(load_error(cifar),
                   {"test_batch.bin.gz: byte offset 0: expected a label from 0 to 9, found 10"}));
}

TEST(TextFiles, GzipOfMoreThanAQuarterOfAGigabyteIsRefused) {
  const TemporaryFolder folder;
  gzFile file = gzopen((folder / "a.csv.gz").c_str(), "wb1");
  const std::string part(1U << 20U, '\n');
  for (int i = 0; i < 257; ++i)
    ASSERT_EQ(gzwrite(file, part.data(), 1U << 20U), static_cast<int>(part.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
  EXPECT_TRUE(says(error_of([&] { read_bytes(folder / "a.csv.gz"); }),
                   {"a.csv.gz: byte offset 268435456: expected the end of the text"}));
}

TEST(Idx, DifferentCountsOfImagesAndLabelsAreAnError) {
  const MnistFolder mnist;
  write_idx_labels(mnist.folder, "train-labels-idx1-ubyte", some_labels(11));
  EXPECT_TRUE(says(load_error(mnist), {"train-labels-idx1-ubyte: byte offset 4",
                                       "expected 12 labels, one for each image of",
                                       "train-images-idx3-ubyte", "found 11"}));
}

TEST(Idx, TestImagesOfAnotherSizeThanTheTrainingImagesAreAnError) {
  const MnistFolder mnist;
  write_idx_images(mnist.folder, "t10k-images-idx3-ubyte", 4, 5, mnist.test_pixels);
  EXPECT_TRUE(says(load_error(mnist), {"t10k-images-idx3-ubyte: byte offset 8", "5x4", "4x5"}));
}

TEST(Cifar, ReadsTheTrainingFilesInOrderPlainAndGzip) {
  const CifarFolder cifar;
  gzip(cifar.folder / "data_batch_3.bin");
  const DatasetPair pair = load(cifar.folder.path());
  EXPECT_EQ(pair.train.count(), 15);
  EXPECT_EQ(pair.train.channels, 3);
  EXPECT_EQ(pair.train.height, 32);
  EXPECT_EQ(pair.train.width, 32);
  EXPECT_EQ(pair.train.origin, "cifar10");
  EXPECT_EQ(pair.train.labels, cifar.train_labels);
  EXPECT_EQ(to_bytes(pair.train.images), cifar.train_pixels);
  EXPECT_EQ(pair.test.labels, some_labels(3));
  EXPECT_EQ(to_bytes(pair.test.images), cifar.test_pixels);
}

TEST(Cifar, PartOfARecordIsAnErrorThatNamesFileAndOffset) {
  const CifarFolder cifar;
  const std::string whole = content_of(cifar.folder / "data_batch_2.bin");
  for (const std::size_t length : {1, 3072, 3074, 6145}) {
    cifar.folder.write("data_batch_2.bin", whole.substr(0, length));
    EXPECT_TRUE(says(load_error(cifar), {"data_batch_2.bin: byte offset " + std::to_string(length),
                                         "expected a whole number of records of 3073 bytes"}));
  }
  cifar.folder.write("data_batch_2.bin", "");
  EXPECT_TRUE(says(load_error(cifar), {"found an empty file"}));
}

TEST(Cifar, ALabelOutOfRangeIsAnErrorThatNamesFileAndOffset) {
  const CifarFolder cifar;
  std::string content = content_of(cifar.folder / "data_batch_2.bin");
  content[3073] = 10;
  cifar.folder.write("data_batch_2.bin", content);
  EXPECT_TRUE(says(load_error(cifar), {"data_batch_2.bin: byte offset 3073",
                                       "expected a label from 0 to 9, found 10"}));
}

TEST(Load, AFolderWithoutDataListsTheNamesItLookedFor) {
  const TemporaryFolder folder;
  EXPECT_TRUE(says(error_of([&] { load(folder.path()); }),
                   {folder.path().string(), "train-images-idx3-ubyte", "train-images.idx3-ubyte.gz",
                    "t10k-labels.idx1-ubyte", "data_batch_5.bin.gz", "test_batch.bin"}));
  EXPECT_TRUE(says(error_of([&] { load(folder / "absent"); }), {"absent"}));
}

TEST(Load, AMissingFileIsNamedUnderAllItsNames) {
  const MnistFolder mnist;
  fs::remove(mnist.folder / "t10k-labels-idx1-ubyte");
  EXPECT_TRUE(says(load_error(mnist), {"t10k-labels-idx1-ubyte or t10k-labels.idx1-ubyte"}));
  const CifarFolder cifar;
  fs::remove(cifar.folder / "data_batch_4.bin");
  EXPECT_TRUE(says(load_error(cifar), {"data_batch_4.bin"}));
}

TEST(Load, AFolderWithBothFormatsIsAnError) {
  const MnistFolder mnist;
  mnist.folder.write("test_batch.bin", "");
  EXPECT_TRUE(says(load_error(mnist), {"both MNIST and CIFAR-10"}));
}

TEST(Load, ADirectoryInPlaceOfAFileIsAnError) {
  const MnistFolder mnist;
  fs::remove(mnist.folder / "train-images-idx3-ubyte");
  fs::create_directory(mnist.folder / "train-images-idx3-ubyte");
  EXPECT_TRUE(says(load_error(mnist), {"train-images-idx3-ubyte: cannot"}));
}

// Truncated, with flipped bits, with surplus bytes, or all of these.
std::string damaged_at_random(std::string content, std::mt19937_64& random) {
  if (random() % 2 == 0) content.resize(random() % (content.size() + 1));
  for (auto flips = random() % 4; flips > 0 && !content.empty(); --flips) {
    // Half of the flips are in the header, where they do the most harm.
    const std::size_t range =
        random() % 2 == 0 ? std::min<std::size_t>(content.size(), 20) : content.size();
    content[random() % range] ^= static_cast<char>(1 << random() % 8);
  }
  if (random() % 8 == 0) content += "surplus";
  return content;
}

void expect_sound_or_runtime_error(const fs::path& folder) {
  try {
    const DatasetPair pair = load(folder);
    for (const Dataset* set : {&pair.train, &pair.test}) {
      ASSERT_EQ(set->images.size(), set->labels.size() * set->image_size());
      ASSERT_TRUE(std::ranges::all_of(set->labels, [](std::uint8_t label) { return label < 10; }));
    }
  } catch (const std::runtime_error& error) {
    ASSERT_TRUE(says(error.what(), {folder.string()}));
  }
}

TEST(DamagedFiles, LoadAsSoundDataOrAreAnError) {
  std::mt19937_64 random(20240607);
  const auto damage = [&](const TemporaryFolder& folder, int rounds) {
    for (const fs::path& file : files_in(folder)) {
      const std::string whole = content_of(file);
      for (int round = 0; round < rounds; ++round) {
        folder.write(file.filename(), damaged_at_random(whole, random));
        expect_sound_or_runtime_error(folder.path());
      }
      folder.write(file.filename(), whole);
    }
  };
  const MnistFolder plain;
  damage(plain.folder, 400);
  const MnistFolder packed;
  for (const fs::path& path : files_in(packed.folder)) gzip(path);
  damage(packed.folder, 400);
  const CifarFolder cifar;
  damage(cifar.folder, 50);
}

TEST(ReplaceFile, AFailureLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "target");
  fs::create_directory(folder / "target/inside");
  EXPECT_TRUE(
      says(error_of([&] { replace_file(folder / "target", "x"); }), {"target", "cannot write"}));
  EXPECT_TRUE(fs::exists(folder / "target/inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_TRUE(
      says(error_of([&] { replace_file(folder / "no/such/folder", "x"); }), {"cannot write"}));
}

TEST(Crop, KeepsTheCentre) {
  // Pixel (y, x) of plane p of image i holds 1000 i + 100 p + 10 y + x.
  Dataset dataset{2, 6, 7, 10, {}, {3, 1}, "cifar10"};
  for (int i = 0; i < 2; ++i)
    for (int p = 0; p < 2; ++p)
      for (int y = 0; y < 6; ++y)
        for (int x = 0; x < 7; ++x)
          dataset.images.push_back(static_cast<float>(1000 * i + 100 * p + 10 * y + x));
  const Dataset cropped = crop(dataset, 2, 4);
  EXPECT_EQ(cropped.labels, dataset.labels);
  EXPECT_EQ(cropped.origin, "cifar10");
  std::vector<float> expected;
  for (int i = 0; i < 2; ++i)
    for (int p = 0; p < 2; ++p)
      for (int y = 2; y < 4; ++y)
        for (int x = 1; x < 5; ++x)
          expected.push_back(static_cast<float>(1000 * i + 100 * p + 10 * y + x));
  EXPECT_EQ(cropped.images, expected);
  EXPECT_EQ(crop(dataset, 6, 7).images, dataset.images);
  EXPECT_THROW(crop(dataset, 7, 7), std::invalid_argument);
  EXPECT_THROW(crop(dataset, 0, 4), std::invalid_argument);
}

// Image i of one channel and four pixels holds i, i + 0.25, i + 0.5, i + 0.75; its label is i.
Dataset counted(int count) {
  Dataset dataset{1, 2, 2, 256, {}, {}, "generated"};
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < 4; ++j) dataset.images.push_back(static_cast<float>(i) + 0.25F * j);
    dataset.labels.push_back(static_cast<std::uint8_t>(i));
  }
  return dataset;
}

TEST(Batches, AnEpochGivesEveryImageOnceExceptTheRemainder) {
  const Dataset dataset = counted(23);
  Batches batches(dataset, 5, 1);
  EXPECT_EQ(batches.per_epoch(), 4);
  std::vector<float> x(5 * 4);
  Bytes labels(5);
  std::set<std::vector<int>> orders;
  std::set<int> seen_ever;
  for (int epoch = 0; epoch < 12; ++epoch) {
    std::vector<int> order;
    for (int batch = 0; batch < 4; ++batch) {
      batches.draw(4 * epoch + batch, 0, x, labels);
      EXPECT_EQ(batches.epoch_of(4 * epoch + batch), epoch);
      for (std::size_t i = 0; i < 5; ++i) {
        order.push_back(labels[i]);
        for (std::size_t j = 0; j < 4; ++j) {
          EXPECT_EQ(x[i * 4 + j], static_cast<float>(labels[i]) + 0.25F * static_cast<float>(j));
        }
      }
    }
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 20U);
    seen_ever.insert(order.begin(), order.end());
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 12U) << "every epoch has its own order";
  EXPECT_EQ(seen_ever.size(), 23U) << "an image that one epoch drops appears in another";
}

TEST(Batches, TheOrderFollowsFromTheSeed) {
  const Dataset dataset = counted(50);
  const auto first_labels = [&](std::uint64_t seed) {
    Batches batches(dataset, 50, seed);
    std::vector<float> x(200);
    Bytes labels(50);
    batches.draw(0, 0, x, labels);
    return labels;
  };
  EXPECT_EQ(first_labels(1), first_labels(1));
  EXPECT_NE(first_labels(1), first_labels(2));
}

// Replicas draw parts of batches, in any order; together they see what one process sees.
TEST(Batches, APartDependsOnlyOnTheSeedAndTheNumberOfTheBatch) {
  const Dataset dataset = counted(29);
  Batches whole(dataset, 7, 3, 1), parts(dataset, 7, 3, 1);
  std::vector<float> x(7 * 4), part_x(7 * 4);
  Bytes labels(7), part_labels(7);
  for (const std::int64_t number : {11, 0, 5, 4, 12}) {
    whole.draw(number, 0, x, labels);
    for (const auto& [first, count] : {std::pair{5, 2}, {0, 1}, {1, 4}})
      parts.draw(number, first,
                 std::span(part_x).subspan(static_cast<std::size_t>(first) * 4,
                                           static_cast<std::size_t>(count) * 4),
                 std::span(part_labels)
                     .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    EXPECT_EQ(part_x, x);
    EXPECT_EQ(part_labels, labels);
  }
}

TEST(Batches, EveryImageComesFirstEquallyOften) {
  const Dataset dataset = counted(4);
  Batches batches(dataset, 4, 11);
  std::vector<float> x(16);
  Bytes labels(4);
  std::array<int, 4> first{};
  for (int epoch = 0; epoch < 4000; ++epoch) {
    batches.draw(epoch, 0, x, labels);
    ++first.at(labels[0]);
  }
  for (const int count : first) EXPECT_NEAR(count, 1000, 130);  // nearly five deviations
}

// Pixel (y, x) of a shifted image is pixel (y - down, x - right) of the original, clamped to the
// nearest edge.
TEST(Batches, ShiftsMoveWholeImagesByUpToTheGivenPixelsEveryWay) {
  constexpr int channels = 2, height = 4, width = 5, shift = 2;
  Dataset dataset{channels, height, width, 10, {}, {3}, "generated"};
  for (int i = 0; i < channels * height * width; ++i) {
    dataset.images.push_back(static_cast<float>(i));
  }
  const auto shifted = [&](int down, int right) {
    std::vector<float> image;
    for (int c = 0; c < channels; ++c)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
          const int from_y = std::clamp(y - down, 0, height - 1);
          const int from_x = std::clamp(x - right, 0, width - 1);
          image.push_back(static_cast<float>((c * height + from_y) * width + from_x));
        }
    return image;
  };
  std::set<std::vector<float>> expected;
  for (int down = -shift; down <= shift; ++down)
    for (int right = -shift; right <= shift; ++right) expected.insert(shifted(down, right));

  Batches batches(dataset, 1, 5, shift);
  std::set<std::vector<float>> seen;
  std::vector<float> x(dataset.image_size());
  Bytes labels(1);
  for (int i = 0; i < 1000; ++i) {
    batches.draw(i, 0, x, labels);
    seen.insert(x);
  }
  EXPECT_EQ(seen, expected);
}

TEST(Batches, ImpossibleSizesAreRefused) {
  const Dataset dataset = counted(5);
  EXPECT_THROW(Batches(dataset, 2, 1, -1), std::invalid_argument);
  EXPECT_THROW(Batches(dataset, 0, 1), std::invalid_argument);
  EXPECT_THROW(Batches(dataset, 6, 1), std::invalid_argument);
  Batches batches(dataset, 5, 1);
  std::vector<float> x(19);
  Bytes labels(5);
  EXPECT_THROW(batches.draw(0, 0, x, labels), std::invalid_argument);
  x.resize(20);
  EXPECT_THROW(batches.draw(0, 1, x, labels), std::invalid_argument);
  EXPECT_THROW(batches.draw(-1, 0, x, labels), std::invalid_argument);
}

TEST(Normalization, GivesTheTrainingSetZeroMeanAndUnitVarianceChannelByChannel) {
  std::mt19937_64 random(3);
  const auto make = [&](int count) {
    Dataset dataset{2, 3, 5, 10, {}, Bytes(static_cast<std::size_t>(count)), "cifar10"};
    for (int i = 0; i < count * 2; ++i)
      for (int j = 0; j < 15; ++j)
        dataset.images.push_back(i % 2 == 0 ? static_cast<float>(random() % 100) / 100.0F : 0.7F);
    return dataset;
  };
  DatasetPair pair{make(40), make(10)};
  const DatasetPair before = pair;
  const Normalization normalization = normalization_of(pair.train);
  normalize(pair);

  const Normalization after = normalization_of(pair.train);
  EXPECT_NEAR(after.mean[0], 0, 1e-5);
  EXPECT_NEAR(after.standard_deviation[0], 1, 1e-5);
  EXPECT_NEAR(after.mean[1], 0, 1e-5);
  EXPECT_EQ(normalization.standard_deviation[1], 1) << "a constant channel is only shifted";
  for (std::size_t i = 0; i < pair.test.images.size(); ++i) {
    const std::size_t c = i / 15 % 2;
    EXPECT_NEAR(
        pair.test.images[i],
        (before.test.images[i] - normalization.mean[c]) / normalization.standard_deviation[c],
        1e-5);
  }
  Dataset grey = counted(3);
  EXPECT_THROW(normalize(grey, normalization), std::invalid_argument);
}

}  // namespace
}  // namespace stepladder::data
