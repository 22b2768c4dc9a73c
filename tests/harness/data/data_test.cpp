// Data: what is written is read back, what is damaged is named, what is generated can be learned
// and repeated.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/data/batches.hpp"
#include "harness/data/cifar.hpp"
#include "harness/data/digits.hpp"
#include "harness/io/file.hpp"
#include "harness/data/generated.hpp"
#include "harness/data/idx.hpp"
#include "harness/data/load.hpp"
#include "harness/data/normalization.hpp"
#include "tests/error_messages.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder::data {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::uint8_t>;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void gzip(const fs::path& plain, const fs::path& packed) {
  const std::string content = read(plain);
  gzFile file = gzopen(packed.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            static_cast<int>(content.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

Bytes some_labels(std::size_t count) {
  Bytes labels;
  while (labels.size() < count) {
    labels.push_back(static_cast<std::uint8_t>(labels.size() * 7 % 10));
  }
  return labels;
}

Bytes to_bytes(const std::vector<float>& images) {
  Bytes bytes;
  for (const float value : images) {
    bytes.push_back(static_cast<std::uint8_t>(std::lround(value * 255.0F)));
  }
  return bytes;
}

// The four MNIST files: 12 training and 7 test images of 5x4.
struct MnistFolder {
  TemporaryFolder folder;
  Bytes train_pixels = random_bytes(12 * 20, 1), test_pixels = random_bytes(7 * 20, 2);

  explicit MnistFolder(const std::string& separator = "-") {
    write_idx_images(folder / ("train-images" + separator + "idx3-ubyte"), 5, 4, train_pixels);
    write_idx_labels(folder / ("train-labels" + separator + "idx1-ubyte"), some_labels(12));
    write_idx_images(folder / ("t10k-images" + separator + "idx3-ubyte"), 5, 4, test_pixels);
    write_idx_labels(folder / ("t10k-labels" + separator + "idx1-ubyte"), some_labels(7));
  }

  void expect_whole() const {
    const DatasetPair pair = load(folder.path());
    for (const auto& [set, pixels] :
         {std::pair(&pair.train, &train_pixels), std::pair(&pair.test, &test_pixels)}) {
      EXPECT_EQ(set->channels, 1);
      EXPECT_EQ(set->height, 5);
      EXPECT_EQ(set->width, 4);
      EXPECT_EQ(set->classes, 10);
      EXPECT_EQ(set->origin, "mnist");
      EXPECT_EQ(set->labels, some_labels(pixels->size() / 20));
      EXPECT_EQ(to_bytes(set->images), *pixels);
    }
  }
};

// The six CIFAR-10 files: training files of 1 to 5 images and a test file of 3.
struct CifarFolder {
  TemporaryFolder folder;
  Bytes train_pixels, train_labels;
  Bytes test_pixels = random_bytes(3 * cifar_image_bytes, 9);

  CifarFolder() {
    for (std::size_t i = 1; i <= 5; ++i) {
      const Bytes pixels = random_bytes(i * cifar_image_bytes, i);
      const Bytes labels = some_labels(i);
      write_cifar(folder / ("data_batch_" + std::to_string(i) + ".bin"), pixels, labels);
      train_pixels.insert(train_pixels.end(), pixels.begin(), pixels.end());
      train_labels.insert(train_labels.end(), labels.begin(), labels.end());
    }
    write_cifar(folder / "test_batch.bin", test_pixels, some_labels(3));
  }
};

TEST(Idx, ReadsBackWhatWasWrittenUnderBothSpellings) {
  for (const char* separator : {"-", "."}) MnistFolder(separator).expect_whole();
}

TEST(Idx, ReadsGzipUnderBothSpellings) {
  for (const char* separator : {"-", "."}) {
    const MnistFolder mnist(separator);
    std::vector<fs::path> plain(fs::directory_iterator(mnist.folder.path()), {});
    for (const fs::path& path : plain) {
      gzip(path, path.string() + ".gz");
      fs::remove(path);
    }
    mnist.expect_whole();
  }
}

TEST(Idx, SomeFilesMayBeGzipAndOthersPlain) {
  const MnistFolder mnist;
  const fs::path path = mnist.folder / "train-images-idx3-ubyte";
  gzip(path, path.string() + ".gz");
  fs::remove(path);
  mnist.expect_whole();
}

TEST(Idx, TheHeaderIsBigEndianAsPublished) {
  const TemporaryFolder folder;
  write_idx_images(folder / "images", 2, 3, Bytes{1, 2, 3, 4, 5, 6});
  write_idx_labels(folder / "labels", Bytes{7});
  EXPECT_EQ(read_bytes(folder / "images"),
            (Bytes{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read_bytes(folder / "labels"), (Bytes{0, 0, 8, 1, 0, 0, 0, 1, 7}));
}

TEST(Idx, EveryTruncationIsAnErrorThatNamesFileAndOffset) {
  const MnistFolder mnist;
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    const std::string whole = read(mnist.folder / name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      mnist.folder.write(name, whole.substr(0, length));
      EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }),
                       {name, "byte offset " + std::to_string(length), "expected",
                        "found the end of the file"}));
    }
    mnist.folder.write(name, whole);
  }
  mnist.expect_whole();
}

