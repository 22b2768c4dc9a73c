#include "harness/planner/layer_times.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "harness/data/batches.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/problem/random.hpp"
#include "harness/training/modes/segments.hpp"
#include "harness/training/modes/thread_replicas.hpp"
#include "kernels/common/cpu/partition.hpp"
#include "kernels/common/integer_math.hpp"

namespace stepladder {

using network::NetworkDescription;

// The whole network, or the segments of a divided one.
class MeasuredLayerTimes::Replica {
 public:
  struct Phases {
    double draw = 0, forward = 0, backward = 0, update = 0;
    double gradient() const { return draw + forward + backward; }
    double step() const { return gradient() + update; }
  };

  Replica(const TrainingSetup& setup, const std::vector<NetworkDescription>& parts)
      : images_(static_cast<std::size_t>(parts.front().batch) * setup.data->image_size()),
        batches_(*setup.data, static_cast<int>(parts.front().batch), setup.seed, setup.shift) {
    Random random(setup.seed, "activations");
    for (const NetworkDescription& part : parts) {
      const NetworkOptions options{.threads = setup.threads,
                                   .seed = setup.seed,
                                   .exchange = Exchange::none,
                                   .shared_gradients = false,
                                   .input_gradient = !parts_.empty()};
      parts_.push_back(std::make_unique<TrainableNetwork>(part, setup.use, options, *setup.plans));
      TrainableNetwork& network = *parts_.back();
      for (float& value : network.images()) value = random.uniform(0.0F, 1.0F);
      if (&part != &parts.back())
        for (float& value : network.output_gradient()) value = random.uniform(-0.1F, 0.1F);
      for (const network::LayerDescription& layer : network::pool_before_relu(part).layers)
        layers_.push_back({{layer.name, 0, 0, layer.weights() + layer.biases()}, {}, {}});
    }
  }

  // With learning rate 0: every step does the same work.
  Phases step() {
    Phases phases;
    double start = training_clock();
    const auto lap = [&] {
      const double end = training_clock();
      return end - std::exchange(start, end);
    };
    batches_.draw(number_++, 0, images_, parts_.back()->labels());
    std::copy_n(images_.begin(), parts_.front()->images().size(), parts_.front()->images().begin());
    phases.draw = lap();
    for (const auto& part : parts_) part->forward();
    phases.forward = lap();
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) (*part)->backward();
    phases.backward = lap();
    phases.update = update();
    return phases;
  }
  double update() {
    const double start = training_clock();
    for (const auto& part : parts_) part->update(0.0);
    return training_clock() - start;
  }

  // After step().
  void record(const Phases& phases) {
    phases_.push_back(phases);
    for (Layer& layer : layers_) {
      layer.forward.push_back(0);
      layer.backward.push_back(0);
    }
    for (const auto& part : parts_)
      for (const Operation& operation : part->operations()) {
        const std::string name = operation.layer.substr(0, operation.layer.find('.'));
        for (Layer& layer : layers_)
          if (layer.median.name == name && operation.phase == Phase::forward)
            layer.forward.back() += operation.seconds;
          else if (layer.median.name == name && operation.phase == Phase::backward)
            layer.backward.back() += operation.seconds;
      }
  }
  StepTimes medians() const {
    StepTimes times;
    const auto of = [&](double Phases::*phase) {
      std::vector<double> seconds;
      for (const Phases& phases : phases_) seconds.push_back(phases.*phase);
      return median(std::move(seconds));
    };
    times.draw = of(&Phases::draw);
    times.forward = of(&Phases::forward);
    times.backward = of(&Phases::backward);
    times.update = of(&Phases::update);
    for (const Layer& layer : layers_) {
      times.layers.push_back(layer.median);
      times.layers.back().forward = median(layer.forward);
      times.layers.back().backward = median(layer.backward);
    }
    for (const auto& [from, to] : parts_.front()->parts().updates)
      times.updated.push_back(static_cast<double>(to - from) * sizeof(float));
    return times;
  }

 private:
  struct Layer {
    StepTimes::Layer median;
    std::vector<double> forward, backward;
  };

  std::vector<std::unique_ptr<TrainableNetwork>> parts_;
  std::vector<float> images_;
  data::Batches batches_;
  std::int64_t number_ = 0;
  std::vector<Phases> phases_;
  std::vector<Layer> layers_;
};

MeasuredLayerTimes::MeasuredLayerTimes(const TrainingSetup& setup, int hosts, int cores)
    : setup_(setup), hosts_(hosts), cores_(cores) {}

