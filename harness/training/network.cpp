#include "harness/training/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

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

void run_recording(const Operation& operation) {
  try {
    operation.run();
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("{} {} with {} cannot be recorded as part of a step: {}",
                                         operation.layer, name_of(operation.phase),
                                         operation.variant, error.what()));
  }
}

// As many at once as the memory that they touch allows.
std::vector<Task> tasks_of(std::span<const Operation> operations) {
  std::vector<std::vector<Access>> accesses;
  for (const Operation& operation : operations) accesses.push_back(operation.accesses());
  const std::vector<std::vector<std::size_t>> after = dependencies(accesses);
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < operations.size(); ++i)
    tasks.push_back({[&operation = operations[i]] { run_recording(operation); }, after[i]});
  return tasks;
}

template <class Layer>
bool has(const network::NetworkDescription& description) {
  return std::any_of(description.layers.begin(), description.layers.end(),
                     [](const auto& layer) { return std::holds_alternative<Layer>(layer.layer); });
}

std::vector<const PrimitiveType*> primitives_of(const network::NetworkDescription& description) {
  std::vector<const PrimitiveType*> all = {&layers_type(), &sgd_update_type()};
  if (has<network::FullyConnected>(description)) all.push_back(&matmul_type());
  if (has<network::Convolution>(description)) all.push_back(&convolution_type());
  if (has<network::MaxPool>(description)) all.push_back(&max_pool_type());
  if (mpi_session().ranks() > 1) all.push_back(&all_reduce_type());
  return all;
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
    case Phase::other:
      return "other";
  }
  return "";
}

Place place_of(const network::NetworkDescription& description, const UseSpec& use) {
  std::map<Place, std::string> at;  // the primitives there
  for (const PrimitiveType* type : primitives_of(description)) {
    const std::vector<Variant> candidates = use.candidates(*type);
    if (candidates.empty())
      throw NoVariant(fmt::format("--use {}: {} has no such rung", use.text(), type->name()));
    std::set<Place> places;
    for (const Variant& variant : candidates) places.insert(variant.info->place);
    for (const Place place : places)
      at[place] += fmt::format("{}{}", at[place].empty() ? "" : ", ", type->name());
  }
  if (at.size() > 1)
    throw NoVariant(
        fmt::format("--use {}: a network's tensors are in one memory, and this puts {} on the "
                    "device and {} on the CPU; name rungs of one place, as cuda,matmul=naive",
                    use.text(), at[Place::cuda], at[Place::cpu]));
  if (at.contains(Place::cpu)) return Place::cpu;
  if (device() == nullptr)
    throw NoVariant(fmt::format("--use {}: {}", use.text(), device_status()));
  return Place::cuda;
}

TrainableNetwork::TrainableNetwork(network::NetworkDescription description, const UseSpec& use,
                                   const NetworkOptions& options, PlanStore& plans)
    : description_(std::move(description)),
      options_(options),
      memory_(place_of(description_, use)) {
  if (options_.inter > 1 && place() == Place::cuda)
    throw std::runtime_error(
        "operations at once are threads of the CPU; a device runs at once what a step's graph "
        "leaves free (leave out --inter)");
  NetworkBuilder(*this, use, plans).build();
  if (options_.inter > 1) beside_ = std::make_unique<ThreadPool>(2);
}

void TrainableNetwork::upload_parameters() {
  parameters_.start_upload();
  memory_.wait();
}

void TrainableNetwork::download() {
  parameters_.start_download();
  gradients_.start_download();
  memory_.wait();
}

void TrainableNetwork::take(Batch& batch) {
  taken_ = &batch;
  activations_.front() = batch.images.here;
}

// The operations of a phase follow each other.
TrainableNetwork::Operations TrainableNetwork::those_of(Phase phase) {
  const auto is_of = [phase](const Operation& operation) { return operation.phase == phase; };
  const auto first = std::find_if(operations_.begin(), operations_.end(), is_of);
  return {first, std::find_if_not(first, operations_.end(), is_of)};
}

