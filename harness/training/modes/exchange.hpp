// All-reduce of the gradients of a network that every rank has: mean over the ranks, in place, by a
// rung of all_reduce. With several buckets each is reduced as soon as backward() has computed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/training/mode.hpp"

namespace stepladder {

class GradientExchange {
 public:
  // bucket_bytes: of a bucket, at least; 0: one bucket for all gradients. Collective.
  GradientExchange(const TrainingSetup& setup, const UseSpec& use, TrainableNetwork& network,
                   std::size_t bucket_bytes = 0);
  ~GradientExchange();

  // All buckets, one after another.
  void run();

  // Concurrently with backward(): after begin(), a thread reduces each bucket that is ready; end()
  // waits for all. No other MPI call may be made in between.
  void begin();
  void after(const Operation& operation);  // of backward()
  void end();
  double seconds() const;  // of the thread in all-reduces, between the last begin() and end()

  const std::string& variant() const { return variant_; }
  double bytes() const { return bytes_; }  // that a rank sends, as in a ring

 private:
  struct Bucket;
  class Thread;

  void reduce(Bucket& bucket);

  std::vector<std::unique_ptr<Bucket>> buckets_;  // in the order in which they become ready
  std::string variant_;
  double bytes_ = 0;
  const Operation* first_operation_ = nullptr;
  std::size_t announced_ = 0;  // buckets that the thread may reduce
  std::unique_ptr<Thread> thread_;
};

}  // namespace stepladder