TEST(Idx, EveryTruncationOfAGzipFileIsAnError) {
  const MnistFolder mnist;
  const fs::path plain = mnist.folder / "train-images-idx3-ubyte";
  gzip(plain, plain.string() + ".gz");
  fs::remove(plain);
  const std::string whole = read(plain.string() + ".gz");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    mnist.folder.write("train-images-idx3-ubyte.gz", whole.substr(0, length));
    EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }),
                     {"train-images-idx3-ubyte.gz: byte offset ", "expected", "found"}))
        << length;
  }
}

struct Damage {
  const char* what;
  const char* file;
  std::size_t offset;
  std::string bytes;  // overwrite, or append at the end
  std::vector<std::string> message;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.what; }

class DamagedMnist : public testing::TestWithParam<Damage> {};

TEST_P(DamagedMnist, IsAnErrorThatNamesFileOffsetExpectedAndFound) {
  const Damage& damage = GetParam();
  const MnistFolder mnist;
  std::string content = read(mnist.folder / damage.file);
  content.resize(std::max(content.size(), damage.offset + damage.bytes.size()));
  content.replace(damage.offset, damage.bytes.size(), damage.bytes);
  mnist.folder.write(damage.file, content);
  const std::string message = error_of([&] { load(mnist.folder.path()); });
  EXPECT_TRUE(says(message, {damage.file}));
  for (const std::string& part : damage.message) EXPECT_TRUE(says(message, {part}));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DamagedMnist,
    testing::Values(
        Damage{"MagicOfLabels",
               "train-images-idx3-ubyte",
               3,
               std::string(1, '\x01'),
               {"byte offset 0", "expected magic number 0x00000803", "found 0x00000801"}},
        Damage{"MagicOfFloats",
               "t10k-labels-idx1-ubyte",
               2,
               std::string(1, '\x0d'),
               {"byte offset 0", "expected magic number 0x00000801", "found 0x00000d01"}},
        Damage{"NoImages",
               "train-images-idx3-ubyte",
               4,
               std::string(4, '\0'),
               {"byte offset 4", "expected a dimension from 1", "found 0"}},
        Damage{"NoWidth",
               "train-images-idx3-ubyte",
               12,
               std::string(4, '\0'),
               {"byte offset 12", "expected a dimension from 1", "found 0"}},
        Damage{"NegativeHeight",
               "train-images-idx3-ubyte",
               8,
               "\xff\xff\xff\xff",
               {"byte offset 8", "expected a dimension from 1", "found 4294967295"}},
        Damage{"ProductBeyond64Bits",
               "train-images-idx3-ubyte",
               4,
               "\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff",
               {"byte offset 12", "product is below 2^64", "2147483647 x 2147483647"}},
        Damage{"ManyGigabytes",
               "train-images-idx3-ubyte",
               8,
               "\x7f\xff\xff\xff",
               {"byte offset 256", "12 x 2147483647 x 4", "found the end of the file"}},
        Damage{"TrailingBytes",
               "train-images-idx3-ubyte",
               16 + 12 * 20,
               "abc",
               {"byte offset 256", "expected the end of the file", "found 3 more bytes"}},
        Damage{"LabelOutOfRange",
               "t10k-labels-idx1-ubyte",
               8 + 4,
               "\x0a",
               {"byte offset 12", "expected a label from 0 to 9", "found 10"}}),
    [](const auto& info) { return info.param.what; });

