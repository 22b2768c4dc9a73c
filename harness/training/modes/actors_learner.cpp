// Producers and one consumer (GA3C: Babaeizadeh et al., 2017): actor threads prepare batches, here
// draw and shift images, and put them into queues; one learner takes them and trains. The learner
// never prepares data, as long as the queues are not empty. Actor a of n prepares batches a, a + n
// and so on and the learner takes them in their order: the result is that of one process.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/thread_replicas.hpp"

namespace stepladder {
namespace {

struct PreparedBatch {
  std::int64_t number = 0;  // that is in it, or comes next
  bool is_full = false;
  std::vector<float> images;
  std::vector<std::uint8_t> labels;
};

const ModeInfo info{
    .name = "actors_learner",
    .idea = "threads prepare batches in queues, one learner trains on them",
    .replicas = ModeInfo::Replicas::threads,
    .synchronous = true,
    .divides_batches = false,
    .options = {{"queue", "2", "batches that an actor may be ahead"}},
};

class ActorsLearner final : public Mode {
 public:
  ActorsLearner(const TrainingSetup& setup, const ModeSpec& spec)
      : Mode(setup, info.name),
        replica_(setup, setup.use, 0, 1, {.exchange = Exchange::none}),
        queue_(static_cast<std::size_t>(setup.replicas * spec.integer("queue", 1))) {
    require_one_process(communicator(), info.name);
    for (PreparedBatch& batch : queue_) {
      batch.images.resize(network().images().size());
      batch.labels.resize(network().labels().size());
    }
  }

  TrainableNetwork& network() override { return replica_.network(); }
  int replicas() const override { return setup().replicas; }

 private:
  void train_to(std::int64_t last) override {
    stops_ = false;
    const auto slots = static_cast<std::int64_t>(queue_.size());
    for (std::int64_t n = progress().step; n < progress().step + slots; ++n) {
      slot(n).number = n;
      slot(n).is_full = false;
    }
    std::vector<std::thread> actors;
    const auto join = [&] {
      {
        const std::lock_guard lock(mutex_);
        stops_ = true;
      }
      changed_.notify_all();
      for (std::thread& actor : actors) actor.join();
    };
    try {
      start(actors, last);
      while (progress().step < last) learn();
    } catch (...) {
      join();
      throw;
    }
    join();
  }

  void start(std::vector<std::thread>& actors, std::int64_t last) {
    const int all = setup().replicas;
    try {
      for (int actor = 0; actor < all; ++actor)
        actors.emplace_back(
            [this, actor, first = progress().step, last] { act(actor, first, last); });
    } catch (const std::system_error& error) {
      throw std::system_error(
          error.code(), fmt::format("actor {} of {} cannot be started", actors.size() + 1, all));
    }
  }

  PreparedBatch& slot(std::int64_t number) {
    return queue_[static_cast<std::size_t>(number) % queue_.size()];
  }

  void learn() {
    const std::int64_t number = progress().step;
    PreparedBatch& batch = slot(number);
    blocked([&] {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return batch.is_full; });
    });
    const double rate = learning_rate(number);
    double loss = 0;
    compute(static_cast<double>(this->batch()), [&] {
      std::ranges::copy(batch.images, network().images().begin());
      std::ranges::copy(batch.labels, network().labels().begin());
      {
        const std::lock_guard lock(mutex_);
        batch.number += static_cast<std::int64_t>(queue_.size());
        batch.is_full = false;
      }
      changed_.notify_all();
      loss = replica_.gradient();
      replica_.update(rate);
    });
    finished(loss, rate);
  }

  void act(int actor, std::int64_t first, std::int64_t last) {
    run_on_any_core();
    data::Batches batches(*setup().data, static_cast<int>(batch()), setup().seed, setup().shift);
    const int actors = setup().replicas;
    for (std::int64_t number = first + actor; number < last; number += actors) {
      PreparedBatch& batch = slot(number);
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stops_ || (batch.number == number && !batch.is_full); });
        if (stops_) return;
      }
      batches.draw(number, 0, batch.images, batch.labels);
      {
        const std::lock_guard lock(mutex_);
        batch.is_full = true;
      }
      changed_.notify_all();
    }
  }

  Replica replica_;
  std::vector<PreparedBatch> queue_;  // batch n is in slot n modulo its size
  std::mutex mutex_;                  // of the numbers and flags in queue_
  std::condition_variable changed_;
  bool stops_ = false;
};

// The learner copies batches that others have drawn.
void forecast(Forecast& f) {
  f.require_one_host();
  const StepTimes& times = f.times.whole(f.batch(), 1);
  const double learner = times.free_step - times.draw +
                         f.copy(4.0 * static_cast<double>(f.batch() * f.network.input.features())),
               actors = times.draw / f.p(),
               seconds = std::max(
                   {learner, actors, (learner + times.draw) / std::max(1, f.cluster.cores)});
  f.predicted.compute = learner;
  f.predicted.waiting = seconds - learner;
}

const ModeRegistration registration(info, make_mode<ActorsLearner>, forecast);

}  // namespace
}  // namespace stepladder
