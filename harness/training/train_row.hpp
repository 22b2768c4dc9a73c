// The state of a training as a row of train.csv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/results/result_columns.hpp"
#include "harness/training/mode.hpp"

namespace stepladder {

// `steps_per_epoch`: of one epoch. The shares, bytes and staleness are filled where `p` is
// Mode::total().
TrainRow train_row(const TrainingId& training, const std::string& all_reduce, const Progress& p,
                   std::int64_t steps_per_epoch, std::optional<double> accuracy, bool of_all_ranks);

}  // namespace stepladder