TEST(Idx, DifferentCountsOfImagesAndLabelsAreAnError) {
  const MnistFolder mnist;
  write_idx_labels(mnist.folder / "train-labels-idx1-ubyte", some_labels(11));
  EXPECT_TRUE(
      says(error_of([&] { load(mnist.folder.path()); }),
           {"train-labels-idx1-ubyte: byte offset 4", "expected 12 labels, one for each image of",
            "train-images-idx3-ubyte", "found 11"}));
}

TEST(Idx, TestImagesOfAnotherSizeThanTheTrainingImagesAreAnError) {
  const MnistFolder mnist;
  write_idx_images(mnist.folder / "t10k-images-idx3-ubyte", 4, 5, mnist.test_pixels);
  EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }),
                   {"t10k-images-idx3-ubyte: byte offset 8", "5x4", "4x5"}));
}

TEST(Idx, PartOfAnImageIsNotWritten) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_idx_images(folder / "images", 5, 4, Bytes(19)), std::invalid_argument);
  EXPECT_FALSE(fs::exists(folder / "images"));
}

TEST(Cifar, ReadsTheTrainingFilesInOrderPlainAndGzip) {
  const CifarFolder cifar;
  gzip(cifar.folder / "data_batch_3.bin", cifar.folder / "data_batch_3.bin.gz");
  fs::remove(cifar.folder / "data_batch_3.bin");
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
  const std::string whole = read(cifar.folder / "data_batch_2.bin");
  for (const std::size_t length : {1, 3072, 3074, 6145}) {
    cifar.folder.write("data_batch_2.bin", whole.substr(0, length));
    EXPECT_TRUE(says(error_of([&] { load(cifar.folder.path()); }),
                     {"data_batch_2.bin: byte offset " + std::to_string(length),
                      "expected a whole number of records of 3073 bytes"}));
  }
  cifar.folder.write("data_batch_2.bin", "");
  EXPECT_TRUE(says(error_of([&] { load(cifar.folder.path()); }), {"found an empty file"}));
}

TEST(Cifar, ALabelOutOfRangeIsAnErrorThatNamesFileAndOffset) {
  const CifarFolder cifar;
  std::string content = read(cifar.folder / "data_batch_2.bin");
  content[3073] = 10;
  cifar.folder.write("data_batch_2.bin", content);
  EXPECT_TRUE(
      says(error_of([&] { load(cifar.folder.path()); }),
           {"data_batch_2.bin: byte offset 3073", "expected a label from 0 to 9, found 10"}));
}

TEST(Cifar, WritingDifferentCountsOfImagesAndLabelsIsRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_cifar(folder / "x.bin", Bytes(2 * cifar_image_bytes), Bytes(3)),
               std::invalid_argument);
  EXPECT_FALSE(fs::exists(folder / "x.bin"));
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
  EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }),
                   {"t10k-labels-idx1-ubyte or t10k-labels.idx1-ubyte"}));
  const CifarFolder cifar;
  fs::remove(cifar.folder / "data_batch_4.bin");
  EXPECT_TRUE(says(error_of([&] { load(cifar.folder.path()); }), {"data_batch_4.bin"}));
}

TEST(Load, AFolderWithBothFormatsIsAnError) {
  const MnistFolder mnist;
  mnist.folder.write("test_batch.bin", "");
  EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }), {"both MNIST and CIFAR-10"}));
}