const StepTimes& MeasuredLayerTimes::whole(std::int64_t samples, int active) {
  StepTimes& times = known_[{samples, 0, active}];
  if (times.layers.empty())
    times = measure({network::with_batch(setup_.description, samples)}, active);
  return times;
}

const StepTimes& MeasuredLayerTimes::split(std::int64_t samples, int ranks, int active) {
  StepTimes& times = known_[{samples, ranks, active}];
  if (times.layers.empty()) {
    std::vector<NetworkDescription> parts;
    for (const SplitSegment& segment :
         split_segments(network::with_batch(setup_.description, samples), ranks))
      parts.push_back(segment.part);
    times = measure(parts, active);
  }
  return times;
}

StepTimes MeasuredLayerTimes::measure(const std::vector<NetworkDescription>& parts, int active) {
  const bool over_ranks = communicator_.ranks() > 1;
  const int of_host = over_ranks ? 1 : ceil_div(active, hosts_),
            threads = std::clamp(cores_ / setup_.threads, 1, of_host);
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int i = 0; i < threads; ++i) replicas.push_back(std::make_unique<Replica>(setup_, parts));
  // The last ranks compute: where some do not, the first is a server.
  const bool computes = communicator_.rank() >= communicator_.ranks() - active || !over_ranks;
  ThreadPool pool(threads);
  if (threads > 1) pool.run([](int) { run_on_any_core(); });
  const auto on_all = [&](const std::function<void(std::size_t)>& work) {
    communicator_.maximum(0);
    mpi_session().barrier();
    if (computes) pool.run([&](int thread) { work(static_cast<std::size_t>(thread)); });
  };

  constexpr int warm_up = 2, least = 9, most = 100;
  constexpr double enough = 0.2;  // seconds of steps
  std::vector<double> gradients, steps, alone;
  std::vector<Replica::Phases> now(replicas.size());
  double seconds = 0;
  for (int i = -warm_up; i < most && (i < least || seconds < enough); ++i) {
    on_all([&](std::size_t r) { now[r] = replicas[r]->step(); });
    double gradient = 0, step = 0;
    for (const Replica::Phases& phases : now) {
      gradient = std::max(gradient, phases.gradient());
      step = std::max(step, phases.step());
    }
    gradient = communicator_.maximum(gradient);
    step = communicator_.maximum(step);
    const bool is_last = communicator_.rank() == communicator_.ranks() - 1;
    const double update = communicator_.maximum(is_last ? replicas.front()->update() : 0);
    if (i < 0) continue;
    if (computes)
      for (std::size_t r = 0; r < replicas.size(); ++r) replicas[r]->record(now[r]);
    gradients.push_back(gradient);
    steps.push_back(step);
    alone.push_back(update);
    seconds += step;
  }
  const auto repetitions = static_cast<int>(steps.size());
  std::vector<double> free(replicas.size());
  on_all([&](std::size_t r) {
    const double start = training_clock();
    for (int i = 0; i < repetitions; ++i) replicas[r]->step();
    free[r] = (training_clock() - start) / repetitions;
  });

  // The mean over the replicas of all ranks.
  std::vector<double> sums;
  StepTimes times;
  if (!computes) replicas.front()->record({});
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    const StepTimes own = replicas[r]->medians();
    std::vector<double> values = {own.draw, own.forward, own.backward, own.update, free[r]};
    for (const StepTimes::Layer& layer : own.layers) {
      values.push_back(layer.forward);
      values.push_back(layer.backward);
    }
    sums.resize(values.size());
    for (std::size_t i = 0; computes && i < values.size(); ++i) sums[i] += values[i];
    times = own;
  }
  communicator_.sum(sums);
  const int count = over_ranks ? active : threads;
  const double scale =
      over_ranks ? 1 : std::max(1.0, double{1} * of_host * setup_.threads / cores_);
  for (double& value : sums) value *= scale / count;
  times.draw = sums[0];
  times.forward = sums[1];
  times.backward = sums[2];
  times.update = sums[3];
  times.free_step = sums[4];
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    times.layers[i].forward = sums[5 + 2 * i];
    times.layers[i].backward = sums[6 + 2 * i];
  }
  times.slowest_gradient = median(gradients) * scale;
  times.slowest_step = median(steps) * scale;
  times.update_alone = median(alone);
  return times;
}

}  // namespace stepladder
