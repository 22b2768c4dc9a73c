// What the modes with a server on rank 0 share: the gradient of a batch, its way to the server, and
// training without other ranks.
#pragma once

#include <algorithm>

#include "harness/training/modes/replica.hpp"

namespace stepladder {

class ServerMode : public Mode {
 public:
  TrainableNetwork& network() override { return replica_.network(); }
  void collect() override {
    for (const std::span<float> values : network().trained()) communicator().broadcast(0, values);
  }

 protected:
  // A batch is computed by one rank, divided among the other ranks than the server, or among all.
  enum class Batch { whole, of_workers, of_all };
  ServerMode(const TrainingSetup& setup, const char* name, Batch share)
      : Mode(setup, name),
        replica_(setup, setup.use, part_of(share), parts_of(share),
                 {.exchange = Exchange::none, .shared_gradients = false}) {}

  int workers() const { return std::max(1, communicator().ranks() - 1); }

  Replica& replica() { return replica_; }
  // The size of the gradients, and of the weights.
  double bytes() { return static_cast<double>(replica_.gradients().size_bytes()); }

  // Returns the loss of this part of batch `number`.
  double gradient(std::int64_t number) {
    double loss = 0;
    compute(replica_.samples(), [&] {
      replica_.draw(number);
      loss = replica_.gradient();
    });
    return loss;
  }

  // The only rank trains until `last`.
  void alone(std::int64_t last) {
    while (progress().step < last) {
      const double loss = gradient(progress().step), rate = learning_rate(progress().step);
      compute(0, [&] { replica_.update(rate); });
      stale(0);
      finished(loss, rate);
    }
  }

  // To the server, with a report of the mode before the gradients.
  template <class Report>
  void send_gradients(const Report& report) {
    communicator().send(0, report);
    communicator().send(0, std::span<const float>(replica_.gradients()));
    sent(bytes());
  }

  // From the server, with a task of the mode before the weights.
  template <class Task>
  void send_weights(int rank, const Task& task) {
    communicator().send(rank, task);
    communicator().send(rank, std::span<const float>(replica_.parameters()));
    sent(bytes());
  }

 private:
  int part_of(Batch share) const {
    if (share == Batch::whole) return 0;
    return share == Batch::of_all ? communicator().rank() : std::max(0, communicator().rank() - 1);
  }
  int parts_of(Batch share) const {
    if (share == Batch::whole) return 1;
    return share == Batch::of_all ? communicator().ranks() : workers();
  }

  Replica replica_;
};

}  // namespace stepladder
