// Networks in device memory train as they do on the CPU, launched operation by operation or
// recorded as graphs, with and without concurrent uploads of the next batch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "harness/training/trainer.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/training/training_networks.hpp"
#include "tests/simt/multiprocessor.hpp"
#include "tests/simt/streams.hpp"

namespace stepladder {
namespace {

using network::NetworkDescription;

// Copies and kernels run as late as CUDA allows, in any order that it allows.
class DeviceNetwork : public testing::Test {
  simt::DeferredStreams deferred_;
};
using DeviceTraining = DeviceNetwork;

constexpr std::uint64_t seed = 11;
constexpr int steps = 10;

// Relative to the loss, absolute for losses below 1.
constexpr double tolerance = 1e-4;

// A network of bench/networks.json with smaller images and layers, so that emulation takes seconds.
NetworkDescription shrunk(const std::string& name, std::int64_t batch) {
  NetworkDescription description = builtin_network(name, batch);
  description.input.height = description.input.width = 10;
  for (network::LayerDescription& layer : description.layers) {
    if (auto* connected = std::get_if<network::FullyConnected>(&layer.layer))
      connected->outputs = std::min<std::int64_t>(connected->outputs, 20);
    if (auto* convolution = std::get_if<network::Convolution>(&layer.layer))
      convolution->filters = 6;
  }
  network::infer_shapes(description);
  return description;
}

double loss_of_step(TrainableNetwork& network, int step, double learning_rate) {
  fill_batch(network, seed + static_cast<std::uint64_t>(step % 3));  // three different batches
  return network.step(learning_rate);
}

std::vector<double> trace(TrainableNetwork& network) {
  std::vector<double> losses;
  const double learning_rate = network.description().optimizer.learning_rate;
  for (int step = 0; step < steps; ++step)
    losses.push_back(loss_of_step(network, step, step < 6 ? learning_rate : learning_rate / 2));
  return losses;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, expected[i])) << "step " << i;
}

// Compares losses, and the probabilities after training, which depend on every weight.
void expect_as_on_the_cpu(const NetworkDescription& description, const std::string& use) {
  SCOPED_TRACE(fmt::format("{} use={}", description.name, use));
  PlanStore plans(seed);
  TrainableNetwork serial(description, UseSpec("serial"), {.seed = seed}, plans);
  const std::vector<double> expected = trace(serial);
  serial.evaluate();
  for (const bool graph : {false, true}) {
    SCOPED_TRACE(graph ? "as a graph" : "operation by operation");
    TrainableNetwork network(description, UseSpec(use), {.seed = seed, .graph = graph}, plans);
    ASSERT_EQ(network.place(), Place::cuda);
    expect_near(trace(network), expected);
    network.evaluate();
    for (std::size_t i = 0; i < network.probabilities().size(); ++i)
      EXPECT_NEAR(network.probabilities()[i], serial.probabilities()[i], tolerance) << i;
  }
}

TEST_F(DeviceNetwork, TheMultilayerPerceptronTrainsAsOnTheCpu) {
  for (const char* use : {"cuda", "cuda,matmul=vectorized", "naive"})
    expect_as_on_the_cpu(shrunk("mlp", 5), use);
}
TEST_F(DeviceNetwork, TheMnistCnnTrainsAsOnTheCpu) {
  expect_as_on_the_cpu(shrunk("mnist_cnn", 3), "cuda");
}
TEST_F(DeviceNetwork, TheCifarCnnTrainsAsOnTheCpu) {
  expect_as_on_the_cpu(shrunk("cifar_cnn", 3), "cuda");
}

// Every layer, as the first one and after every other one; every optimizer.
TEST_F(DeviceNetwork, RandomNetworksTrainAsOnTheCpu) {
  using sgd_update::Optimizer;
  const char* const uses[] = {"cuda,matmul=vectorized", "naive", "naive,matmul=vectorized",
                              "naive"};
  for (std::uint64_t i = 0; i < 24; ++i) {
    NetworkDescription description = random_network(i, false);
    description.optimizer.type = static_cast<Optimizer>(i % 6);
    description.optimizer.learning_rate = 0.01;
    description.optimizer.rho = 0.9;
    description.optimizer.epsilon = 1e-3;  // if smaller, rounding decides the sign of small updates
    description.optimizer.weight_decay = i % 2 == 0 ? 0 : 0.01;
    SCOPED_TRACE(sgd_update::name_of(description.optimizer.type));
    expect_as_on_the_cpu(description, uses[i % 4]);
  }
}

