// Data parallel with threads of one process, as on many-core processors: each thread runs the whole
// network on its part of the batch, with weights that all share; then the threads add the
// gradients, each a slice, and update the weights. Against threads inside every operation this has
// three barriers per step in place of one per operation, and smaller operands.
#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/thread_replicas.hpp"
#include "kernels/common/cpu/partition.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "threads_over_samples",
    .idea = "threads of one process run the network on parts of the batch and share the weights",
    .replicas = ModeInfo::Replicas::threads,
    .synchronous = true,
    .divides_batches = true,
};

class ThreadsOverSamples final : public Mode {
 public:
  ThreadsOverSamples(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name), team_(setup, info.name, setup.replicas) {}

  TrainableNetwork& network() override { return team_.network(); }
  int replicas() const override { return team_.count(); }

 private:
  void train_to(std::int64_t last) override {
    while (progress().step < last) {
      const double rate = learning_rate(progress().step);
      double loss = 0;
      compute(static_cast<double>(batch()), [&] {
        team_.run([&](int thread) {
          Replica& replica = team_[thread];
          replica.draw(progress().step);
          team_.loss(thread) = replica.gradient();
        });
        team_.run([&](int thread) { add_slice(thread); });
        for (int thread = 0; thread < team_.count(); ++thread) loss += team_.loss(thread);
        team_[0].update(rate);
      });
      const double waiting = team_.take_waiting();
      progress_of_mode().waiting += waiting;
      progress_of_mode().compute -= waiting;
      finished(loss, rate);
    }
  }

  // The mean of one slice of the gradients, in those of replica 0.
  void add_slice(int thread) {
    const auto [begin, end] = partition(static_cast<std::int64_t>(team_[0].gradients().size()),
                                        team_.count(), thread, 16);
    const auto slice = [&, first = static_cast<std::size_t>(begin),
                        count = static_cast<std::size_t>(end - begin)](int of) {
      return std::span<float>(team_[of].gradients()).subspan(first, count);
    };
    for (int other = 1; other < team_.count(); ++other) add_to(slice(0), slice(other));
    divide(slice(0), static_cast<float>(team_.count()));
  }

  ThreadReplicas team_;
};

void forecast(Forecast& f) {
  f.require_one_host();
  const StepTimes& times = f.times.whole(f.part(f.cluster.ranks), f.cluster.ranks);
  f.compute_parts((f.p() - 1) * f.add(f.n() / f.p()) + f.copy(f.n() / f.p()) +
                  times.update_alone / std::min(f.cores(), f.p()));
}

const ModeRegistration registration(info, make_mode<ThreadsOverSamples>, forecast);

}  // namespace
}  // namespace stepladder
