// The loop of the modes in which all ranks make their steps together.
#pragma once

#include "harness/training/mode.hpp"

namespace stepladder {

class SynchronousMode : public Mode {
 public:
  SynchronousMode(const TrainingSetup& setup, const char* name) : Mode(setup, name) {
    waits_for_all_ = true;
  }

 protected:
  // One step on batch number progress().step. Returns this rank's contribution to the loss of the
  // batch: the loss is the sum over the ranks.
  virtual double step(double learning_rate) = 0;
  // Whether all ranks have the same weights after the present step.
  virtual bool may_stop() const { return true; }

 private:
  void train_to(std::int64_t step) final;
};

}  // namespace stepladder
