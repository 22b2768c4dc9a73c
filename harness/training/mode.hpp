// A mode of training: how replicas of a network cooperate. Each mode is one file in modes/, which
// registers it. docs/training-modes.md compares them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "harness/data/dataset.hpp"
#include "harness/execution/network.hpp"
#include "harness/ranks/communicator.hpp"
#include "harness/training/clock.hpp"
#include "harness/training/mode_spec.hpp"

namespace stepladder {

// For experiments: a rank computes so many times slower, in steps [from, to) of its own.
struct Slowdown {
  int rank = -1;  // none
  double factor = 1;
  std::int64_t from = 0, to = std::numeric_limits<std::int64_t>::max();
};

struct TrainingSetup {
  network::NetworkDescription description;  // its batch: the samples of one update
  UseSpec use;
  PlanStore* plans;
  const data::Dataset* data;  // outlives the mode
  int threads = 1;            // inside an operation
  int replicas = 1;           // threads of the modes of one process
  int shift = 0;              // see data::Batches
  std::uint64_t seed = 1;
  double scale = 1;            // of the learning rate
  std::int64_t warm_up = 0;    // samples in which the scale grows from 1 to `scale`
  std::int64_t log_every = 1;  // updates between two calls of on_step
  bool check_ranks = false;  // compare the weights of all ranks after each step (synchronous modes)
  Slowdown slow = {};
  // In a simulation: the seconds that forward and backward take for a whole batch, and those of a
  // pass over the weights: an update, a sum or a copy. 0: as measured.
  double simulated_seconds = 0, simulated_pass = 0;
};

// learning_rate_after(), scaled. With warm-up the scale grows linearly from 1 (Goyal et al.,
// Accurate, large minibatch SGD, 2017).
double learning_rate_of(const TrainingSetup& setup, std::int64_t samples);

// The state of a training, and where the time of this rank went.
struct Progress {
  std::int64_t step = 0;  // updates of the weights
  std::int64_t samples = 0;
  double loss = 0;           // mean of the last batch, before its update
  double learning_rate = 0;  // of the last step
  double seconds = 0;        // of training
  double compute = 0;        // seconds of the gradient, the update and copies
  double exposed = 0;        // seconds of communication in which the rank computed nothing
  double waiting = 0;        // seconds of waiting for ranks that are behind
  double hidden = 0;         // seconds of communication during `compute`
  double bytes = 0;          // sent
  std::vector<std::int64_t> staleness;  // [s]: updates whose gradient missed the last s updates
};

class Mode {
 public:
  explicit Mode(const TrainingSetup& setup, const char* name);
  virtual ~Mode() = default;
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

  // Trains until `step` updates were made, or slightly more with several replicas that do not wait
  // for each other. Collective. Throws std::runtime_error if the loss is not finite.
  void train(std::int64_t step);
  // After train(), and after collect(): the whole network with the weights so far, on every rank.
  virtual TrainableNetwork& network() = 0;
  // Collective: completes weights and optimizer state in network() on every rank.
  virtual void collect() {}
  // Collective: all ranks have put weights and optimizer state in network(); go on from there, with
  // the progress of a checkpoint.
  virtual void restart(const Progress& progress);

  // Of this rank; and collective: samples, loss and seconds of rank 0, means of the times and of
  // the bytes over the ranks, staleness of all.
  const Progress& progress() const { return progress_; }
  Progress total() const;
  // On rank 0 after every log_every-th update.
  void on_step(std::function<void(const Progress&)> call) { on_step_ = std::move(call); }
  // The rung that reduces the gradients; empty if none does.
  virtual std::string all_reduce() const { return ""; }
  // What else there is to report at the end, for the progress of all ranks; empty if nothing.
  virtual std::string remark(const Progress&) const { return ""; }
  virtual int replicas() const { return communicator_.ranks(); }

 protected:
  virtual void train_to(std::int64_t step) = 0;

  // Runs `work` and adds its time to compute. A slow rank then sleeps; a simulated one sleeps for
  // the time of `samples` samples. So many of its seconds as `exchange` grows by were
  // communication.
  template <class Work>
  void compute(double samples, const Work& work) {
    compute_and_exchange(samples, no_exchange, work);
  }
  template <class Work>
  void compute_and_exchange(double samples, const double& exchange, const Work& work) {
    const double start = training_clock(), exchanged_before = exchange;
    work();
    const double exchanged = exchange - exchanged_before;
    slow_down(training_clock() - start - exchanged, samples);
    add_compute(training_clock() - start - exchanged);
    if (&exchange == &no_exchange) return;
    add_blocked(exchanged, 0);
  }
  // Runs `wait`, which communicates or waits for other ranks: exposed or waiting. Where all ranks
  // wait for each other, they make these calls equally often. Elsewhere `bytes` are those of the
  // messages in the call, 0 if it only waits; `wait` may set them.
  template <class Wait>
  void blocked(const Wait& wait, const double& bytes = 0) {
    const double start = training_clock();
    wait();
    add_blocked(training_clock() - start, bytes);
  }
  // With setup.check_ranks: throws std::runtime_error unless all ranks have the same weights after
  // so many steps.
  void check_ranks(std::int64_t step);
  void hidden(double seconds) { progress_.hidden += seconds; }
  void sent(double bytes) { progress_.bytes += bytes; }
  void stale(std::int64_t updates);
  // `steps` more updates, with the loss of the last one. `samples`: those of whole batches, unless
  // given.
  void finished(double loss, double learning_rate, std::int64_t steps = 1,
                std::int64_t samples = -1);

  const TrainingSetup& setup() const { return setup_; }
  std::int64_t batch() const { return setup_.description.batch; }
  double learning_rate(std::int64_t step) const { return learning_rate_of(setup_, step * batch()); }
  const Communicator& communicator() const { return communicator_; }
  Progress& progress_of_mode() { return progress_; }
  bool waits_for_all_ = false;  // see blocked()

 private:
  struct Blocked {
    double seconds, bytes;
  };

  void slow_down(double seconds, double samples);
  void add_compute(double seconds);
  void add_blocked(double seconds, double bytes);
  void expect(double seconds);
  void settle();

  TrainingSetup setup_;
  Communicator communicator_;
  Progress progress_;
  double started_ = 0;          // of the present train()
  std::int64_t own_steps_ = 0;  // calls of compute() with samples
  static constexpr double no_exchange = 0;
  std::vector<Blocked> blocked_;  // calls since the last settle()
  std::function<void(const Progress&)> on_step_;
};

// What the mode cannot do is an error that names it: "mode pipeline,schedule=x: …".
template <class Type>
std::unique_ptr<Mode> make_mode(const TrainingSetup& setup, const ModeSpec& spec) try {
  return std::make_unique<Type>(setup, spec);
} catch (const CannotRun& reason) {
  throw std::runtime_error("mode " + spec.text() + ": " + reason.what());
}

}  // namespace stepladder
