#include "bench/networks.hpp"

#include <fmt/format.h>

#include "harness/data/cifar.hpp"
#include "harness/data/generated.hpp"
#include "harness/data/load.hpp"
#include "harness/data/normalization.hpp"
#include "harness/measure/machine.hpp"
#include "harness/network/load.hpp"
#include "harness/problem/suites.hpp"

namespace stepladder {
namespace {

constexpr int generated_train = 8000, generated_test = 2000;

data::DatasetPair generate(const network::NetworkDescription& network, std::uint64_t seed) {
  const bool coloured = network.input.channels == 3;
  if (network.classes != 10 || (!coloured && network.input.channels != 1) ||
      network.input.height > (coloured ? 32 : 28))
    throw std::runtime_error(fmt::format(
        "{}: no data can be generated for {} classes of {}x{}x{}; generated digits have 10 "
        "classes of 1x28x28 or 3x32x32. Name a folder of MNIST or CIFAR-10 files with --data",
        network.name, network.classes, network.input.channels, network.input.height,
        network.input.width));
  const std::filesystem::path directory =
      source_directory() / "results" / "local" / "data" /
      fmt::format("{}_{}", coloured ? "coloured" : "digits", seed);
  std::filesystem::create_directories(directory);
  if (coloured)
    data::write_generated_coloured(directory, generated_train, generated_test, seed);
  else
    data::write_generated(directory, generated_train, generated_test, seed);
  return data::load(directory);
}

}  // namespace

network::NetworkDescription NetworkChoice::load() const {
  network::NetworkDescription description =
      network::load_network(name, source_directory() / "bench" / "networks.json");
  if (without_optional) description = network::without_optional(std::move(description));
  if (batch > 0) description.batch = batch;
  return description;
}

Tuning load_tuning(const std::string& file) {
  return file.empty() ? Tuning() : Tuning(file, detect_machine().cpu_model);
}

data::DatasetPair load_data(const std::string& directory,
                            const network::NetworkDescription& network, std::uint64_t seed) {
  data::DatasetPair pair = directory.empty() ? generate(network, seed) : data::load(directory);
  for (data::Dataset* set : {&pair.train, &pair.test}) {
    const network::Shape& in = network.input;
    if (set->channels != in.channels || set->height < in.height || set->width < in.width ||
        set->classes != network.classes)
      throw std::runtime_error(
          fmt::format("{} needs {} classes of {}x{}x{}; the data has {} of {}x{}x{}", network.name,
                      network.classes, in.channels, in.height, in.width, set->classes,
                      set->channels, set->height, set->width));
    if (set->height != in.height || set->width != in.width)
      *set = data::crop(*set, static_cast<int>(in.height), static_cast<int>(in.width));
  }
  data::normalize(pair);
  return pair;
}

}  // namespace stepladder
