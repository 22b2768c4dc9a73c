#include "bench/networks.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "bench/commands.hpp"
#include "bench/option_checks.hpp"
#include "bench/selection.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"
#include "harness/measure/machine.hpp"
#include "harness/network/load.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace stepladder {
namespace {

std::filesystem::path builtin_networks() { return source_directory() / "bench" / "networks.json"; }

sgd_update::Optimizer optimizer_named(const std::string& name) {
  const auto& types = network::optimizer_types();
  if (const auto found = types.find(name); found != types.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, type] : types) names.push_back(known);
  throw UnknownName("optimizer", name, names);
}

// Another optimizer has its own parameters; the decays are those of the network, and so is the
// learning rate if its type has no default.
network::OptimizerDescription exchanged(const network::OptimizerDescription& own,
                                        sgd_update::Optimizer type) {
  if (type == own.type) return own;
  network::OptimizerDescription other = network::default_optimizer(type);
  if (other.learning_rate == 0) other.learning_rate = own.learning_rate;
  other.decay = own.decay;
  other.decay_every_samples = own.decay_every_samples;
  other.weight_decay = own.weight_decay;
  other.weight_decay_on = own.weight_decay_on;
  return other;
}

}  // namespace

void NetworkChoice::add_to(CLI::App& app, const char* meaning_of_batch) {
  app.add_option("--network", name, "mlp, mnist_cnn, cifar_cnn, alexnet or a JSON file")
      ->required();
  if (meaning_of_batch != nullptr)
    app.add_option("--batch", batch, meaning_of_batch)->transform(whole_number(1, most_counted));
  app.add_flag("--without-optional", without_optional, "Leave out the layers marked optional");
}

network::NetworkDescription NetworkChoice::load() const {
  network::NetworkDescription description = network::load_network(name, builtin_networks());
  if (without_optional) description = network::without_optional(std::move(description));
  if (batch > 0) description.batch = batch;
  if (!optimizer.empty())
    description.optimizer = exchanged(description.optimizer, optimizer_named(optimizer));
  if (learning_rate > 0) description.optimizer.learning_rate = learning_rate;
  return description;
}

std::string NetworkChoice::optimizer_text(const network::NetworkDescription& network) const {
  const std::string type = sgd_update::name_of(network.optimizer.type);
  return learning_rate > 0 ? fmt::format("{},learning_rate={:g}", type, learning_rate) : type;
}

void require_batch(const data::Dataset& images, const network::NetworkDescription& network) {
  if (images.count() < network.batch)
    throw std::runtime_error(fmt::format("{} images are too few for a batch of {}; use --batch",
                                         images.count(), network.batch));
}

void RunChoice::add_to(CLI::App& app, const char* meaning_of_seed) {
  app.add_option("--seed", seed, meaning_of_seed)->transform(whole_number(0, most_seed));
  app.add_option("--out", out, "Run folder; results/local/<time> by default");
  app.add_flag("--resume", resume, "Continue the run in that folder");
}

RunOptions RunChoice::options(const std::string& data) const {
  return {.directory = out.empty() ? default_run_directory() : std::filesystem::path(out),
          .resume = resume,
          .command = command_line(),
          .seed = seed,
          .data = data};
}

void BestOptions::add_to(CLI::App& app) {
  app.add_option("--tuned", tuned, "File written by `stepladder tune`: the choices for best")
      ->check(CLI::ExistingFile);
  app.add_option(
         "--cost-model", cost_model,
         "File written by `make cost-model`: best measures only rungs that it predicts to be close "
         "to the fastest")
      ->check(CLI::ExistingFile);
}

KnownChoices BestOptions::load() const {
  KnownChoices known;
  const std::string cpu_model = detect_machine().cpu_model;
  if (!tuned.empty()) known.tuning = Tuning(tuned, cpu_model);
  if (!cost_model.empty()) known.model = CostModel(cost_model, cpu_model);
  return known;
}

void require_same_inputs(const NetworkChoice& network, const BestOptions& best) {
  const MpiSession& mpi = mpi_session();
  if (mpi.ranks() == 1) return;
  std::vector<std::string> variants;
  for (const PrimitiveType* type : primitives())
    for (const Variant& variant : at_place(type->variants(), "cpu"))
      variants.push_back(line_of(*type, variant));
  mpi.require_same("list of variants", variants);
  std::error_code error;
  const bool is_file = std::filesystem::exists(network.name, error);
  for (const std::filesystem::path& file :
       {is_file ? std::filesystem::path(network.name) : builtin_networks(),
        std::filesystem::path(best.tuned), std::filesystem::path(best.cost_model)}) {
    if (file.empty()) continue;
    const auto bytes = mpi.agree([&] { return read_bytes(file); });
    mpi.require_same(file.filename().string(), {std::string(bytes.begin(), bytes.end())});
  }
}

}  // namespace stepladder
