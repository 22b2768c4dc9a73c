// Local SGD (Stich, Local SGD converges fast and communicates little, 2019): every replica updates
// weights of its own; every H steps all take the mean of the weights. Communication is 1/H of
// synchronous SGD's. With H = 1 both are the same for optimizers that are linear in the gradient.
//
// Block momentum (Chen and Huo, Scalable training of deep learning machines by incremental block
// training, 2016) treats the change of the mean over a block as a gradient:
//
//     change = m * change + (mean - weights);  weights = weights + change
//
// The optimizer's state stays with its replica.
#include <vector>

#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/exchange.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/synchronous_mode.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "local_sgd",
    .idea = "every replica updates weights of its own; every few steps all take their mean",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = true,
    .options = {{"every", "8", "steps between two means"},
                {"block_momentum", "0", "momentum of the change from mean to mean"}},
};

class LocalSgd final : public SynchronousMode {
 public:
  LocalSgd(const TrainingSetup& setup, const ModeSpec& spec)
      : SynchronousMode(setup, info.name),
        replica_(setup, setup.use, communicator().rank(), communicator().ranks(),
                 {.exchange = Exchange::none}),
        mean_(setup, setup.use, replica_.network()),
        every_(spec.integer("every", 1)),
        momentum_(spec.number("block_momentum")) {
    forget_block();
  }

  TrainableNetwork& network() override { return replica_.network(); }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    forget_block();
  }
  std::string all_reduce() const override { return mean_.variant(); }

 private:
  // A training ends with a block: it may make up to every - 1 steps more.
  bool may_stop() const override { return block_ == 0; }
  double step(double rate) override {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(progress().step);
      loss = replica_.gradient();
      replica_.update(rate);
    });
    if (++block_ == every_) average();
    return loss;
  }

  // The all-reduce works on the memory of the gradients, which no replica needs now.
  void average() {
    const auto gradients = replica_.gradients();
    const auto weights = replica_.parameters();
    compute(0, [&] { std::ranges::copy(weights, gradients.begin()); });
    blocked([&] { mean_.run(); });
    sent(mean_.bytes());
    compute(0, [&] {
      if (momentum_ == 0) {
        std::ranges::copy(gradients, weights.begin());
        return;
      }
      add_momentum(change_, momentum_, gradients, start_, weights);
    });
    block_ = 0;
  }

  void forget_block() {
    block_ = 0;
    if (momentum_ == 0) return;
    start_.assign(replica_.parameters().begin(), replica_.parameters().end());
    change_.assign(start_.size(), 0.0F);
  }

  Replica replica_;
  GradientExchange mean_;
  std::int64_t every_, block_ = 0;  // steps of a block, and of the present one
  float momentum_;
  std::vector<float> start_, change_;  // of a block, with block momentum: weights; see above
};

void forecast(Forecast& f) {
  const auto every = static_cast<double>(f.mode.integer("every", 1));
  const Forecast::Reduction mean = f.all_reduce(f.use, f.n());
  const bool has_momentum = f.mode.number("block_momentum") > 0;
  const StepTimes& times = f.times.whole(f.part(f.cluster.ranks), f.cluster.ranks);
  f.predicted.all_reduce = mean.rung;
  f.predicted.exposed = mean.seconds / every;
  f.predicted.bytes = mean.bytes / every;
  // Ranks wait for each other only at the mean.
  f.predicted.compute =
      times.free_step + ((has_momentum ? 3 : 1) * f.copy(f.n()) + f.copy(f.n())) / every;
}

const ModeRegistration registration(info, make_mode<LocalSgd>, forecast);

}  // namespace
}  // namespace stepladder
