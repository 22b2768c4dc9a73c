// Inference: its outputs are those of the fp64 references, whatever serves them, and its
// percentiles those of the requests.
#include "harness/execution/inference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/common/cpu/extensions.hpp"
#include "tests/error_messages.hpp"
#include "tests/harness/training/training_networks.hpp"
#include "tests/temporary_folder.hpp"

namespace stepladder {
namespace {

constexpr std::uint64_t seed = 5;

std::vector<float> random_images(const network::NetworkDescription& description) {
  Random random(seed, "images");
  std::vector<float> images(
      static_cast<std::size_t>(description.batch * description.input.features()));
  for (float& pixel : images) pixel = random.uniform(-1.0F, 1.0F);
  return images;
}

Service service_of(const network::NetworkDescription& description, const std::string& use,
                   PlanStore& plans, Split split = Split::inside, int threads = 1) {
  return make_service(description, UseSpec(use), split, threads, seed, {}, nullptr, plans);
}

std::set<std::string> variants_of(const TrainableNetwork& network) {
  std::set<std::string> all;
  for (const Operation& operation : network.operations()) all.insert(operation.variant);
  return all;
}

using ManySeries = std::vector<RequestSeries>;

RequestSeries series_of(std::vector<double> latencies, double elapsed) {
  return {.latencies = std::move(latencies), .elapsed = elapsed};
}

TEST(LatencyOf, HasThePercentilesOfAllRequests) {
  std::vector<double> latencies(100);
  std::iota(latencies.begin(), latencies.end(), 1.0);
  std::ranges::reverse(latencies);
  const std::vector<double> first(latencies.begin(), latencies.begin() + 60),
      second(latencies.begin() + 60, latencies.end());  // 100 to 41, and 40 to 1
  const std::vector<ManySeries> one_rank(1,
                                         ManySeries{series_of(first, 30), series_of(second, 40)});
  const Latency found = latency_of(one_rank, /*batch=*/8);
  EXPECT_EQ(found.requests, 100);
  EXPECT_EQ(found.p50, 50);
  EXPECT_EQ(found.p90, 90);
  EXPECT_EQ(found.p99, 99);
  EXPECT_EQ(found.max, 100);
  EXPECT_EQ(found.median.median, (70.5 + 20.5) / 2);
  EXPECT_EQ(found.median.ci_low, 20.5);
  EXPECT_EQ(found.median.ci_high, 70.5);
  EXPECT_EQ(found.samples_per_second, (8 * 60 / 30.0 + 8 * 40 / 40.0) / 2);
}

TEST(LatencyOf, AddsTheThroughputOfRanksAndTakesPercentilesOverAll) {
  std::vector<ManySeries> by_rank;
  by_rank.push_back(ManySeries{series_of({1, 1, 1}, 3), series_of({1, 1}, 2)});
  by_rank.push_back(ManySeries{series_of({4}, 4), series_of({8}, 8)});
  const Latency found = latency_of(by_rank, /*batch=*/2);
  EXPECT_EQ(found.requests, 7);
  EXPECT_EQ(found.p50, 1);
  EXPECT_EQ(found.max, 8);
  EXPECT_EQ(found.samples_per_second, ((2 + 0.5) + (2 + 0.25)) / 2);
}

TEST(Inference, HasTheOutputsOfTheReferencesWithEachChoiceOfRungs) {
  std::vector<const char*> uses = {"serial", "simd", "openmp", "best", "vendor"};
  if (cpu_has(Extension::avx512_bf16)) uses.push_back("best,matmul=packed_bf16");
  if (cpu_has(Extension::amx_bf16))
    uses.push_back("best,matmul=packed_bf16_amx,convolution=direct_amx");
  if (cpu_has(Extension::amx_int8))
    uses.push_back("best,matmul=prepacked_int8_amx,convolution=direct_int8_amx");
  if (cpu_has(Extension::avx512_vnni)) {
    uses.push_back("int8");
    uses.push_back("best,matmul=prepacked_int8,convolution=direct_int8");
  }
  for (const char* use : uses)
    for (const int threads : {1, 2}) {
      PlanStore plans(seed);
      const network::NetworkDescription description = builtin_network("mnist_cnn", 3);
      Service service = service_of(description, use, plans, Split::inside, threads);
      const std::vector<float> images = random_images(description);
      const Outputs reference = reference_outputs(*service.networks.front(), images);
      EXPECT_LE(serve_once(service, images, reference), 0.5) << use << " " << threads;
    }
}

TEST(Inference, HasTheOutputsOfTheReferencesOnRandomNetworks) {
  for (std::uint64_t number = 1; number <= 25; ++number) {
    PlanStore plans(number);
    const network::NetworkDescription description = random_network(number);
    Service service = service_of(description, "simd", plans);
    const std::vector<float> images = random_images(description);
    const Outputs reference = reference_outputs(*service.networks.front(), images);
    EXPECT_LE(serve_once(service, images, reference), 1) << number;
  }
}

TEST(Inference, ComputesWhatTheEvaluationOfATrainingDoes) {
  for (std::uint64_t number = 1; number <= 10; ++number) {
    PlanStore plans(number);
    const network::NetworkDescription description = random_network(number);
    TrainableNetwork training(description, UseSpec("serial"), {.seed = seed}, plans);
    TrainableNetwork inference(description, UseSpec("serial"), {.seed = seed, .inference = true},
                               plans);
    for (TrainableNetwork* network : {&training, &inference}) {
      fill_batch(*network, seed);
      network->evaluate();
    }
    EXPECT_TRUE(std::ranges::equal(training.probabilities(), inference.probabilities())) << number;
    EXPECT_TRUE(std::ranges::equal(training.logits(), inference.logits())) << number;
  }
}

TEST(Inference, HasNoGradientsNoDropoutAndOnlyForwardOperations) {
  PlanStore plans(seed);
  TrainableNetwork network(small_network(4), UseSpec("serial"), {.inference = true}, plans);
  EXPECT_TRUE(network.gradients().empty());
  EXPECT_TRUE(network.state1().empty());
  EXPECT_FALSE(network.operations().empty());
  for (const Operation& operation : network.operations()) {
    EXPECT_EQ(operation.phase, Phase::forward) << operation.layer;
    EXPECT_EQ(operation.layer.find("dropout"), std::string::npos);
  }
  std::size_t with_memory = 0;
  for (const float* gradient : network.parts().activation_gradients)
    with_memory += gradient != nullptr;
  EXPECT_EQ(with_memory, 1U);  // which softmax writes
}

TEST(Inference, FindsAWrongWeight) {
  PlanStore plans(seed);
  const network::NetworkDescription description = builtin_network("mlp", 4);
  Service service = service_of(description, "serial", plans);
  TrainableNetwork& network = *service.networks.front();
  const std::vector<float> images = random_images(description);
  const Outputs reference = reference_outputs(network, images);
  EXPECT_LE(serve_once(service, images, reference), 1);
  network.parameters()[0] += 0.1F;
  EXPECT_GT(serve_once(service, images, reference), 1);
  network.parameters()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(serve_once(service, images, reference), std::numeric_limits<double>::infinity());
}

TEST(Inference, PacksTheWeightsAnewAfterTheyChange) {
  for (const char* use : {"prepacked", "best,matmul=prepacked", "onednn_prepacked"}) {
    PlanStore plans(seed);
    const network::NetworkDescription description = builtin_network("mlp", 5);
    std::optional<Service> made;
    try {
      made = service_of(description, use, plans, Split::requests, 2);
    } catch (const NoVariant& error) {
      std::cout << use << " is not here: " << error.what() << '\n';
      continue;
    }
    Service& service = *made;
    TrainableNetwork& owner = *service.networks.front();
    EXPECT_TRUE(std::ranges::any_of(variants_of(owner), [](const std::string& name) {
      return name.find("prepacked") != std::string::npos;
    })) << use;
    const std::vector<float> images = random_images(description);
    const Outputs before = reference_outputs(owner, images);
    EXPECT_LE(serve_once(service, images, before), 1) << use;

    for (float& weight : owner.parameters()) weight *= -1.5F;
    for (const auto& network : service.networks) network->upload_parameters();
    EXPECT_GT(serve_once(service, images, before), 1) << use;
    EXPECT_LE(serve_once(service, images, reference_outputs(owner, images)), 1) << use;
  }
}

TEST(Inference, NeedsAsManyParametersAsTheNetworkHas) {
  PlanStore plans(seed);
  const std::vector<float> three(3);
  const std::string error = error_of([&] {
    make_service(small_network(4), UseSpec("serial"), Split::inside, 1, seed, three, nullptr,
                 plans);
  });
  EXPECT_TRUE(says(error, {"the checkpoint has 3 parameters, the network "}));
}

TEST(Inference, RunsOnTheCpuOnly) {
  if (device() == nullptr) GTEST_SKIP() << device_status();
  PlanStore plans(seed);
  EXPECT_TRUE(says(error_of([&] { service_of(small_network(4), "cuda", plans); }),
                   {"inference runs on the CPU"}));
}

TEST(MeasureInference, ServesTheRequestsInsideAndAtOnce) {
  const TemporaryFolder folder;
  stepladder::Run run({.directory = folder / "run", .command = "test", .threads = {}});
  const network::NetworkDescription description = small_network(4);
  PlanStore plans(seed);
  std::vector<Service> services;
  services.push_back(service_of(description, "best", plans));
  services.push_back(make_service(description, UseSpec("best"), Split::requests, 2, seed, {},
                                  services.front().networks.front().get(), plans));
  EXPECT_EQ(services[0].networks.size(), 1U);
  ASSERT_EQ(services[1].networks.size(), 2U);
  EXPECT_EQ(variants_of(*services[1].networks[0]), variants_of(*services[1].networks[1]));
  const std::vector<float> images = random_images(description);
  const Outputs reference = reference_outputs(*services.front().networks.front(), images);
  for (Service& service : services) ASSERT_LE(serve_once(service, images, reference), 1);

  const std::vector<Latency> found =
      measure_inference(services, reference, run, {.repetitions = 5, .requests = 203});
  ASSERT_EQ(found.size(), 2U);
  for (std::size_t s = 0; s < 2; ++s) {
    const Latency& one = found[s];
    EXPECT_GE(one.requests, 203 / 2);                     // without those of disturbed repetitions
    EXPECT_EQ(one.requests % (s == 0 ? 41 : 2 * 21), 0);  // of a repetition
    EXPECT_GT(one.p50, 0);
    EXPECT_LE(one.p50, one.p90);
    EXPECT_LE(one.p90, one.p99);
    EXPECT_LE(one.p99, one.max);
    EXPECT_LE(one.median.ci_low, one.median.median);
    EXPECT_GE(one.median.ci_high, one.median.median);
    EXPECT_LE(one.error, 1);
    double shares = 0;
    for (const LayerLatency& layer : one.layers) shares += layer.share;
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_EQ(one.layers.size(), services[s].networks.front()->operations().size());
  }
  // One thread serves one request after the other.
  EXPECT_LE(found[0].samples_per_second, 1.2 * 4 / (0.5 * found[0].median.ci_low));
}

TEST(MeasureInference, FindsOutputsThatAreWrongAfterTheTiming) {
  const TemporaryFolder folder;
  stepladder::Run run({.directory = folder / "run", .command = "test", .threads = {}});
  const network::NetworkDescription description = small_network(4);
  PlanStore plans(seed);
  std::vector<Service> services;
  services.push_back(service_of(description, "serial", plans));
  TrainableNetwork& network = *services.front().networks.front();
  const Outputs reference = reference_outputs(network, random_images(description));
  // The network's images are not those of the reference.
  std::ranges::fill(network.images(), 0.5F);
  const std::vector<Latency> found =
      measure_inference(services, reference, run, {.repetitions = 2, .requests = 2});
  EXPECT_GT(found.front().error, 1);
}

}  // namespace
}  // namespace stepladder