void expect_gradients_of_the_cpu(const std::string& use) {
  SCOPED_TRACE(use);
  const NetworkDescription description = shrunk("cifar_cnn", 3);
  PlanStore plans(seed);
  TrainableNetwork serial(description, UseSpec("serial"), {.seed = seed}, plans);
  TrainableNetwork network(description, UseSpec(use), {.seed = seed}, plans);
  Random random(seed);
  for (float& parameter : serial.parameters()) parameter = random.uniform(-0.2F, 0.2F);
  std::copy(serial.parameters().begin(), serial.parameters().end(), network.parameters().begin());
  network.upload_parameters();
  fill_batch(serial, seed), fill_batch(network, seed);
  EXPECT_NEAR(network.forward(), serial.forward(), tolerance);
  serial.backward(), network.backward();
  std::fill(network.parameters().begin(), network.parameters().end(), 0.0F);
  network.download();
  EXPECT_TRUE(std::equal(serial.parameters().begin(), serial.parameters().end(),
                         network.parameters().begin()));
  double largest = 0;
  for (const float gradient : serial.gradients())
    largest = std::max(largest, std::abs(double{gradient}));
  ASSERT_GT(largest, 0);
  for (std::size_t i = 0; i < serial.gradients().size(); ++i)
    EXPECT_NEAR(network.gradients()[i], serial.gradients()[i], tolerance * largest) << i;
}

TEST_F(DeviceNetwork, GradientsEqualThoseOfTheCpu) {
  for (const char* use : {"naive", "naive,max_pool=vectorized"}) expect_gradients_of_the_cpu(use);
}

TEST_F(DeviceNetwork, AllocatesNothingAfterConstruction) {
  PlanStore plans(seed);
  TrainableNetwork network(shrunk("cifar_cnn", 2), UseSpec("naive,max_pool=vectorized"),
                           {.seed = seed}, plans);
  const std::size_t allocations = simt::calls.allocations;
  trace(network);
  network.evaluate();
  network.timed_step(0.1);
  EXPECT_EQ(simt::calls.allocations, allocations);
}

// Launches of graphs and of single kernels in a step after the one that records it.
std::pair<std::size_t, std::size_t> launches_of_a_recorded_step(
    const NetworkDescription& description) {
  PlanStore plans(seed);
  TrainableNetwork network(description, UseSpec("naive"), {.seed = seed}, plans);
  loss_of_step(network, 0, 0.1);
  const simt::Calls before = simt::calls;
  loss_of_step(network, 1, 0.1);
  return {simt::calls.graphs - before.graphs, simt::calls.launches - before.launches};
}

TEST_F(DeviceNetwork, AStepIsOneGraph) {
  EXPECT_EQ(launches_of_a_recorded_step(shrunk("mlp", 2)),
            std::pair(std::size_t{1}, std::size_t{0}));
}

TEST_F(DeviceNetwork, KernelsWhoseArgumentsChangeLaunchBetweenGraphs) {
  // dropout forward and backward; graphs before, between and after them
  EXPECT_EQ(launches_of_a_recorded_step(shrunk("cifar_cnn", 2)),
            std::pair(std::size_t{3}, std::size_t{2}));
  NetworkDescription adam = shrunk("mlp", 2);
  adam.optimizer.type = sgd_update::Optimizer::adam;
  EXPECT_EQ(launches_of_a_recorded_step(adam), std::pair(std::size_t{1}, std::size_t{1}));
}

// --- fully connected layers: bias, ReLU and its gradient as epilogues ----------------------------

using Names = std::vector<std::string>;

