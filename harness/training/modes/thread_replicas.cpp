#include "harness/training/modes/thread_replicas.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace stepladder {

void require_one_process(const Communicator& communicator, const char* mode) {
  if (communicator.ranks() > 1)
    throw std::runtime_error(fmt::format(
        "the replicas of mode {} are threads of one process; start it without mpirun", mode));
}

void run_on_any_core() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core) CPU_SET(core, &all);
  sched_setaffinity(0, sizeof all, &all);
}

ThreadReplicas::ThreadReplicas(const TrainingSetup& setup, const char* mode, int count,
                               bool whole_batches)
    : losses_(static_cast<std::size_t>(count) * line),
      ends_(static_cast<std::size_t>(count) * line),
      pool_(count) {
  require_one_process(Communicator(mode), mode);
  for (int r = 0; r < count; ++r) {
    NetworkOptions options{.exchange = Exchange::none};
    if (r > 0) options.parameters_of = &replicas_.front()->network().parts();
    if (!whole_batches) options.update_threads = count * setup.threads;
    replicas_.push_back(std::make_unique<Replica>(setup, setup.use, whole_batches ? 0 : r,
                                                  whole_batches ? 1 : count, options));
  }
  pool_.run([](int) { run_on_any_core(); });
}

void ThreadReplicas::run(const std::function<void(int)>& work) {
  std::exception_ptr error;
  std::mutex mutex;
  pool_.run([&](int thread) {
    try {
      work(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
    ends_[static_cast<std::size_t>(thread) * line] = training_clock();
  });
  if (error) std::rethrow_exception(error);
  double last = 0, sum = 0;
  for (int thread = 0; thread < count(); ++thread) {
    const double end = ends_[static_cast<std::size_t>(thread) * line];
    last = std::max(last, end);
    sum += end;
  }
  waiting_ += last - sum / count();
}

double ThreadReplicas::take_waiting() { return std::exchange(waiting_, 0); }

}  // namespace stepladder
