// The modes of training over ranks. Synchronous ones make the weights of one process, whatever the
// division of batches; asynchronous ones learn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "harness/io/hash.hpp"
#include "harness/training/mode.hpp"
#include "harness/training/trainer.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/training/training_networks.hpp"
#include "tests/mpi/expect.hpp"

namespace stepladder {
namespace {

using network::NetworkDescription;

using test::expect;

const data::Dataset& images() {
  static const data::Dataset set = bright_rows(300, 1);
  return set;
}

NetworkDescription network_with(std::int64_t batch, sgd_update::Optimizer optimizer) {
  NetworkDescription network = network::without_optional(small_network(batch));
  network.optimizer.type = optimizer;
  network.optimizer.learning_rate = optimizer == sgd_update::Optimizer::adam ? 0.01 : 0.05;
  network.optimizer.weight_decay = 0.001;
  network.optimizer.weight_decay_on =
      network::OptimizerDescription::DecayedWeights::fully_connected;
  network.optimizer.decay = 0.9;
  network.optimizer.decay_every_samples = 20;
  return network;
}

// Two grouped convolutions, pooling, normalization: what model parallelism and pipelines divide.
NetworkDescription deeper_network(std::int64_t batch) {
  NetworkDescription deep;
  deep.name = "deeper";
  deep.input = {1, 6, 6};
  deep.classes = 3;
  deep.batch = batch;
  const auto add = [&](const char* name, network::Layer layer) {
    network::LayerDescription& added = deep.layers.emplace_back();
    added.name = name;
    added.layer = std::move(layer);
  };
  add("conv1",
      network::Convolution{.filters = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  add("relu1", network::Relu{});
  add("pool1", network::MaxPool{2, 2, 2, 2, 0, 0});
  add("conv2",
      network::Convolution{
          .filters = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1, .groups = 2});
  add("relu2", network::Relu{});
  add("conv3", network::Convolution{.filters = 4, .kernel_h = 2, .kernel_w = 2, .groups = 4});
  add("tanh", network::Tanh{});
  add("lrn", network::LocalResponseNormalization{3, 0.5, 0.75, 1.0});
  add("hidden", network::FullyConnected{7});
  add("sigmoid", network::Sigmoid{});
  add("output", network::FullyConnected{3});
  add("loss", network::SoftmaxCrossEntropy{});
  deep.optimizer = {.type = sgd_update::Optimizer::momentum, .learning_rate = 0.05};
  network::infer_shapes(deep);
  return deep;
}

TrainingSetup setup_of(const NetworkDescription& description, PlanStore& plans) {
  return {.description = description,
          .use = UseSpec("serial,all_reduce=ring"),
          .plans = &plans,
          .data = &images(),
          .shift = 1,
          .seed = 5,
          .log_every = 3};
}

struct Result {
  std::vector<float> weights, state;
  double loss = 0;
  Progress total;
};

Result train(const std::string& text, TrainingSetup setup, std::int64_t steps) {
  const ModeSpec spec(text);
  const std::unique_ptr<Mode> mode = mode_named(spec.name()).make(setup, spec);
  for (std::int64_t step = 5; step < steps; step += 5) mode->train(step);  // in several parts
  mode->train(steps);
  const Progress total = mode->total();
  mode->collect();
  const auto weights = mode->network().parameters(), state = mode->network().state1();
  return {
      {weights.begin(), weights.end()}, {state.begin(), state.end()}, mode->progress().loss, total};
}

Result train_alone(const TrainingSetup& setup, std::int64_t steps) {
  TrainableNetwork network(
      setup.description, UseSpec("serial"),
      {.seed = setup.seed, .exchange = Exchange::none, .shared_gradients = false, .alone = true},
      *setup.plans);
  Trainer trainer(network, *setup.data, setup.seed, setup.shift);
  for (std::int64_t step = 0; step < steps; ++step)
    trainer.step(learning_rate_of(setup, step * setup.description.batch));
  const auto weights = network.parameters(), state = network.state1();
  return {{weights.begin(), weights.end()}, {state.begin(), state.end()}, trainer.loss(), {}};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::isfinite(a[i]) ? std::abs(double{a[i]} - b[i]) : INFINITY);
  return largest;
}

std::uint64_t hash_of(const std::vector<float>& values) {
  return fnv1a(std::as_bytes(std::span(values)));
}

double accounted_for(const Progress& total) {
  return (total.compute + total.exposed + total.waiting) / total.seconds;
}

void check_synchronous(const std::string& mode, const NetworkDescription& description,
                       bool ranks_compared = true) {
  constexpr std::int64_t steps = 12;
  PlanStore plans(1);
  TrainingSetup setup = setup_of(description, plans);
  setup.check_ranks = ranks_compared;
  const Result alone = train_alone(setup, steps), together = train(mode, setup, steps);
  const std::string what =
      fmt::format("{} on {}, batch {}", mode, description.name, description.batch);
  const double difference = largest_difference(alone.weights, together.weights);
  // 12 steps of fp32: rounding in another order grows to a few 1e-6
  expect(difference < 5e-5,
         fmt::format("{}: weights differ from one process by {:g}", what, difference));
  expect(mpi_session().rank() > 0 || std::abs(alone.loss - together.loss) < 1e-4,
         fmt::format("{}: loss {} instead of {}", what, together.loss, alone.loss));
  expect(mpi_session().same_on_all_ranks(hash_of(together.weights)),
         what + ": weights differ between ranks");
  expect(together.total.step == steps && together.total.samples == steps * description.batch,
         what + ": steps and samples");
  expect(together.total.bytes > 0 || mpi_session().ranks() == 1, what + ": bytes");
  double share = accounted_for(together.total);
  expect(share < 1.02, fmt::format("{}: {} of the time is accounted for", what, share));
  // A training takes milliseconds: on a busy machine a rank may wait for a core for longer.
  for (int more = 0; more < 5 && !ranks_compared && mpi_session().max(-share) > -0.2; ++more)
    share = std::max(share, accounted_for(train(mode, setup, steps).total));
  expect(ranks_compared || share > 0.2,
         fmt::format("{}: only {} of the time is accounted for", what, share));
}

void check_all_synchronous(int ranks) {
  using sgd_update::Optimizer;
  for (const char* mode : {"synchronous", "synchronous,overlap=yes,bucket_kib=1", "sharded",
                           "parameter_server", "model_parallel", "pipeline,micro_batches=2",
                           "pipeline,micro_batches=4,schedule=fill_drain"})
    for (const Optimizer optimizer : {Optimizer::momentum, Optimizer::adam})
      check_synchronous(mode, network_with(8, optimizer));
  // Batches that ranks cannot divide evenly, and fewer samples than ranks.
  for (const char* mode : {"synchronous", "synchronous,overlap=yes,bucket_kib=1", "sharded",
                           "parameter_server", "model_parallel", "pipeline"})
    for (const std::int64_t batch : {1, 2, 7})
      check_synchronous(mode, network_with(batch, Optimizer::momentum));
  // Equal to synchronous by their definition, for optimizers that are linear in the gradient.
  for (const char* mode : {"local_sgd,every=1", "ssp,bound=0"})
    for (const std::int64_t batch : {8, 7})
      check_synchronous(mode, network_with(batch, Optimizer::momentum), false);
  check_synchronous("ssp,bound=0", network_with(8, Optimizer::adam), false);
  for (const char* mode : {"parameter_server/parameter_server", "parameter_server/token_ring",
                           "parameter_server/model_parallel", "model_parallel/model_parallel"})
    if (ranks % 2 == 0) check_synchronous(mode, network_with(8, Optimizer::momentum), false);
  for (const char* mode : {"pipeline,micro_batches=3", "synchronous"})
    check_synchronous(mode, deeper_network(6));
  if (ranks != 3) {
    check_synchronous("model_parallel", deeper_network(6));
  } else {
    const std::string error =
        error_of([] { check_synchronous("model_parallel", deeper_network(6)); });
    expect(error.find("the 2 groups of conv2 cannot be divided among 3 ranks") != std::string::npos,
           "groups that cannot be divided are an error: " + error);
  }
}

// A checkpoint: the weights of steps 1 to 7 and the state, and then the rest, with other objects.
void check_restart() {
  for (const char* text :
       {"synchronous", "sharded", "parameter_server", "model_parallel", "pipeline"}) {
    PlanStore plans(1);
    const TrainingSetup setup = setup_of(network_with(8, sgd_update::Optimizer::adam), plans);
    const Result whole = train(text, setup, 10);
    const ModeSpec spec(text);
    const std::unique_ptr<Mode> first = mode_named(spec.name()).make(setup, spec),
                                second = mode_named(spec.name()).make(setup, spec);
    first->train(5);
    first->collect();
    std::ranges::copy(first->network().parameters(), second->network().parameters().begin());
    std::ranges::copy(first->network().state1(), second->network().state1().begin());
    std::ranges::copy(first->network().state2(), second->network().state2().begin());
    second->restart(first->total());
    second->train(10);
    second->collect();
    const auto weights = second->network().parameters();
    expect(std::ranges::equal(weights, whole.weights), fmt::format("{} goes on bit for bit", text));
  }
}

void check_asynchronous(int ranks) {
  const data::Dataset held_out = bright_rows(300, 2);
  std::vector<std::string> modes = {"token_ring", "downpour", "ssp,bound=2", "local_sgd,every=4",
                                    "local_sgd,every=4,block_momentum=0.3"};
  if (ranks % 2 == 0) {
    modes.emplace_back("token_ring/token_ring");
    modes.emplace_back("token_ring/parameter_server");
    modes.emplace_back("token_ring/model_parallel");
  }
  if (ranks > 2) modes.push_back(fmt::format("parameter_server,first={}", ranks - 1));
  for (const std::string& text : modes)
    for (const bool slow : {false, true}) {
      PlanStore plans(1);
      TrainingSetup setup = setup_of(network::without_optional(small_network(12)), plans);
      setup.shift = 0;
      if (slow) setup.slow = {ranks - 1, 4, 10, 60};
      const ModeSpec spec(text);
      const std::unique_ptr<Mode> mode = mode_named(spec.name()).make(setup, spec);
      mode->train(120);
      mode->train(360);
      const Progress total = mode->total();
      mode->collect();
      const double accuracy = accuracy_on(mode->network(), held_out);
      const std::string what = fmt::format("{}{}", text, slow ? " with a slow rank" : "");
      expect(accuracy > 0.92, fmt::format("{}: accuracy {}", what, accuracy));
      expect(total.step >= 360, fmt::format("{}: {} steps", what, total.step));
      expect(mpi_session().same_on_all_ranks(fnv1a(std::as_bytes(mode->network().parameters()))),
             what + ": the same weights on all ranks at the end");
      if (text.starts_with("ssp"))
        expect(total.staleness.size() <= 3,
               fmt::format("{}: staleness {} above the bound", what, total.staleness.size() - 1));
      if (text == "downpour" && ranks > 2)
        expect(total.staleness.size() > 1, what + ": no update was stale");
    }
}

}  // namespace
}  // namespace stepladder

int main() {
  using namespace stepladder;
  return test::run_checks([](int ranks) {
    check_all_synchronous(ranks);
    check_restart();
    if (ranks > 1) check_asynchronous(ranks);
  });
}
