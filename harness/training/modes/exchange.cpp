#include "harness/training/modes/exchange.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "harness/adapters/primitives.hpp"
#include "harness/training/modes/thread_replicas.hpp"
#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder {

struct GradientExchange::Bucket {
  std::size_t from, count;                 // of the gradients
  std::size_t ready;                       // after this operation
  std::unique_ptr<all_reduce::Plan> plan;  // null with one rank
  all_reduce::Operands operands;
};

// Reduces buckets in their order while the main thread computes.
class GradientExchange::Thread {
 public:
  explicit Thread(GradientExchange& exchange) : exchange_(exchange), thread_([this] { serve(); }) {}
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void begin() {
    const std::lock_guard lock(mutex_);
    ready_ = done_ = 0;
    seconds_ = 0;
  }
  void ready(std::size_t buckets) {
    {
      const std::lock_guard lock(mutex_);
      ready_ = buckets;
    }
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ == exchange_.buckets_.size() || error_; });
    if (error_) std::rethrow_exception(error_);
  }
  double seconds() const { return seconds_; }

 private:
  void serve() {
    run_on_any_core();
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || done_ < ready_; });
      if (ends_) return;
      Bucket& bucket = *exchange_.buckets_[done_];
      lock.unlock();
      const double start = training_clock();
      try {
        exchange_.reduce(bucket);
      } catch (...) {
        lock.lock();
        error_ = std::current_exception();
        changed_.notify_all();
        return;
      }
      const double end = training_clock();
      lock.lock();
      seconds_ += end - start;
      ++done_;
      changed_.notify_all();
    }
  }

  GradientExchange& exchange_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ready_ = 0, done_ = 0;  // buckets
  bool ends_ = false;
  double seconds_ = 0;
  std::exception_ptr error_;
  std::thread thread_;
};

namespace {

// For each parameter array the number of the last operation that writes its gradient.
std::vector<std::size_t> last_writers(TrainableNetwork& network) {
  const std::vector<Operation>& operations = network.operations();
  const auto* gradients = reinterpret_cast<const std::byte*>(network.parts().gradients.here);
  std::vector<std::size_t> last;
  for (const ParameterRange& range : network.parameter_list()) {
    const std::byte* from = gradients + range.offset * sizeof(float);
    const std::byte* end = from + range.count * sizeof(float);
    last.push_back(0);
    for (std::size_t i = 0; i < operations.size(); ++i)
      if (operations[i].phase == Phase::backward)
        for (const Access& access : operations[i].accesses())
          if (access.writes && access.from < end && access.from + access.bytes > from)
            last.back() = i;
  }
  return last;
}

}  // namespace

GradientExchange::GradientExchange(const TrainingSetup& setup, const UseSpec& use,
                                   TrainableNetwork& network, std::size_t bucket_bytes) {
  const NetworkParts& parts = network.parts();
  const std::size_t count = parts.gradients.host.size();
  const int ranks = mpi_session().ranks();
  first_operation_ = network.operations().data();
  const std::size_t least = bucket_bytes / sizeof(float);
  if (least == 0) {
    buckets_.push_back(
        std::make_unique<Bucket>(Bucket{0, count, network.operations().size(), {}, {}}));
  } else {
    const std::vector<ParameterRange>& ranges = network.parameter_list();
    const std::vector<std::size_t> last = last_writers(network);
    std::size_t from = 0, ready = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ready = std::max(ready, last[i]);
      const std::size_t end = i + 1 < ranges.size() ? ranges[i + 1].offset : count;
      if (end - from < least && end < count) continue;
      buckets_.push_back(std::make_unique<Bucket>(Bucket{from, end - from, ready, {}, {}}));
      from = end;
      ready = 0;
    }
    std::ranges::stable_sort(buckets_, {}, [](const auto& bucket) { return bucket->ready; });
  }
  if (ranks == 1) return;
  std::set<std::string> names;
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    const all_reduce::Problem problem{.operation = all_reduce::Operation::mean,
                                      .count = static_cast<std::int64_t>(bucket->count),
                                      .ranks = ranks};
    Chosen<all_reduce::AllReduce> chosen =
        setup.plans->choose<all_reduce::AllReduce>(problem, all_reduce_type(), use, setup.threads);
    float* at = parts.gradients.here + bucket->from;
    bucket->plan = std::move(chosen.plan);
    bucket->operands = {at, at, parts.window.get()};
    const VariantInfo& info = *chosen.variant.info;
    bytes_ +=
        all_reduce::bus_bytes(problem) * info.encoded_share * (info.gathers ? ranks / 2.0 : 1);
    names.insert(chosen.variant.name);
  }
  for (const std::string& name : names) variant_ += (variant_.empty() ? "" : "+") + name;
}

GradientExchange::~GradientExchange() = default;

void GradientExchange::reduce(Bucket& bucket) {
  if (bucket.plan) bucket.plan->run(bucket.operands);
}

void GradientExchange::run() {
  const RankWatch::Call call = mpi_session().watch("the all-reduce of the gradients");
  for (const std::unique_ptr<Bucket>& bucket : buckets_) reduce(*bucket);
}

void GradientExchange::begin() {
  if (!thread_) thread_ = std::make_unique<Thread>(*this);
  announced_ = 0;
  thread_->begin();
}

void GradientExchange::after(const Operation& operation) {
  const auto number = static_cast<std::size_t>(&operation - first_operation_);
  std::size_t ready = 0;
  while (ready < buckets_.size() && buckets_[ready]->ready <= number) ++ready;
  if (ready > announced_) thread_->ready(announced_ = ready);
}

void GradientExchange::end() {
  const RankWatch::Call call = mpi_session().watch("the all-reduce of the gradients");
  thread_->ready(buckets_.size());
  thread_->wait();
}

double GradientExchange::seconds() const { return thread_->seconds(); }

}  // namespace stepladder
