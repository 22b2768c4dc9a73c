#include "harness/training/mode.hpp"

#include <fmt/format.h>

#include <cmath>
#include <span>
#include <stdexcept>

#include "harness/io/hash.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/training/trainer.hpp"

namespace stepladder {

double learning_rate_of(const TrainingSetup& setup, std::int64_t samples) {
  const double plain = learning_rate_after(setup.description.optimizer, samples);
  if (samples >= setup.warm_up) return plain * setup.scale;
  const double grown = static_cast<double>(samples) / static_cast<double>(setup.warm_up);
  return plain * (1 + (setup.scale - 1) * grown);
}

Mode::Mode(const TrainingSetup& setup, const char* name) : setup_(setup), communicator_(name) {}

void Mode::train(std::int64_t step) {
  communicator_.maximum(0);  // all ranks begin together
  started_ = training_clock();
  train_to(step);
  progress_.seconds += communicator_.maximum(training_clock() - started_);
  settle();
}

void Mode::restart(const Progress& progress) {
  progress_ = progress;
  if (communicator_.rank() != 0) progress_.staleness.clear();  // rank 0 has those of all
  network().set_next_step(progress.step + 1);
}

// Where all ranks wait for each other, the last one to come waits least: its time is that of the
// communication. Elsewhere a message takes as long per byte as the fastest one did, and the rest of
// a call is waiting.
void Mode::settle() {
  std::vector<double> communication;
  for (const Blocked& call : blocked_) communication.push_back(call.seconds);
  if (waits_for_all_) {
    communicator_.minimum(communication);
  } else {
    double per_byte = std::numeric_limits<double>::infinity();
    for (const Blocked& call : blocked_)
      if (call.bytes > 0) per_byte = std::min(per_byte, call.seconds / call.bytes);
    for (std::size_t i = 0; i < blocked_.size(); ++i)
      communication[i] = blocked_[i].bytes > 0 ? per_byte * blocked_[i].bytes : 0;
  }
  for (std::size_t i = 0; i < blocked_.size(); ++i) {
    progress_.exposed += communication[i];
    progress_.waiting += blocked_[i].seconds - communication[i];
  }
  blocked_.clear();
}

Progress Mode::total() const {
  Progress total = progress_;
  const double length = communicator_.maximum(static_cast<double>(progress_.staleness.size()));
  total.staleness.resize(static_cast<std::size_t>(length));
  std::vector<double> sums = {total.compute, total.exposed, total.waiting, total.hidden,
                              total.bytes};
  for (const std::int64_t count : total.staleness) sums.push_back(static_cast<double>(count));
  communicator_.sum(sums);
  const double ranks = communicator_.ranks();
  total.compute = sums[0] / ranks;
  total.exposed = sums[1] / ranks;
  total.waiting = sums[2] / ranks;
  total.hidden = sums[3] / ranks;
  total.bytes = sums[4] / ranks;
  for (std::size_t s = 0; s < total.staleness.size(); ++s)
    total.staleness[s] = static_cast<std::int64_t>(sums[5 + s]);
  return total;
}

void Mode::slow_down(double seconds, double samples) {
  if (setup_.simulated_seconds > 0)
    seconds = samples > 0 ? setup_.simulated_seconds * samples / static_cast<double>(batch())
                          : setup_.simulated_pass;
  const bool is_slow = communicator_.rank() == setup_.slow.rank && own_steps_ >= setup_.slow.from &&
                       own_steps_ < setup_.slow.to;
  const double factor = is_slow ? setup_.slow.factor : 1;
  if (samples > 0) ++own_steps_;
  const double slept = setup_.simulated_seconds > 0 ? factor : factor - 1;
  if (slept * seconds > 0) training_sleep(slept * seconds);
}

void Mode::check_ranks(std::int64_t step) {
  if (!setup_.check_ranks) return;
  collect();
  const std::uint64_t hash = fnv1a(std::as_bytes(network().parameters()));
  if (!mpi_session().same_on_all_ranks(hash))
    throw std::runtime_error(fmt::format("after step {} the weights differ between ranks", step));
}

void Mode::add_compute(double seconds) {
  progress_.compute += seconds;
  expect(seconds);
}

void Mode::add_blocked(double seconds, double bytes) {
  blocked_.push_back({seconds, bytes});
  expect(seconds);
}

// Other ranks may make many steps before they come to where this one waits.
void Mode::expect(double seconds) {
  const double steps = 4 * static_cast<double>(std::max<std::int64_t>(setup_.log_every, 16));
  communicator_.expect(std::min(600.0, steps * seconds));
}

void Mode::stale(std::int64_t updates) {
  const auto at = static_cast<std::size_t>(updates);
  if (at >= progress_.staleness.size()) progress_.staleness.resize(at + 1);
  ++progress_.staleness[at];
}

void Mode::finished(double loss, double learning_rate, std::int64_t steps, std::int64_t samples) {
  const std::int64_t before = progress_.step;
  progress_.step += steps;
  progress_.samples += samples < 0 ? steps * batch() : samples;
  progress_.loss = loss;
  progress_.learning_rate = learning_rate;
  require_finite(loss, setup_.description, progress_.step, learning_rate);
  const bool logs = progress_.step / setup_.log_every > before / setup_.log_every;
  if (!on_step_ || communicator_.rank() != 0 || !logs) return;
  Progress now = progress_;
  now.seconds += training_clock() - started_;
  on_step_(now);
}

}  // namespace stepladder
