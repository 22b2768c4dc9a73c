#include "harness/data/network_data.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "harness/data/generated.hpp"
#include "harness/data/load.hpp"
#include "harness/data/normalization.hpp"
#include "harness/io/file.hpp"

namespace stepladder::data {
namespace {

constexpr int generated_train = 8000, generated_test = 2000;
constexpr int most_classes = 256;     // labels are bytes
constexpr int most_values = 100'000;  // per generated image: 4 GB in all

DatasetPair generate_for(const network::NetworkDescription& network, std::uint64_t seed) {
  const network::Shape& in = network.input;
  if (network.classes > most_classes || in.features() > most_values)
    throw std::runtime_error(fmt::format(
        "{}: no data can be generated for {} classes of {}x{}x{}: expected at most {} classes and "
        "{} values per image. Name a folder of MNIST or CIFAR-10 files with --data",
        network.name, network.classes, in.channels, in.height, in.width, most_classes,
        most_values));
  return generate({.channels = static_cast<int>(in.channels),
                   .height = static_cast<int>(in.height),
                   .width = static_cast<int>(in.width),
                   .classes = static_cast<int>(network.classes)},
                  generated_train, generated_test, seed);
}

DatasetPair load_digits(const std::filesystem::path& directory) {
  DatasetPair pair = load(directory);
  if (pair.train.count() + pair.test.count() == 5000)
    pair.train.origin = pair.test.origin = "mnist-5k";
  return pair;
}

DatasetPair choose(const network::NetworkDescription& network, const std::string& source,
                   std::uint64_t seed, const std::filesystem::path& digits) {
  if (source == "generated") return generate_for(network, seed);
  if (!source.empty()) return load(source);
  if (takes_digits(network) && std::filesystem::exists(digits)) return load_digits(digits);
  return generate_for(network, seed);
}

// Crops images that are larger than the network's input.
void fit(Dataset& set, const network::NetworkDescription& network) {
  const network::Shape& in = network.input;
  if (set.channels != in.channels || set.height < in.height || set.width < in.width ||
      set.classes != network.classes)
    throw std::runtime_error(
        fmt::format("{} needs {} classes of {}x{}x{}; the data has {} of {}x{}x{}", network.name,
                    network.classes, in.channels, in.height, in.width, set.classes, set.channels,
                    set.height, set.width));
  if (set.height != in.height || set.width != in.width)
    set = crop(set, static_cast<int>(in.height), static_cast<int>(in.width));
}

}  // namespace

std::filesystem::path digits_directory() { return source_directory() / "data" / "mnist"; }

bool takes_digits(const network::NetworkDescription& network) {
  return network.input == network::Shape{1, 28, 28} && network.classes == 10;
}

DatasetPair data_for(const network::NetworkDescription& network, const std::string& source,
                     std::uint64_t seed, const std::filesystem::path& digits) {
  DatasetPair pair = choose(network, source, seed, digits);
  fit(pair.train, network);
  fit(pair.test, network);
  normalize(pair);
  return pair;
}

}  // namespace stepladder::data