Names layers_of(const NetworkDescription& description, const std::string& use, Phase phase) {
  PlanStore plans(seed);
  TrainableNetwork network(description, UseSpec(use), {.seed = seed}, plans);
  Names names;
  for (const Operation& operation : network.operations())
    if (operation.phase == phase) names.push_back(operation.layer);
  return names;
}

TEST_F(DeviceNetwork, AProductFusesBiasAndReluWhereARungHasAnEpilogue) {
  const NetworkDescription mlp = shrunk("mlp", 2);
  const Names fused = {"fc1", "fc2", "fc3", "softmax1"},
              separate = {"fc1",   "fc1.bias", "relu1",    "fc2",     "fc2.bias",
                          "relu2", "fc3",      "fc3.bias", "softmax1"};
  EXPECT_EQ(layers_of(mlp, "cuda,matmul=vectorized", Phase::forward), fused);
  EXPECT_EQ(layers_of(mlp, "cuda", Phase::forward), fused) << "some of the rungs have one";
  EXPECT_EQ(layers_of(mlp, "naive", Phase::forward), separate);
  EXPECT_EQ(layers_of(mlp, "serial,matmul=packed_openmp", Phase::forward), separate)
      << "on the CPU";
}

TEST_F(DeviceNetwork, TheInputGradientProductFusesTheReluGradient) {
  const NetworkDescription mlp = shrunk("mlp", 2);
  const Names fused = {"fc3.backward_data",
                       "fc3.backward_weights",
                       "fc3.bias",
                       "fc2.backward_data",
                       "fc2.backward_weights",
                       "fc2.bias",
                       "fc1.backward_weights",
                       "fc1.bias"};
  Names separate = fused;
  separate.insert(separate.begin() + 3, "relu2");
  separate.insert(separate.begin() + 7, "relu1");
  EXPECT_EQ(layers_of(mlp, "naive,matmul=vectorized", Phase::backward), fused);
  EXPECT_EQ(layers_of(mlp, "naive", Phase::backward), separate);
  EXPECT_EQ(layers_of(mlp, "serial,matmul=packed_openmp", Phase::backward), separate)
      << "on the CPU";
}

TEST_F(DeviceNetwork, OnlyAReluDirectlyAfterAFullyConnectedLayerIsFused) {
  EXPECT_EQ(layers_of(shrunk("mnist_cnn", 2), "naive,matmul=vectorized,max_pool=vectorized",
                      Phase::forward),
            (Names{"conv1", "conv1.bias", "relu1", "lrn1", "pool1", "conv2", "conv2.bias", "relu2",
                   "lrn2", "pool2", "fc1", "fc2", "softmax1"}));
  EXPECT_EQ(layers_of(shrunk("mnist_cnn", 2), "naive,matmul=vectorized", Phase::backward),
            (Names{"fc2.backward_data", "fc2.backward_weights", "fc2.bias", "fc1.backward_data",
                   "fc1.backward_weights", "fc1.bias", "pool2", "lrn2", "relu2",
                   "conv2.backward_data", "conv2.backward_weights", "conv2.bias", "pool1", "lrn1",
                   "relu1", "conv1.backward_weights", "conv1.bias"}));
}

std::size_t launches_of_a_step(const NetworkDescription& description, const std::string& use) {
  PlanStore plans(seed);
  TrainableNetwork network(description, UseSpec(use), {.seed = seed, .graph = false}, plans);
  const std::size_t before = simt::calls.launches;
  loss_of_step(network, 0, 0.1);
  return simt::calls.launches - before;
}

TEST_F(DeviceNetwork, FusionSavesSevenLaunchesInAStepOfTheMultilayerPerceptron) {
  const NetworkDescription mlp = shrunk("mlp", 2);  // three biases, two ReLUs and their gradients
  EXPECT_EQ(launches_of_a_step(mlp, "naive"), 20U);
  EXPECT_EQ(launches_of_a_step(mlp, "naive,matmul=vectorized"), 13U);
}

// --- max_pool: the convolution's bias and the ReLU -----------------------------------------------

