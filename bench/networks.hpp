// Networks, tuning choices and run folders as step, infer, train, plan and tune take them from the
// command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "harness/data/dataset.hpp"
#include "harness/network/description.hpp"
#include "harness/results/run.hpp"
#include "harness/rungs/plan_store.hpp"

namespace stepladder {

struct NetworkChoice {
  std::string name;          // built in, or a JSON file
  std::int64_t batch = 0;    // 0: the network's own
  std::string optimizer{};   // a name of sgd_update; empty: the network's own
  double learning_rate = 0;  // 0: that of the optimizer
  bool without_optional = false;

  // --network, --without-optional, and --batch if it has a meaning.
  void add_to(CLI::App& app, const char* meaning_of_batch = nullptr);
  network::NetworkDescription load() const;  // throws UnknownName, std::runtime_error
  // The optimizer of the network loaded, as train.csv names it.
  std::string optimizer_text(const network::NetworkDescription& network) const;
};

// Throws std::runtime_error unless the images are enough for a batch.
void require_batch(const data::Dataset& images, const network::NetworkDescription& network);

// Options of the run folder: --seed, --out, --resume.
struct RunChoice {
  std::uint64_t seed = 1;
  std::string out;  // empty: results/local/<time>
  bool resume = false;

  void add_to(CLI::App& app, const char* meaning_of_seed);
  // `data`: what the network trains on.
  RunOptions options(const std::string& data = "none") const;
};

// Options of the choices of `best`: --tuned FILE, --cost-model FILE.
struct BestOptions {
  std::string tuned, cost_model;  // empty: none

  void add_to(CLI::App& app);
  KnownChoices load() const;  // throws std::runtime_error
};

// Collective. Throws RanksDisagree if a rank has other variants for the CPU, or another content of
// these files, as on a host with another checkout: it would compute or choose something else.
void require_same_inputs(const NetworkChoice& network, const BestOptions& best);

}  // namespace stepladder
