// Lock-free threads on shared weights (Recht et al., Hogwild!, 2011; A3C: Mnih et al., 2016): each
// thread of one process computes the gradient of a whole batch with the weights as they are, and
// updates them in place without a lock. Threads overwrite each other's updates now and then, and
// read weights that are half updated; training converges in spite of both. By the rules of C++
// these are data races: the update is the same vectorized rung as in the other modes.
#include <atomic>
#include <mutex>

#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/thread_replicas.hpp"

namespace stepladder {
namespace {

const ModeInfo info{
    .name = "hogwild",
    .idea = "threads of one process update shared weights without locks",
    .replicas = ModeInfo::Replicas::threads,
    .synchronous = false,
    .divides_batches = false,
};

class Hogwild final : public Mode {
 public:
  Hogwild(const TrainingSetup& setup, const ModeSpec&)
      : Mode(setup, info.name), team_(setup, info.name, setup.replicas, true) {}

  TrainableNetwork& network() override { return team_.network(); }
  int replicas() const override { return team_.count(); }

 private:
  void train_to(std::int64_t last) override {
    std::atomic<std::int64_t> next = progress().step, updates = progress().step;
    std::mutex reporting;
    const double start = training_clock();
    team_.run([&](int thread) {
      Replica& replica = team_[thread];
      for (;;) {
        const std::int64_t number = next.fetch_add(1);
        if (number >= last) return;
        const std::int64_t read = updates.load();
        const double rate = learning_rate(number);
        replica.draw(number);
        const double loss = replica.gradient();
        replica.update(rate);
        const std::int64_t before = updates.fetch_add(1);
        const std::lock_guard lock(reporting);
        stale(before - read);
        finished(loss, rate);
      }
    });
    const double waiting = team_.take_waiting();
    progress_of_mode().waiting += waiting;
    progress_of_mode().compute += training_clock() - start - waiting;
    team_.network().set_next_step(last + 1);
  }

  ThreadReplicas team_;
};

void forecast(Forecast& f) {
  f.require_one_host();
  f.predicted.compute = f.times.whole(f.batch(), f.cluster.ranks).free_step / f.p();
}

const ModeRegistration registration(info, make_mode<Hogwild>, forecast);

}  // namespace
}  // namespace stepladder
