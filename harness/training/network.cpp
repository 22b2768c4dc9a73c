#include "harness/training/network.hpp"

#include <chrono>

#include "harness/training/network_builder.hpp"

namespace stepladder {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_timed(Operation& operation) {
  const double start = now();
  operation.run();
  operation.seconds = now() - start;
}

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::update:
      return "update";
    case Phase::all_reduce:
      return "all_reduce";
  }
  return "";
}

TrainableNetwork::TrainableNetwork(network::NetworkDescription description, const UseSpec& use,
                                   const NetworkOptions& options, PlanStore& plans)
    : description_(std::move(description)), options_(options) {
  NetworkBuilder(*this, use, plans).build();
  if (options_.inter > 1) beside_ = std::make_unique<ThreadPool>(2);
}

std::span<const float> TrainableNetwork::probabilities() const {
  return {activations_.back(), static_cast<std::size_t>(batch() * description_.classes)};
}

void TrainableNetwork::run_phase(Phase phase) {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Operation& operation = operations_[i];
    if (operation.phase != phase) continue;
    if (beside_ && operation.beside_next) {
      Operation& next = operations_[++i];
      beside_->run([&](int thread) { run_timed(thread == 0 ? operation : next); });
    } else {
      run_timed(operation);
    }
  }
}

double TrainableNetwork::mean_loss() const {
  double sum = 0;
  for (std::int64_t n = 0; n < batch(); ++n) sum += loss_[static_cast<std::size_t>(n)];
  return sum / static_cast<double>(batch());
}

double TrainableNetwork::forward() {
  run_phase(Phase::forward);
  return mean_loss();
}

void TrainableNetwork::backward() { run_phase(Phase::backward); }

double TrainableNetwork::step(double learning_rate) {
  learning_rate_ = learning_rate;
  const double loss = forward();
  backward();
  run_phase(Phase::all_reduce);
  run_phase(Phase::update);
  ++step_;
  return loss;
}

void TrainableNetwork::evaluate() {
  for (const std::function<void()>& operation : evaluation_) operation();
}

}  // namespace stepladder
