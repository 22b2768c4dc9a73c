// Replicas as threads of one process that share the weights.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "harness/training/modes/replica.hpp"
#include "kernels/common/cpu/thread_pool.hpp"

namespace stepladder {

// Throws std::runtime_error if there are several ranks.
void require_one_process(const Communicator& communicator, const char* mode);

// Lets the calling thread run on every core, also if the thread that made it is bound to one.
void run_on_any_core();

class ThreadReplicas {
 public:
  // Replica r computes part r of each batch, or whole batches. The first one owns the weights.
  ThreadReplicas(const TrainingSetup& setup, const char* mode, int count,
                 bool whole_batches = false);

  int count() const { return static_cast<int>(replicas_.size()); }
  Replica& operator[](int thread) { return *replicas_[static_cast<std::size_t>(thread)]; }
  double& loss(int thread) { return losses_[static_cast<std::size_t>(thread) * line]; }
  TrainableNetwork& network() { return replicas_.front()->network(); }

  // Calls work(thread) on every thread and rethrows the first exception.
  void run(const std::function<void(int)>& work);
  // Seconds, mean over the threads, that they waited for the last one in run() since the last call.
  double take_waiting();

 private:
  static constexpr std::size_t line = 8;  // doubles of a cache line
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<double> losses_, ends_;
  ThreadPool pool_;
  double waiting_ = 0;
};

}  // namespace stepladder
