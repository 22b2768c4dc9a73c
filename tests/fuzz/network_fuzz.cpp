// The JSON description of a network: alone, under its name, or with others as in networks.json.
#include "harness/network/description.hpp"
#include "harness/network/load.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace stepladder;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file, none;
  static const std::filesystem::path no_networks = none.write("{}");
  const std::filesystem::path& path = file.write(fuzz::text_of(data, size));
  std::vector<std::string> names;
  fuzz::expect_result_or_message([&] { names = network::network_names(path); });
  fuzz::expect_result_or_message([&] {
    const auto network = names.size() > 1 ? network::load_network(names[size % names.size()], path)
                                          : network::load_network(path.string(), no_networks);
    network::parameter_count(network::without_optional(network));
    network::pool_before_relu(network);
    for (std::size_t i = 0; i < network.layers.size(); ++i) network::initial_deviation(network, i);
  });
  return 0;
}