TEST(Load, ADirectoryInPlaceOfAFileIsAnError) {
  const MnistFolder mnist;
  fs::remove(mnist.folder / "train-images-idx3-ubyte");
  fs::create_directory(mnist.folder / "train-images-idx3-ubyte");
  EXPECT_TRUE(
      says(error_of([&] { load(mnist.folder.path()); }), {"train-images-idx3-ubyte: cannot"}));
}

// Cut, with flipped bits, with a surplus, or all of it.
std::string damaged_at_random(std::string content, std::mt19937_64& random) {
  if (random() % 2 == 0) content.resize(random() % (content.size() + 1));
  for (auto flips = random() % 4; flips > 0 && !content.empty(); --flips) {
    // Half of the flips go to the header, where they do the most harm.
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
      ASSERT_TRUE(std::all_of(set->labels.begin(), set->labels.end(),
                              [](std::uint8_t label) { return label < 10; }));
    }
  } catch (const std::runtime_error& error) {
    ASSERT_TRUE(says(error.what(), {folder.string()}));
  }
}

TEST(DamagedFiles, LoadAsSoundDataOrAreAnError) {
  std::mt19937_64 random(20240607);
  const auto torment = [&](const TemporaryFolder& folder, int rounds) {
    const std::vector<fs::path> files(fs::directory_iterator(folder.path()), {});
    for (const fs::path& file : files) {
      const std::string whole = read(file);
      for (int round = 0; round < rounds; ++round) {
        folder.write(file.filename(), damaged_at_random(whole, random));
        expect_sound_or_runtime_error(folder.path());
      }
      folder.write(file.filename(), whole);
    }
  };
  const MnistFolder plain;
  torment(plain.folder, 400);
  const MnistFolder packed;
  for (const fs::path& path :
       std::vector<fs::path>(fs::directory_iterator(packed.folder.path()), {})) {
    gzip(path, path.string() + ".gz");
    fs::remove(path);
  }
  torment(packed.folder, 400);
  const CifarFolder cifar;
  torment(cifar.folder, 50);
}

