#include "harness/training/train_row.hpp"

#include <algorithm>

namespace stepladder {

TrainRow train_row(const TrainingId& training, const std::string& all_reduce, const Progress& p,
                   std::int64_t steps_per_epoch, std::optional<double> accuracy,
                   bool of_all_ranks) {
  TrainRow row{training};
  row.all_reduce = all_reduce;
  row.step = p.step;
  row.epoch = (p.step - 1) / steps_per_epoch + 1;
  row.samples = p.samples;
  row.seconds = p.seconds;
  row.loss = p.loss;
  row.accuracy = accuracy;
  row.learning_rate = p.learning_rate;
  if (!of_all_ranks) return row;
  const auto share = [&](double seconds) {
    return p.seconds > 0 ? std::optional(seconds / p.seconds) : std::nullopt;
  };
  row.bytes_per_step = p.bytes / static_cast<double>(p.step);
  row.compute = share(p.compute);
  row.exposed = share(p.exposed);
  row.hidden = share(p.hidden);
  row.waiting = share(std::max(0.0, p.waiting));
  double updates = 0, sum = 0;
  for (std::size_t s = 0; s < p.staleness.size(); ++s) {
    updates += static_cast<double>(p.staleness[s]);
    sum += static_cast<double>(s) * static_cast<double>(p.staleness[s]);
  }
  if (updates > 0) {
    row.staleness_mean = sum / updates;
    row.staleness_max = static_cast<std::int64_t>(p.staleness.size()) - 1;
  }
  return row;
}

}  // namespace stepladder
