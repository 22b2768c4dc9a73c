#include "bench/networks.hpp"

#include "harness/io/file.hpp"
#include "harness/measure/machine.hpp"
#include "harness/network/load.hpp"

namespace stepladder {

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

}  // namespace stepladder