// A convolution, the given layers, and a fully connected layer.
NetworkDescription convolution_then(const std::vector<network::Layer>& layers) {
  NetworkDescription description;
  description.name = "convolution";
  description.input = {2, 9, 8};
  description.classes = 4;
  description.batch = 3;
  const auto add = [&](const char* name, network::Layer layer) {
    network::LayerDescription& added = description.layers.emplace_back();
    added.name = name;
    added.layer = std::move(layer);
  };
  add("conv1",
      network::Convolution{.filters = 3, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  for (const network::Layer& layer : layers)
    add(std::holds_alternative<network::Relu>(layer) ? "relu1" : "pool1", layer);
  add("fc1", network::FullyConnected{4});
  add("softmax1", network::SoftmaxCrossEntropy{});
  network::infer_shapes(description);
  return description;
}
const network::MaxPool fusible{3, 3, 2, 2, 1, 1}, not_fusible{2, 3, 2, 2, 0, 0};

TEST_F(DeviceNetwork, APoolFusesBiasAndReluWhereARungHasAnEpilogue) {
  const Names forward = {"conv1", "pool1", "fc1", "fc1.bias", "softmax1"},
              forward_separate = {"conv1", "pool1",    "conv1.bias", "relu1",
                                  "fc1",   "fc1.bias", "softmax1"},
              backward = {"fc1.backward_data", "fc1.backward_weights", "fc1.bias", "pool1",
                          "conv1.backward_weights"},
              backward_separate = {"fc1.backward_data",
                                   "fc1.backward_weights",
                                   "fc1.bias",
                                   "relu1",
                                   "conv1.bias",
                                   "pool1",
                                   "conv1.backward_weights"};
  for (const std::vector<network::Layer>& layers :
       {std::vector<network::Layer>{fusible, network::Relu{}}, {network::Relu{}, fusible}}) {
    const NetworkDescription description = convolution_then(layers);
    EXPECT_EQ(layers_of(description, "naive,max_pool=vectorized", Phase::forward), forward);
    EXPECT_EQ(layers_of(description, "naive,max_pool=vectorized", Phase::backward), backward);
    EXPECT_EQ(layers_of(description, "naive,max_pool=cuda", Phase::backward), backward)
        << "one of the rungs has one";
    EXPECT_EQ(layers_of(description, "naive", Phase::forward), forward_separate);
    EXPECT_EQ(layers_of(description, "naive", Phase::backward), backward_separate);
    EXPECT_EQ(layers_of(description, "serial", Phase::backward), backward_separate) << "on the CPU";
    expect_as_on_the_cpu(description, "naive,max_pool=vectorized");
  }
}

TEST_F(DeviceNetwork, APoolThatNoRungFusesIsFollowedByBiasAndRelu) {
  const NetworkDescription description = convolution_then({not_fusible, network::Relu{}});
  EXPECT_EQ(layers_of(description, "naive,max_pool=cuda", Phase::forward),
            (Names{"conv1", "pool1", "conv1.bias", "relu1", "fc1", "fc1.bias", "softmax1"}));
  expect_as_on_the_cpu(description, "naive,max_pool=cuda");
}

TEST_F(DeviceNetwork, APoolWithoutAReluAfterItIsFollowedByTheBias) {
  const NetworkDescription description = convolution_then({fusible});
  EXPECT_EQ(layers_of(description, "naive,max_pool=vectorized", Phase::forward),
            (Names{"conv1", "pool1", "conv1.bias", "fc1", "fc1.bias", "softmax1"}));
  expect_as_on_the_cpu(description, "naive,max_pool=vectorized");
}

TEST_F(DeviceNetwork, FusionSavesEightLaunchesInAStepOfTheCifarCnn) {
  const NetworkDescription cifar = shrunk("cifar_cnn", 2);  // four per pool
  EXPECT_EQ(launches_of_a_step(cifar, "naive,max_pool=vectorized") + 8,
            launches_of_a_step(cifar, "naive"));
}

// --- a recorded step: independent operations run concurrently ------------------------------------

// The state of a network after some steps, to compare bit for bit.
struct Outcome {
  std::vector<double> losses;
  std::vector<float> parameters, gradients;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(TrainableNetwork& network) {
  Outcome all{trace(network), {}, {}};
  network.download();
  all.parameters.assign(network.parameters().begin(), network.parameters().end());
  all.gradients.assign(network.gradients().begin(), network.gradients().end());
  return all;
}

TEST_F(DeviceNetwork, ConcurrentOperationsGiveTheSameBits) {
  using sgd_update::Optimizer;
  const char* const uses[] = {"naive,matmul=vectorized", "naive,matmul=split_k", "cuda"};
  for (std::uint64_t i = 0; i < 24; ++i) {
    NetworkDescription description = random_network(100 + i, false);
    description.optimizer.type = static_cast<Optimizer>(i % 6);
    description.optimizer.learning_rate = 0.01;
    description.optimizer.epsilon = 1e-3;
    description.optimizer.weight_decay = i % 2 == 0 ? 0.01 : 0;
    description.optimizer.weight_decay_on =
        network::OptimizerDescription::DecayedWeights::fully_connected;
    PlanStore plans(seed);
    const UseSpec use(i % 8 == 0 ? uses[2] : uses[i % 2]);
    TrainableNetwork recorded(description, use, {.seed = seed}, plans),
        in_turn(description, use, {.seed = seed, .graph = false}, plans);
    EXPECT_EQ(outcome(recorded), outcome(in_turn)) << description.name;
  }
}

// A weight gradient that does not declare what it reads, or what it writes, runs too early or too
// late.
TEST_F(DeviceNetwork, AnOperationThatDeclaresTooFewAccessesIsDetected) {
  const NetworkDescription description = shrunk("mlp", 3);
  PlanStore plans(seed);
  const UseSpec use("naive,matmul=vectorized");
  TrainableNetwork in_turn(description, use, {.seed = seed, .graph = false}, plans);
  const Outcome expected = outcome(in_turn);
  for (const bool of_writes : {false, true}) {
    int wrong = 0;
    for (int attempt = 0; attempt < 10; ++attempt) {  // some orders do no harm
      TrainableNetwork network(description, use, {.seed = seed}, plans);
      for (Operation& operation : network.operations())
        if (operation.layer == "fc2.backward_weights")
          operation.accesses = [declared = operation.accesses, of_writes] {
            std::vector<Access> rest = declared();
            std::erase_if(rest, [&](const Access& access) { return access.writes == of_writes; });
            return rest;
          };
      wrong += outcome(network) == expected ? 0 : 1;
    }
    EXPECT_GT(wrong, 0) << (of_writes ? "writes" : "reads");
  }
}

// The number of operations on the longest path of dependencies.
std::size_t longest_chain(const NetworkDescription& description, const std::string& use) {
  PlanStore plans(seed);
  TrainableNetwork network(description, UseSpec(use), {.seed = seed}, plans);
  std::vector<std::vector<Access>> accesses;
  for (const Operation& operation : network.operations())
    if (operation.layer != "images" && operation.layer != "labels")
      accesses.push_back(operation.accesses());
  std::vector<std::size_t> length;  // of the longest path that ends at each operation
  for (const std::vector<std::size_t>& after : dependencies(accesses)) {
    std::size_t longest = 0;
    for (const std::size_t before : after) longest = std::max(longest, length[before]);
    length.push_back(longest + 1);
  }
  return *std::max_element(length.begin(), length.end());
}

TEST_F(DeviceNetwork, ParameterGradientsAreOffTheCriticalPath) {
  // Three products, softmax, two gradients of inputs, that of the first layer's weights, the
  // update.
  EXPECT_EQ(longest_chain(shrunk("mlp", 2), "naive,matmul=vectorized"), 8U);
}

TEST_F(DeviceNetwork, APlanThatCannotBeRecordedIsNamed) {
  PlanStore plans(seed);
  TrainableNetwork network(shrunk("mlp", 2), UseSpec("naive"), {.seed = seed}, plans);
  network.operations().push_back(
      {.layer = "extra", .phase = Phase::update, .variant = "allocating", .run = [] {
         device()->release(device()->allocate(4));
       }});
  fill_batch(network, seed);
  for (int attempt = 0; attempt < 2; ++attempt)
    EXPECT_TRUE(says(error_of([&] { network.step(0.1); }),
                     {"extra update with allocating cannot be recorded", "capturing"}));
}

TEST_F(DeviceNetwork, CopiesAreOperationsOfTheirOwn) {
  PlanStore plans(seed);
  TrainableNetwork network(shrunk("mlp", 2), UseSpec("naive"), {.seed = seed}, plans);
  std::vector<std::string> copies;
  for (const Operation& operation : network.operations())
    if (operation.phase == Phase::other) copies.push_back(operation.layer);
  EXPECT_EQ(copies, (std::vector<std::string>{"images", "labels", "loss"}));
}

TEST_F(DeviceNetwork, ATimedStepIsAStepThatTimesEveryKernel) {
  PlanStore plans(seed);
  const NetworkDescription description = shrunk("mlp", 2);
  TrainableNetwork timed(description, UseSpec("naive"), {.seed = seed}, plans),
      plain(description, UseSpec("naive"), {.seed = seed}, plans);
  for (int step = 0; step < 3; ++step) {
    fill_batch(timed, seed), fill_batch(plain, seed);
    EXPECT_EQ(timed.timed_step(0.1), plain.step(0.1));
  }
  for (const Operation& operation : timed.operations()) {
    const double least = operation.phase == Phase::other ? 0 : 1e-9;  // copies are deferred
    EXPECT_GE(operation.seconds, least) << operation.layer;
  }
}

TEST_F(DeviceNetwork, RungsOfTwoPlacesAreRejected) {
  PlanStore plans(seed);
  const NetworkDescription description = shrunk("cifar_cnn", 2);
  EXPECT_TRUE(says(error_of([&] {
                     TrainableNetwork(description, UseSpec("cuda,convolution=direct"), {}, plans);
                   }),
                   {"--use cuda,convolution=direct", "one memory", "convolution on the CPU"}));
  EXPECT_EQ(place_of(shrunk("mlp", 2), UseSpec("cuda,convolution=direct")), Place::cuda)
      << "the network has no convolutions";
  EXPECT_EQ(place_of(description, UseSpec("best")), Place::cpu);
}

TEST_F(DeviceNetwork, InterOperationThreadsAreRejected) {
  PlanStore plans(seed);
  EXPECT_TRUE(says(
      error_of([&] { TrainableNetwork(shrunk("mlp", 2), UseSpec("naive"), {.inter = 2}, plans); }),
      {"--inter"}));
}

// --- training: the next batch is prepared and uploaded while a step runs -------------------------

data::Dataset noise(int count) {
  data::Dataset set{1, 10, 10, 10, {}, {}, "generated"};
  Random random(seed, "noise");
  for (int n = 0; n < count; ++n) {
    set.labels.push_back(static_cast<std::uint8_t>(random.integer(0, 9)));
    for (int pixel = 0; pixel < 100; ++pixel) set.images.push_back(random.uniform(-1, 1));
  }
  return set;
}

// Losses and epochs of all steps, and the accuracy every few steps, which must not disturb the
// batches.
std::vector<double> train(const NetworkDescription& description, const std::string& use) {
  const data::Dataset set = noise(23);
  PlanStore plans(seed);
  TrainableNetwork network(description, UseSpec(use), {.seed = seed}, plans);
  Trainer trainer(network, set, seed, 1);
  std::vector<double> seen;
  for (int step = 0; step < 12; ++step) {
    trainer.step();
    seen.push_back(trainer.loss());
    seen.push_back(trainer.epoch());
    if (step % 3 == 2) seen.push_back(accuracy_on(network, set));
  }
  return seen;
}

TEST_F(DeviceTraining, SeesTheSameBatchesAsOnTheCpu) {
  NetworkDescription description = shrunk("mlp", 4);
  description.optimizer.decay = 0.9;
  description.optimizer.decay_every_samples = 12;
  expect_near(train(description, "naive"), train(description, "serial"));
}

}  // namespace
}  // namespace stepladder
