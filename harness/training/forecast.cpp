#include "harness/training/forecast.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "harness/adapters/primitives.hpp"
#include "harness/training/modes/segments.hpp"
#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder {

void Forecast::require_one_host() const {
  if (!one_host()) throw CannotRun("its replicas are threads of one process, on one host");
}

double Forecast::to_all(double bytes) const {
  const double here = of_host() - 1;
  return here * links.within.send(bytes) + (p() - 1 - here) * links.between.send(bytes);
}

// Rungs that exchange through shared memory are as fast with any links between hosts, and cannot
// run there.
bool Forecast::leaves_the_host(detail::CostFunction rung, double bytes) const {
  Links slow = links;
  const CostCurve line = CostCurve::line(1, 1);
  slow.between = {line, line, line};
  const CommunicationCost on_slow{.p = p(), .n = bytes, .g = cost(bytes).g, .l = slow};
  return rung(on_slow) > rung(cost(bytes));
}

Forecast::Reduction Forecast::all_reduce(const UseSpec& chosen, double bytes) const {
  if (cluster.ranks == 1) return {};
  Reduction best;
  best.seconds = std::numeric_limits<double>::infinity();
  std::string without;
  for (const Variant& variant : chosen.candidates(all_reduce_type())) {
    const VariantInfo& info = *variant.info;
    if (!variant.why_unavailable.empty()) continue;
    if (variant.entry.cost == nullptr) {
      without += (without.empty() ? "" : ", ") + variant.name;
      continue;
    }
    if (!one_host() && !leaves_the_host(variant.entry.cost, bytes)) continue;
    const double seconds = variant.entry.cost(cost(bytes));
    if (seconds >= best.seconds) continue;
    const double ring = 2 * (p() - 1) / p() * bytes;
    best = {seconds, variant.name, ring * info.encoded_share * (info.gathers ? p() / 2 : 1)};
  }
  if (best.rung.empty())
    throw CannotRun(without.empty() ? "no rung of all_reduce can run on these ranks"
                                    : fmt::format("{} has no cost model", without));
  return best;
}

void Forecast::compute_parts(double update) {
  const StepTimes& step = times.whole(part(cluster.ranks), cluster.ranks);
  const double share =
      static_cast<double>(batch()) / p() / static_cast<double>(part(cluster.ranks));
  predicted.compute = step.slowest_gradient * share + update;
  predicted.waiting = step.slowest_gradient * (1 - share);
}

double Forecast::update_of_all() {
  const StepTimes& step = times.whole(part(cluster.ranks), cluster.ranks);
  return step.slowest_step - step.slowest_gradient;
}

double Forecast::with_token(double step, double ranks, double bytes, double message) {
  if (ranks == 1) return step;
  // Within a host the receiver copies the message itself.
  const double received = one_host() ? message : copy(bytes);
  const double handling = received + 2 * add(bytes) + copy(bytes);
  const double round = std::max(1.0, ranks / 2 + ranks * message / step);
  predicted.bytes += bytes / round / ranks;
  return step + handling / round;
}

double Forecast::exchange(std::int64_t samples, int ranks,
                          const std::function<double(double)>& message) {
  const std::vector<SplitSegment> segments = split_segments(network, ranks);
  const double r = ranks, rounds = std::ceil(std::log2(r));
  double seconds = 0, bytes_sent = 0;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const SplitSegment &before = segments[i - 1], &next = segments[i];
    if (next.receives_own) continue;
    const double bytes = 4 * static_cast<double>(samples) * next.values, own = bytes / r;
    if (before.is_split) {
      seconds += (r - 1) * message(own);
      bytes_sent += (r - 1) * own;
    }
    seconds += 4 * copy(bytes);  // into and out of the layout of all channels, both ways
    if (!next.is_split) continue;
    if (before.is_split) {
      seconds += rounds * (message(bytes) + add(bytes)) + (r - 1) * message(own);
      bytes_sent += (r - 1) * own;
    } else {
      seconds += (r - 1) * (2 * message(own) + add(own));
      bytes_sent += 2 * (r - 1) * own;
    }
  }
  predicted.bytes += bytes_sent;
  return seconds;
}

// The second of two steps: the first one begins with empty stages.
double pipeline_seconds(const std::vector<StageTimes>& stages, int micro_batches, bool is_1f1b) {
  const auto count = static_cast<int>(stages.size());
  struct State {
    int forwards = 0, backwards = 0;  // done
    double free = 0;
    std::vector<double> forward_at, backward_at;  // when they ended
  };
  std::vector<State> all(stages.size());
  const auto is_done = [&](const State& state) { return state.backwards == micro_batches; };
  double ends[2] = {};
  for (double& end : ends) {
    for (State& state : all) {
      state.forwards = state.backwards = 0;
      state.forward_at.clear();
      state.backward_at.clear();
    }
    while (!std::ranges::all_of(all, is_done))
      for (int s = 0; s < count; ++s) {
        State& state = all[static_cast<std::size_t>(s)];
        const StageTimes& times = stages[static_cast<std::size_t>(s)];
        const int ahead = is_1f1b ? std::min(count - s - 1, micro_batches) : micro_batches;
        for (bool moves = true; moves && !is_done(state);) {
          const bool goes_forward =
              state.forwards < std::min(micro_batches, ahead + state.backwards + 1) &&
              state.forwards < micro_batches;
          const int number = goes_forward ? state.forwards : state.backwards;
          const int from = goes_forward ? s - 1 : s + 1;
          double ready = 0;
          if (from >= 0 && from < count) {
            const State& other = all[static_cast<std::size_t>(from)];
            const auto& ended = goes_forward ? other.forward_at : other.backward_at;
            moves = number < static_cast<int>(ended.size());
            if (moves) ready = ended[static_cast<std::size_t>(number)];
          }
          if (!moves) break;
          state.free =
              std::max(state.free, ready) + (goes_forward ? times.forward : times.backward);
          (goes_forward ? state.forward_at : state.backward_at).push_back(state.free);
          ++(goes_forward ? state.forwards : state.backwards);
        }
      }
    for (std::size_t s = 0; s < all.size(); ++s) {
      all[s].free += stages[s].update;
      end = std::max(end, all[s].free);
    }
  }
  return ends[1] - ends[0];
}

}  // namespace stepladder
