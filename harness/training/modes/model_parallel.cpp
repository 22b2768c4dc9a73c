// Model parallel: the filters and neurons of every layer are divided among the ranks, all of which
// work on the same batch (split_network.hpp). Nothing is exchanged but activations and their
// gradients: this pays where a layer has more weights than activations, as fully connected ones do.
#include "harness/data/batches.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/split_network.hpp"
#include "harness/training/modes/synchronous_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "model_parallel",
    .idea = "filters and neurons are divided among the ranks, which exchange activations",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = true,
    .divides_batches = false,
};

class ModelParallel final : public SynchronousMode {
 public:
  ModelParallel(const TrainingSetup& setup, const ModeSpec&)
      : SynchronousMode(setup, info.name),
        split_(setup, communicator()),
        batches_(*setup.data, static_cast<int>(batch()), setup.seed, setup.shift) {}

  TrainableNetwork& network() override { return split_.whole(); }
  void collect() override { split_.collect(); }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    split_.take();
    split_.set_next_step(progress.step + 1);
  }
  std::string remark(const Progress&) const override { return split_.exchanges(); }

 private:
  double step(double rate) override {
    const double bytes = split_.bytes_sent();
    double loss = 0;
    const auto work = [&] {
      batches_.draw(progress().step, 0, network().images(), network().labels());
      loss = split_.forward();
      split_.backward();
      split_.update(rate);
    };
    split_.set_next_step(progress().step + 1);
    compute_and_exchange(static_cast<double>(batch()) / communicator().ranks(),
                         split_.exchange_seconds(), work);
    sent(split_.bytes_sent() - bytes);
    return loss / communicator().ranks();
  }

  SplitNetwork split_;
  data::Batches batches_;
};

void forecast(Forecast& f) {
  const StepTimes& times = f.times.split(f.batch(), f.cluster.ranks, f.cluster.ranks);
  f.predicted.compute = times.slowest_step;
  if (f.cluster.ranks > 1)
    f.predicted.exposed =
        f.exchange(f.batch(), f.cluster.ranks, [&](double bytes) { return f.shift(bytes); });
}

const ModeRegistration registration(info, make_mode<ModelParallel>, forecast);

}  // namespace
}  // namespace stepladder