TEST(WriteAtomically, AFailureLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "target");
  fs::create_directory(folder / "target/inside");
  EXPECT_TRUE(says(error_of([&] { write_atomically(folder / "target", Bytes{1}); }),
                   {"target", "cannot write"}));
  EXPECT_TRUE(fs::exists(folder / "target/inside"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_TRUE(says(error_of([&] { write_atomically(folder / "no/such/folder", Bytes{1}); }),
                   {"cannot write"}));
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

std::uint32_t checksum(const fs::path& folder, const std::vector<std::string>& names) {
  uLong crc = crc32(0, nullptr, 0);
  for (const std::string& name : names) {
    const Bytes bytes = read_bytes(folder / name);
    crc = crc32(crc, bytes.data(), static_cast<uInt>(bytes.size()));
  }
  return static_cast<std::uint32_t>(crc);
}

const std::vector<std::string> idx_names{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
const std::vector<std::string> cifar_names{"data_batch_1.bin", "data_batch_2.bin",
                                           "data_batch_3.bin", "data_batch_4.bin",
                                           "data_batch_5.bin", "test_batch.bin"};

TEST(Generated, OneSeedGivesTheSameBytesAndAnotherOthers) {
  const TemporaryFolder a, b, c;
  write_generated(a.path(), 300, 40, 1);
  write_generated(b.path(), 300, 40, 1);
  write_generated(c.path(), 300, 40, 2);
  EXPECT_EQ(checksum(a.path(), idx_names), checksum(b.path(), idx_names));
  for (const std::string& name : idx_names) EXPECT_NE(read(a / name), read(c / name)) << name;
}

// Machines, compilers and optimisation must not change the data; whoever changes the drawing
// raises generator_version and puts the new checksums here.
TEST(Generated, TheBytesOfASeedAreFixed) {
  const TemporaryFolder grey, coloured;
  write_generated(grey.path(), 500, 100, 1);
  write_generated_coloured(coloured.path(), 500, 100, 1);
  EXPECT_EQ(generator_version, 1);
  EXPECT_EQ(checksum(grey.path(), idx_names), 3704606185U);
  EXPECT_EQ(checksum(coloured.path(), cifar_names), 3335954241U);
}

TEST(Generated, TheReaderOfRealDataReadsItAsGenerated) {
  const TemporaryFolder grey, coloured;
  write_generated(grey.path(), 30, 20, 5);
  const DatasetPair digits = load(grey.path());
  EXPECT_EQ(digits.train.count(), 30);
  EXPECT_EQ(digits.test.count(), 20);
  EXPECT_EQ(digits.train.image_size(), 28U * 28U);
  EXPECT_EQ(digits.train.origin, "generated");
  EXPECT_EQ(digits.test.origin, "generated");

  write_generated_coloured(coloured.path(), 33, 20, 5);
  const DatasetPair colours = load(coloured.path());
  EXPECT_EQ(colours.train.count(), 33);
  EXPECT_EQ(colours.test.count(), 20);
  EXPECT_EQ(colours.train.image_size(), 3U * 32U * 32U);
  EXPECT_EQ(colours.test.origin, "generated");
}

TEST(Generated, ClassesAreBalancedAndInRandomOrder) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 1005, 100, 3);
  const DatasetPair pair = load(folder.path());
  for (const Dataset* set : {&pair.train, &pair.test}) {
    std::array<int, 10> counts{};
    for (const std::uint8_t label : set->labels) ++counts.at(label);
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    EXPECT_LE(*most - *least, 1);
    int ascents = 0;
    for (std::size_t i = 1; i < set->labels.size(); ++i) {
      ascents += set->labels[i] == (set->labels[i - 1] + 1) % 10 ? 1 : 0;
    }
    EXPECT_LT(ascents, set->count() / 4);
  }
}

TEST(Generated, TrainingAndTestImagesAreAllDifferent) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 500, 500, 4);
  const DatasetPair pair = load(folder.path());
  std::set<std::vector<float>> images;
  for (const Dataset* set : {&pair.train, &pair.test}) {
    for (auto at = set->images.begin(); at != set->images.end(); at += 784) {
      images.emplace(at, at + 784);
    }
  }
  EXPECT_EQ(images.size(), 1000U);
}

// A program that only compares images to their class's mean must not do well, or the data would
// measure nothing; one that looks at the nearest image must, or there would be nothing to learn.
TEST(Generated, CanBeLearnedButNotByTheMeanOfAClass) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 2000, 200, 6);
  const DatasetPair pair = load(folder.path());
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

TEST(Generated, CompleteFilesOfTheSameSeedAreReused) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 20, 10, 7);
  const auto before = fs::last_write_time(folder / idx_names[0]);
  const auto past = before - std::chrono::hours(1);
  fs::last_write_time(folder / idx_names[0], past);
  write_generated(folder.path(), 20, 10, 7);
  EXPECT_EQ(fs::last_write_time(folder / idx_names[0]), past);
}

TEST(Generated, OtherCountsAnotherSeedOrAMissingFileAreDrawnAnew) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 20, 10, 7);
  const std::string first = read(folder / idx_names[0]);
  write_generated(folder.path(), 21, 10, 7);
  EXPECT_EQ(load(folder.path()).train.count(), 21);
  write_generated(folder.path(), 21, 10, 8);
  EXPECT_NE(read(folder / idx_names[0]).substr(16, 784), first.substr(16, 784));
  fs::remove(folder / idx_names[2]);
  write_generated(folder.path(), 21, 10, 8);
  EXPECT_EQ(load(folder.path()).test.count(), 10);
}

