#include "harness/execution/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/adapters/primitives.hpp"
#include "harness/io/now.hpp"

namespace stepladder {
namespace {

void run_timed(Operation& operation, int lane = 0) {
  operation.lane = lane;
  operation.start = now();
  operation.run();
  operation.seconds = now() - operation.start;
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

// Operations that access different memory become independent tasks.
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
  return std::any_of(description.layers.begin(), description.layers.end(), network::is<Layer>);
}

std::vector<const PrimitiveType*> primitives_of(const network::NetworkDescription& description) {
  std::vector<const PrimitiveType*> all = {&layers_type(), &sgd_update_type()};
  if (has<network::FullyConnected>(description)) all.push_back(&matmul_type());
  if (has<network::Convolution>(description)) all.push_back(&convolution_type());
  if (has<network::MaxPool>(description)) all.push_back(&max_pool_type());
  if (has<network::AveragePool>(description)) all.push_back(&average_pool_type());
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
  std::map<Place, std::string> at;  // the primitives in each place
  for (const PrimitiveType* type : primitives_of(description)) {
    const std::vector<Variant> candidates = use.candidates(*type);
    if (candidates.empty())
      throw NoVariant(fmt::format("--use {}: {} has no such rung", use.text(), type->name()));
    std::set<Place> places;
    for (const Variant& variant : candidates)  // by where the operands are
      places.insert(variant.info->place == Place::cuda ? Place::cuda : Place::cpu);
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

TrainableNetwork::TrainableNetwork(network::NetworkDescription description, const UseSpec& chosen,
                                   const NetworkOptions& options, PlanStore& plans)
    : description_(options.inference ? network::without_dropout(std::move(description))
                                     : std::move(description)),
      options_(options) {
  const UseSpec use = options_.inference ? chosen.of_constant_weights() : chosen;
  const Place place = place_of(description_, use);
  if (options_.inference && place == Place::cuda)
    throw std::runtime_error(
        fmt::format("inference runs on the CPU; --use {} selects the device", use.text()));
  if (options_.inter > 1 && place == Place::cuda)
    throw std::runtime_error(
        "operations at once are threads of the CPU; a device runs at once what a step's graph "
        "allows (leave out --inter)");
  parts_ = build_network(description_, place, use, options_, plans);
  if (options_.inter > 1) pair_ = std::make_unique<ThreadPool>(2);
}

void TrainableNetwork::upload_parameters() {
  is_packed_ = false;
  parts_->parameters.start_upload();
  parts_->memory.wait();
}

void TrainableNetwork::upload_state() {
  parts_->state1.start_upload();
  parts_->state2.start_upload();
  parts_->memory.wait();
}

void TrainableNetwork::download() {
  parts_->parameters.start_download();
  parts_->gradients.start_download();
  parts_->state1.start_download();
  parts_->state2.start_download();
  parts_->memory.wait();
}

void TrainableNetwork::pack_weights() {
  for (const Operation& operation : parts_->operations) {
    if (operation.prepare) operation.prepare();
    for (const Alternative& alternative : operation.alternatives)
      if (alternative.prepare) alternative.prepare();
  }
  is_packed_ = true;
}

// The operations of a phase are contiguous.
TrainableNetwork::Operations TrainableNetwork::operations_of(Phase phase) {
  const auto is_of = [phase](const Operation& operation) { return operation.phase == phase; };
  const auto first = std::find_if(parts_->operations.begin(), parts_->operations.end(), is_of);
  return {first, std::find_if_not(first, parts_->operations.end(), is_of)};
}

void TrainableNetwork::run(Operations operations) {
  if (options_.inference && !is_packed_) pack_weights();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    Operation& operation = operations[i];
    if (place() == Place::cuda) {
      operation.run();
    } else if (pair_ && operation.concurrent_with_next) {
      Operation& next = operations[++i];
      pair_->run([&](int thread) { run_timed(thread == 0 ? operation : next, thread); });
    } else {
      run_timed(operation);
      if (after_) after_(operation);
    }
  }
}

double TrainableNetwork::mean_loss() const {
  double sum = 0;
  for (const float loss : parts_->loss.host) sum += loss;
  return sum / static_cast<double>(batch());
}

double TrainableNetwork::forward() {
  parts_->use(host_batch());
  const std::size_t count =
      static_cast<std::size_t>(operations_of(Phase::backward).data() - parts_->operations.data());
  run(Operations(parts_->operations).first(count));
  parts_->memory.wait();
  return mean_loss();
}

void TrainableNetwork::backward() { run(operations_of(Phase::backward)); }

void TrainableNetwork::update(double learning_rate) {
  set_learning_rate(learning_rate);
  run(operations_of(Phase::update));
  parts_->memory.wait();
  ++parts_->step;
}

double TrainableNetwork::step(double learning_rate) {
  start_step(learning_rate);
  return finish_step();
}

void TrainableNetwork::set_learning_rate(double learning_rate) {
  if (learning_rate != parts_->learning_rate)  // recordings contain the old one
    for (Batch& batch : parts_->batches) batch.recorded.clear();
  parts_->learning_rate = learning_rate;
}

void TrainableNetwork::start_step(double learning_rate) {
  set_learning_rate(learning_rate);
  if (is_prefetched_) {
    is_prefetched_ = false;
    parts_->use(parts_->batches[1 - host_batch_]);
    device()->await_uploads();
  } else {
    parts_->use(host_batch());
    run(Operations(parts_->operations).first(parts_->batch_copies));
  }
  if (place() == Place::cuda && options_.graph)
    run_recorded();
  else
    run(Operations(parts_->operations).subspan(parts_->batch_copies));
}

double TrainableNetwork::finish_step() {
  parts_->memory.wait();
  ++parts_->step;
  return mean_loss();
}

// The first step with a batch launches every operation by itself, which loads all kernels, and then
// records the step.
void TrainableNetwork::run_recorded() {
  if (parts_->current->recorded.empty()) {
    const Operations rest = Operations(parts_->operations).subspan(parts_->batch_copies);
    run(rest);
    parts_->current->recorded = record(rest);
  } else {
    for (const std::function<void()>& start : parts_->current->recorded) start();
  }
}

std::vector<std::function<void()>> TrainableNetwork::record(Operations operations) {
  std::vector<std::function<void()>> recorded;
  auto next = operations.begin();
  while (next != operations.end()) {
    if (next->depends_on_step) {
      recorded.push_back(next++->run);
      continue;
    }
    const auto end =
        std::find_if(next, operations.end(), [](const auto& o) { return o.depends_on_step; });
    const std::shared_ptr<Recording> recording = device()->record(tasks_of({next, end}));
    recorded.emplace_back([recording] { recording->launch(); });
    next = end;
  }
  return recorded;
}

double TrainableNetwork::timed_step(double learning_rate) {
  if (place() == Place::cpu) return step(learning_rate);
  set_learning_rate(learning_rate);
  parts_->use(host_batch());
  const auto in_sequence = [&] {
    device()->mark(0);
    for (std::size_t i = 0; i < parts_->operations.size(); ++i) {
      run_recording(parts_->operations[i]);
      device()->mark(i + 1);
    }
  };
  const std::vector<Task> tasks = {{in_sequence, {}}};
  const std::unique_ptr<Recording> recording = device()->record(tasks);
  recording->launch();
  parts_->memory.wait();  // until all marks are recorded
  double start = 0;
  for (std::size_t i = 0; i < parts_->operations.size(); ++i) {
    Operation& operation = parts_->operations[i];
    operation.seconds = device()->seconds_between(i, i + 1);
    operation.start = start;
    start += operation.seconds;
  }
  return finish_step();
}

void TrainableNetwork::prefetch_batch() {
  const Batch& batch = host_batch();
  device()->upload_concurrently(batch.images.here, batch.images.host.data(),
                                batch.images.host.size_bytes());
  device()->upload_concurrently(batch.labels.here, batch.labels.host.data(),
                                batch.labels.host.size_bytes());
  is_prefetched_ = true;
  host_batch_ = 1 - host_batch_;
}

void TrainableNetwork::evaluate() {
  parts_->use(host_batch());
  parts_->current->images.start_upload();
  if (options_.inference) run(parts_->operations);
  for (const std::function<void()>& operation : parts_->evaluation) operation();
  parts_->probabilities.start_download();
  parts_->memory.wait();
}

}  // namespace stepladder
