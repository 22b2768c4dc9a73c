// One process, one replica: the reference for the synchronous modes, and the only mode on a device.
#include <stdexcept>

#include "harness/training/forecast.hpp"
#include "harness/training/mode.hpp"
#include "harness/training/trainer.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "single",
    .idea = "one process trains the network on whole batches",
    .replicas = ModeInfo::Replicas::one,
    .synchronous = true,
    .divides_batches = false,
};

class Single final : public Mode {
 public:
  Single(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name),
        network_(setup.description, setup.use, {.threads = setup.threads, .seed = setup.seed},
                 *setup.plans),
        trainer_(network_, *setup.data, setup.seed, setup.shift) {
    if (communicator().ranks() > 1)
      throw std::runtime_error("mode single runs on one rank; start it without mpirun");
  }

  TrainableNetwork& network() override { return network_; }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    trainer_.start_at(progress.step);
  }

 private:
  void train_to(std::int64_t step) override {
    while (progress().step < step) {
      const double rate = learning_rate(progress().step);
      compute(static_cast<double>(batch()), [&] { trainer_.step(rate); });
      finished(trainer_.loss(), rate);
    }
  }

  TrainableNetwork network_;
  Trainer trainer_;
};

void forecast(Forecast& f) {
  if (f.cluster.ranks > 1) throw CannotRun("it runs on one rank");
  f.one_replica();
}

const ModeRegistration registration(info, make_mode<Single>, forecast);

}  // namespace
}  // namespace stepladder