void TrainableNetwork::run(Operations operations) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Operation& operation = operations[i];
    if (place() == Place::cuda) {
      operation.run();
    } else if (beside_ && operation.beside_next) {
      Operation& next = operations[++i];
      beside_->run([&](int thread) { run_timed(thread == 0 ? operation : next); });
    } else {
      run_timed(operation);
    }
  }
}

double TrainableNetwork::mean_loss() const {
  double sum = 0;
  for (const float loss : loss_.host) sum += loss;
  return sum / static_cast<double>(batch());
}

double TrainableNetwork::forward() {
  take(batches_[shown_]);
  const std::size_t count =
      static_cast<std::size_t>(those_of(Phase::backward).data() - operations_.data());
  run(Operations(operations_).first(count));
  memory_.wait();
  return mean_loss();
}

void TrainableNetwork::backward() { run(those_of(Phase::backward)); }

double TrainableNetwork::step(double learning_rate) {
  start_step(learning_rate);
  return finish_step();
}

void TrainableNetwork::set(double learning_rate) {
  if (learning_rate != learning_rate_)  // which is part of what was recorded
    for (Batch& batch : batches_) batch.recorded.clear();
  learning_rate_ = learning_rate;
}

void TrainableNetwork::start_step(double learning_rate) {
  set(learning_rate);
  if (is_sent_ahead_) {
    is_sent_ahead_ = false;
    take(batches_[1 - shown_]);
    device()->await_uploads();
  } else {
    take(batches_[shown_]);
    run(Operations(operations_).first(batch_copies_));
  }
  if (place() == Place::cuda && options_.graph)
    run_recorded();
  else
    run(Operations(operations_).subspan(batch_copies_));
}

double TrainableNetwork::finish_step() {
  memory_.wait();
  ++step_;
  return mean_loss();
}

// The first step with a batch starts every operation by itself, which loads all kernels, and is recorded
// for the next.
void TrainableNetwork::run_recorded() {
  if (taken_->recorded.empty()) {
    const Operations rest = Operations(operations_).subspan(batch_copies_);
    run(rest);
    taken_->recorded = record(rest);
  } else {
    for (const std::function<void()>& start : taken_->recorded) start();
  }
}

std::vector<std::function<void()>> TrainableNetwork::record(Operations operations) {
  std::vector<std::function<void()>> recorded;
  auto next = operations.begin();
  while (next != operations.end()) {
    if (next->changes) {
      recorded.push_back(next++->run);
      continue;
    }
    const auto end = std::find_if(next, operations.end(), [](const auto& o) { return o.changes; });
    const std::shared_ptr<Recording> recording = device()->record(tasks_of({next, end}));
    recorded.emplace_back([recording] { recording->launch(); });
    next = end;
  }
  return recorded;
}

double TrainableNetwork::timed_step(double learning_rate) {
  if (place() == Place::cpu) return step(learning_rate);
  set(learning_rate);
  take(batches_[shown_]);
  const auto one_after_the_other = [&] {
    device()->mark(0);
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      run_recording(operations_[i]);
      device()->mark(i + 1);
    }
  };
  const std::vector<Task> tasks = {{one_after_the_other, {}}};
  const std::unique_ptr<Recording> recording = device()->record(tasks);
  recording->launch();
  memory_.wait();  // then all its marks are recorded
  for (std::size_t i = 0; i < operations_.size(); ++i)
    operations_[i].seconds = device()->seconds_between(i, i + 1);
  return finish_step();
}

void TrainableNetwork::send_batch() {
  const Batch& batch = batches_[shown_];
  device()->upload_beside(batch.images.here, batch.images.host.data(),
                          batch.images.host.size_bytes());
  device()->upload_beside(batch.labels.here, batch.labels.host.data(),
                          batch.labels.host.size_bytes());
  is_sent_ahead_ = true;
  shown_ = 1 - shown_;
}

void TrainableNetwork::evaluate() {
  take(batches_[shown_]);
  taken_->images.start_upload();
  for (const std::function<void()>& operation : evaluation_) operation();
  probabilities_.start_download();
  memory_.wait();
}

}  // namespace stepladder