TEST(Generated, AnInterruptedFolderIsNotTakenForWholeAndIsDrawnAnew) {
  const TemporaryFolder folder;
  write_generated(folder.path(), 20, 10, 7);
  std::string record = read(folder / "generated.json");
  record.replace(record.find("true"), 4, "false");
  folder.write("generated.json", record);
  EXPECT_TRUE(says(error_of([&] { load(folder.path()); }), {"generated.json", "interrupted"}));
  write_generated(folder.path(), 20, 10, 7);
  EXPECT_EQ(load(folder.path()).train.count(), 20);
}

TEST(Generated, NeverOverwritesOtherData) {
  const MnistFolder mnist;
  EXPECT_TRUE(says(error_of([&] { write_generated(mnist.folder.path(), 20, 10, 7); }),
                   {mnist.folder.path().string(), "expected an empty folder"}));
  EXPECT_TRUE(says(error_of([&] { write_generated_coloured(mnist.folder.path(), 20, 10, 7); }),
                   {"expected an empty folder"}));
  mnist.expect_whole();

  const TemporaryFolder folder;
  write_generated(folder.path(), 20, 10, 7);
  EXPECT_TRUE(says(error_of([&] { write_generated_coloured(folder.path(), 20, 10, 7); }),
                   {"expected an empty folder"}));
}

TEST(Generated, AMalformedRecordIsAnError) {
  for (const char* record :
       {"", "{", "[]", "{}", R"({"format": "mnist", "complete": 1})", "\xff"}) {
    const MnistFolder mnist;
    mnist.folder.write("generated.json", record);
    EXPECT_TRUE(says(error_of([&] { load(mnist.folder.path()); }), {"generated.json"})) << record;
    EXPECT_TRUE(
        says(error_of([&] { write_generated(mnist.folder.path(), 9, 9, 1); }), {"generated.json"}));
  }
}

TEST(Generated, ImpossibleCountsAreRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const fs::path inside = folder / "inside";
  EXPECT_THROW(write_generated(inside, 0, 10, 1), std::invalid_argument);
  EXPECT_THROW(write_generated(inside, 10, -1, 1), std::invalid_argument);
  EXPECT_THROW(write_generated(inside, 2'000'000'000, 10, 1), std::invalid_argument);
  EXPECT_THROW(write_generated_coloured(inside, 4, 10, 1), std::invalid_argument);
  EXPECT_FALSE(fs::exists(inside));
  folder.write("file", "");
  EXPECT_TRUE(says(error_of([&] { write_generated(folder / "file", 10, 10, 1); }),
                   {"cannot create the folder"}));
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

TEST(Batches, AnEpochGivesEveryImageOnceButForTheRest) {
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
      batches.next(x, labels);
      EXPECT_EQ(batches.epoch(), epoch);
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
  EXPECT_EQ(orders.size(), 12U) << "every epoch has an order of its own";
  EXPECT_EQ(seen_ever.size(), 23U) << "what an epoch drops another takes";
}

TEST(Batches, TheOrderFollowsFromTheSeed) {
  const Dataset dataset = counted(50);
  const auto first_labels = [&](std::uint64_t seed) {
    Batches batches(dataset, 50, seed);
    std::vector<float> x(200);
    Bytes labels(50);
    batches.next(x, labels);
    return labels;
  };
  EXPECT_EQ(first_labels(1), first_labels(1));
  EXPECT_NE(first_labels(1), first_labels(2));
}

TEST(Batches, EveryImageComesFirstEquallyOften) {
  const Dataset dataset = counted(4);
  Batches batches(dataset, 4, 11);
  std::vector<float> x(16);
  Bytes labels(4);
  std::array<int, 4> first{};
  for (int epoch = 0; epoch < 4000; ++epoch) {
    batches.next(x, labels);
    ++first.at(labels[0]);
  }
  for (const int count : first) EXPECT_NEAR(count, 1000, 130);  // nearly five deviations
}

// A shifted image shows at (y, x) what stood at (y - down, x - right), the nearest edge if nothing
// did.
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
    batches.next(x, labels);
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
  EXPECT_THROW(batches.next(x, labels), std::invalid_argument);
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
