#include "harness/planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>

#include "harness/adapters/primitives.hpp"
#include "harness/training/modes/segments.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/sgd_update/sgd_update.hpp"

namespace stepladder {
namespace {

using network::NetworkDescription;

// The mode cannot run; what() says why.
struct CannotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Predictor {
 public:
  Predictor(const NetworkDescription& network, const UseSpec& use, const Cluster& cluster,
            const Links& links, LayerTimes& times, const ModeSpec& mode)
      : network_(network), use_(use), cluster_(cluster), links_(links), times_(times), mode_(mode) {
    now_.mode = mode.text();
    now_.synchronous = mode_named(mode.name()).info.synchronous;
  }

  Prediction predict() {
    using Model = void (Predictor::*)();
    static const std::map<std::string, Model> models = {
        {"single", &Predictor::single},
        {"synchronous", &Predictor::synchronous},
        {"sharded", &Predictor::sharded},
        {"local_sgd", &Predictor::local_sgd},
        {"parameter_server", &Predictor::parameter_server},
        {"downpour", &Predictor::downpour},
        {"ssp", &Predictor::ssp},
        {"token_ring", &Predictor::token_ring},
        {"pipeline", &Predictor::pipeline},
        {"model_parallel", &Predictor::model_parallel},
        {"hybrid", &Predictor::hybrid},
        {"hogwild", &Predictor::hogwild},
        {"threads_over_samples", &Predictor::threads_over_samples},
        {"actors_learner", &Predictor::actors_learner},
    };
    const auto model = models.find(mode_.name());
    try {
      if (model == models.end()) throw CannotRun("the planner has no model of this mode");
      (this->*model->second)();
    } catch (const CannotRun& reason) {
      now_.why_not = reason.what();
    }
    return now_;
  }

 private:
  std::int64_t batch() const { return network_.batch; }
  double p() const { return cluster_.ranks; }
  double n() const { return 4 * static_cast<double>(network::parameter_count(network_)); }
  int of_host() const { return cluster_.ranks / cluster_.hosts; }
  bool one_host() const { return cluster_.hosts == 1; }
  // Ranks that compute at the same time, each on one core.
  double cores() const { return std::max(1, cluster_.cores / cluster_.threads); }
  std::int64_t part(std::int64_t parts) const { return ceil_div(batch(), parts); }

  // --- messages ----------------------------------------------------------------------------------

  double add(double bytes) const { return links_.add(bytes); }
  double copy(double bytes) const { return links_.copy(bytes); }
  // Between neighbours of a ring: one at a time, or all at once.
  const LinkCosts& ring() const { return one_host() ? links_.within : links_.between; }
  double hop(double bytes) const { return ring().send(bytes); }
  double shift(double bytes) const { return ring().shift(bytes); }
  // Between rank 0 and all others, one after another.
  double to_all(double bytes) const {
    const double here = of_host() - 1;
    return here * links_.within.send(bytes) + (p() - 1 - here) * links_.between.send(bytes);
  }
  CommunicationCost cost(double bytes) const {
    return {.p = p(), .n = bytes, .g = static_cast<double>(of_host()), .l = links_};
  }
  // Rungs that exchange through shared memory are as fast with any links between hosts, and cannot
  // run there.
  bool leaves_the_host(detail::CostFunction rung, double bytes) const {
    Links slow = links_;
    const CostCurve line = CostCurve::line(1, 1);
    slow.between = {line, line, line};
    const CommunicationCost on_slow{.p = p(), .n = bytes, .g = cost(bytes).g, .l = slow};
    return rung(on_slow) > rung(cost(bytes));
  }

  struct Reduction {
    double seconds = 0;
    std::string rung;
    double bytes = 0;  // that a rank sends
  };
  // By the rung that `use` names, or the fastest of several. Those in a window need one host.
  Reduction all_reduce(const UseSpec& use, double bytes) const {
    if (cluster_.ranks == 1) return {};
    Reduction best;
    best.seconds = std::numeric_limits<double>::infinity();
    std::string without;
    for (const Variant& variant : use.candidates(all_reduce_type())) {
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

  // --- data parallel -----------------------------------------------------------------------------

  // The gradient of a part of the batch and the update, on all ranks. Parts may differ in size.
  void compute_parts(double update) {
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    const double share =
        static_cast<double>(batch()) / p() / static_cast<double>(part(cluster_.ranks));
    now_.compute = times.slowest_gradient * share + update;
    now_.waiting = times.slowest_gradient * (1 - share);
  }
  double update_of_all() {
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    return times.slowest_step - times.slowest_gradient;
  }

  void single() {
    if (cluster_.ranks > 1) throw CannotRun("it runs on one rank");
    now_.compute = times_.whole(batch(), 1).free_step;
  }

  void synchronous() {
    const std::string& rung = mode_.value("compressed");
    const UseSpec use = rung.empty() ? use_ : use_.with("all_reduce", rung);
    const Reduction reduction = all_reduce(use, n());
    now_.all_reduce = reduction.rung;
    now_.bytes = reduction.bytes;
    now_.exposed = reduction.seconds;
    compute_parts(update_of_all());
    if (mode_.flag("overlap") && cluster_.ranks > 1)
      now_.exposed =
          exposed_of_buckets(use, 1024.0 * static_cast<double>(mode_.integer("bucket_kib", 1)));
  }

  // A bucket is reduced when the one before it is, and when the gradients of its layers are there.
  // On one host this takes a core that no rank computes on; else nothing is hidden.
  double exposed_of_buckets(const UseSpec& use, double least) {
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    const bool hides = !one_host() || of_host() < cores();
    double computed = 0, reduced = 0, bytes = 0;
    for (auto layer = times.layers.rbegin(); layer != times.layers.rend(); ++layer) {
      computed += layer->backward;
      bytes += 4 * static_cast<double>(layer->parameters);
      const bool is_last = layer + 1 == times.layers.rend();
      if (bytes == 0 || (bytes < least && !is_last)) continue;
      reduced = (hides ? std::max(reduced, computed) : reduced) + all_reduce(use, bytes).seconds;
      bytes = 0;
    }
    return hides ? std::max(0.0, reduced - computed) : reduced;
  }

  void sharded() {
    if (cluster_.ranks == 1) return compute_parts(update_of_all());
    const detail::Entry* rung = nullptr;
    for (const detail::Entry& entry : detail::entries(sgd_update::SgdUpdate::name))
      if (entry.cost != nullptr && std::string(entry.info->name) == "sharded_update") rung = &entry;
    if (rung == nullptr) throw CannotRun("sharded_update was not built");
    // The cost function updates as fast as it adds; here the update is measured.
    for (const double bytes : times_.whole(part(cluster_.ranks), cluster_.ranks).updated)
      now_.exposed += rung->cost(cost(bytes)) - add(bytes / p());
    compute_parts(update_of_all() / p());
    now_.bytes = 2 * (p() - 1) / p() * n();
  }

  void local_sgd() {
    const auto every = static_cast<double>(mode_.integer("every", 1));
    const Reduction mean = all_reduce(use_, n());
    const bool has_momentum = mode_.number("block_momentum") > 0;
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    now_.all_reduce = mean.rung;
    now_.exposed = mean.seconds / every;
    now_.bytes = mean.bytes / every;
    // Ranks wait for each other only at the mean.
    now_.compute = times.free_step + ((has_momentum ? 3 : 1) * copy(n()) + copy(n())) / every;
  }

  // --- servers -----------------------------------------------------------------------------------

  void parameter_server() {
    auto first = static_cast<int>(mode_.integer("first"));
    if (first > cluster_.ranks)
      throw CannotRun(fmt::format("first={} is more than the ranks", first));
    if (first == 0) first = cluster_.ranks;
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    compute_parts((copy(n()) + times.update_alone) / p());
    if (cluster_.ranks == 1) return;
    const double share = (first - 1) / (p() - 1);
    now_.exposed = share * (2 * to_all(n()) + (p() - 1) * add(n()));
    now_.waiting += (copy(n()) + times.update_alone) * (p() - 1) / p();  // for the master
    now_.bytes = 2 * share * (p() - 1) / p() * n();
  }

  // What a worker's update takes: its gradient, two messages and the server's part; and what the
  // server is busy with. The server and the workers take turns where cores are few.
  struct Service {
    double gradient, messages, server;
    int workers;
    double busy;  // of the server, per update of a worker
  };
  void serve(const Service& s) {
    const double cycle = s.gradient + s.messages + s.server;
    double seconds = std::max(cycle / s.workers, s.busy);
    if (one_host())
      seconds = std::max(seconds,
                         (s.gradient / std::max(1.0, s.workers / cores()) + s.messages + s.server) /
                             std::min(cores(), p()));
    now_.compute = (s.gradient + s.server) / p();
    now_.exposed = 2 * s.messages / p();
    now_.compute = std::min(now_.compute, seconds);
    now_.exposed = std::min(now_.exposed, seconds - now_.compute);
    now_.waiting = seconds - now_.compute - now_.exposed;
  }

  void downpour() {
    if (cluster_.ranks == 1) return single();
    const int workers = cluster_.ranks - 1;
    const StepTimes& times = times_.whole(batch(), workers);
    const double messages = 2 * to_all(n()) / workers;
    serve({.gradient = times.free_step - times.update,
           .messages = messages,
           .server = times.update_alone,
           .workers = workers,
           .busy = messages + times.update_alone});
    now_.bytes = 2 * n() / p();
  }

  // An update needs a gradient of every worker. A worker that is ahead gets the weights at once,
  // the last one after the update.
  void ssp() {
    if (cluster_.ranks == 1) return single();
    const int workers = cluster_.ranks - 1;
    const StepTimes& times = times_.whole(part(workers), workers);
    const double gradient = times.free_step - times.update, messages = to_all(n()),
                 server = copy(n()) + times.update_alone, of_worker = 2 * messages / workers,
                 busy = 2 * messages + workers * add(n()) + server;
    double seconds = mode_.integer("bound") == 0
                         ? times.slowest_gradient + busy
                         : std::max(gradient + of_worker + add(n()) + server, busy);
    if (one_host())
      seconds = std::max(seconds, (workers * gradient / std::max(1.0, workers / cores()) + busy) /
                                      std::min(cores(), p()));
    now_.compute = (workers * (gradient + add(n())) + server) / p();
    now_.exposed = 4 * messages / p();
    now_.compute = std::min(now_.compute, seconds);
    now_.exposed = std::min(now_.exposed, seconds - now_.compute);
    now_.waiting = seconds - now_.compute - now_.exposed;
    now_.bytes = 2 * workers * n() / p();
  }

  // --- a ring ------------------------------------------------------------------------------------

  // The rank that has the token adds its change at the end of a step and hands the token on. The
  // next one comes to the end of a step half a step later on average, so a round of r ranks takes
  // r/2 steps, but at least one. Returns the seconds of a step with its share of the token.
  // Within a host the receiver copies the message itself.
  double with_token(double step, double ranks, double bytes, double message) {
    if (ranks == 1) return step;
    const double received = one_host() ? message : copy(bytes);
    const double handling = received + 2 * add(bytes) + copy(bytes);
    const double round = std::max(1.0, ranks / 2 + ranks * message / step);
    now_.bytes += bytes / round / ranks;
    return step + handling / round;
  }

  void token_ring() {
    const double step = times_.whole(batch(), cluster_.ranks).free_step;
    now_.compute = with_token(step, p(), n(), hop(n())) / p();
  }

  // --- layers and channels -----------------------------------------------------------------------

  void pipeline() {
    std::int64_t count = mode_.integer("micro_batches");
    const std::string& schedule = mode_.value("schedule");
    if (schedule != "1f1b" && schedule != "fill_drain")
      throw CannotRun(fmt::format("schedule={}: expected 1f1b or fill_drain", schedule));
    if (count == 0)  // as the mode chooses
      for (count = std::min<std::int64_t>(4 * cluster_.ranks, batch()); batch() % count != 0;)
        --count;
    if (batch() % count != 0)
      throw CannotRun(fmt::format("a batch of {} cannot be divided into {} equal micro-batches",
                                  batch(), count));
    const NetworkDescription ordered = network::pool_before_relu(network_);
    const std::vector<Segment> segments = segments_of(ordered, false);
    const std::size_t stages = std::min(static_cast<std::size_t>(cluster_.ranks), segments.size());
    const auto samples = batch() / count;
    const StepTimes& times = times_.whole(samples, static_cast<int>(stages));
    std::vector<double> seconds;
    for (const Segment& segment : segments) {
      seconds.push_back(0);
      for (std::size_t i = segment.first; i < segment.end; ++i)
        seconds.back() += times.layers[i].forward + times.layers[i].backward;
    }
    const std::vector<std::size_t> firsts = balanced_stages(seconds, stages);
    std::vector<StageTimes> all;
    double work = 0;
    for (std::size_t s = 0; s < stages; ++s) {
      const std::size_t first = segments[firsts[s]].first, end = s + 1 < stages
                                                                     ? segments[firsts[s + 1]].first
                                                                     : ordered.layers.size();
      StageTimes stage;
      double parameters = 0;
      for (std::size_t i = first; i < end; ++i) {
        stage.forward += times.layers[i].forward;
        stage.backward += times.layers[i].backward;
        parameters += 4 * static_cast<double>(times.layers[i].parameters);
      }
      const auto bytes = [&](const network::Shape& shape) {
        return 4.0 * static_cast<double>(samples * shape.features());
      };
      const double received = bytes(ordered.layers[first].input),
                   returned = bytes(ordered.layers[end - 1].output);
      if (s == 0 || s + 1 == stages) stage.forward += times.draw;
      if (s > 0) stage.forward += hop(received);
      if (s + 1 < stages) stage.backward += hop(returned);
      if (s > 0) now_.bytes += static_cast<double>(count) * received / p();
      if (s + 1 < stages) now_.bytes += static_cast<double>(count) * returned / p();
      stage.backward += add(parameters);  // to the sum over the micro-batches
      stage.update = copy(parameters) + times.update_alone * parameters / n();
      work += static_cast<double>(count) * (stage.forward + stage.backward) + stage.update;
      now_.exposed += static_cast<double>(count) *
                      ((s > 0 ? hop(received) : 0) + (s + 1 < stages ? hop(returned) : 0)) / p();
      all.push_back(stage);
    }
    double step = pipeline_seconds(all, static_cast<int>(count), schedule == "1f1b");
    if (one_host()) step = std::max(step, work / std::min(cores(), p()));
    now_.compute = work / p() - now_.exposed;
    now_.waiting = step - now_.compute - now_.exposed;
  }

  // Exchanges of activations among `ranks` by the collectives of Open MPI: an all-gather, and for the
  // gradients a reduction to one rank that scatters the sums, or an all-reduce in a ring; with the
  // copies between the layouts of all channels and of a rank's.
  double exchange(std::int64_t samples, int ranks, const std::function<double(double)>& message) {
    const std::vector<SplitSegment> segments = split_segments(network_, ranks);
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
    now_.bytes += bytes_sent;
    return seconds;
  }

  void model_parallel() {
    const StepTimes& times = times_.split(batch(), cluster_.ranks, cluster_.ranks);
    now_.compute = times.slowest_step;
    if (cluster_.ranks > 1)
      now_.exposed =
          exchange(batch(), cluster_.ranks, [this](double bytes) { return shift(bytes); });
  }

  // --- hybrids -----------------------------------------------------------------------------------

  void hybrid() {
    const std::string &between = mode_.value("between"), &inside = mode_.value("inside");
    if (between == "model_parallel" && inside == "model_parallel") return model_parallel();
    if (between != "token_ring" && between != "parameter_server")
      throw CannotRun("between nodes: expected token_ring or parameter_server");
    if (inside != "token_ring" && inside != "parameter_server" && inside != "model_parallel")
      throw CannotRun("inside a node: expected token_ring, parameter_server or model_parallel");
    auto node = static_cast<int>(mode_.integer("node"));
    if (node == 0) node = one_host() ? std::min(2, cluster_.ranks) : of_host();
    if (cluster_.ranks % node != 0)
      throw CannotRun(fmt::format("{} ranks cannot be divided into nodes of {}; set node=N",
                                  cluster_.ranks, node));
    const int nodes = cluster_.ranks / node;
    const bool is_ring = between == "token_ring", is_split = inside == "model_parallel";
    if (is_split && !is_ring && batch() % nodes != 0)
      throw CannotRun(
          fmt::format("a batch of {} cannot be divided among {} nodes", batch(), nodes));
    // Consecutive ranks are a node: messages inside it stay on a host if it fits there.
    const bool is_on_host = of_host() % node == 0;
    const auto near = [&](double bytes) {
      return is_on_host ? links_.within.send(bytes) : hop(bytes);
    };
    const double k = node, all = is_split ? n() / k : n();  // that a rank represents
    const std::int64_t samples = is_ring ? batch() : part(nodes);
    double step = 0;
    if (is_split) {
      const StepTimes& times = times_.split(samples, node, cluster_.ranks);
      step = times.slowest_step;
      now_.compute = step;
      now_.exposed = exchange(samples, node, [&](double bytes) {
        return is_on_host ? links_.within.shift(bytes) : shift(bytes);
      });
    } else {
      const StepTimes& times = times_.whole(ceil_div(samples, std::int64_t{node}), cluster_.ranks);
      const double hops = inside == "token_ring" ? k : k - 1;
      now_.compute =
          times.slowest_gradient + (inside == "token_ring" ? times.update + copy(n()) + 2 * add(n())
                                                           : times.update_alone + copy(n()));
      now_.exposed = node == 1 ? 0 : hops * (near(n()) + add(n())) + (k - 1) * near(n());
      now_.bytes += ((inside == "token_ring" ? k : k - 1) + (k - 1)) * n() / k;
    }
    step = now_.compute + now_.exposed;
    if (is_ring) {
      const double whole = with_token(step, nodes, all, hop(all));
      now_.compute = (now_.compute + whole - step) / nodes;
      now_.exposed /= nodes;
      if (!is_split) now_.bytes /= nodes;
    } else if (nodes > 1) {
      const double others = nodes - 1;
      now_.compute += 2 * copy(all) + 2 * add(all);
      now_.exposed += others * (2 * hop(all) + add(all));
      now_.bytes += 2 * others * all / nodes / (is_split ? 1 : k);
    }
  }

  // --- threads of one process --------------------------------------------------------------------

  void require_one_host() const {
    if (!one_host()) throw CannotRun("its replicas are threads of one process, on one host");
  }

  void hogwild() {
    require_one_host();
    now_.compute = times_.whole(batch(), cluster_.ranks).free_step / p();
  }

  void threads_over_samples() {
    require_one_host();
    const StepTimes& times = times_.whole(part(cluster_.ranks), cluster_.ranks);
    compute_parts((p() - 1) * add(n() / p()) + copy(n() / p()) +
                  times.update_alone / std::min(cores(), p()));
  }

  // The learner copies batches that others have drawn.
  void actors_learner() {
    require_one_host();
    const StepTimes& times = times_.whole(batch(), 1);
    const double learner = times.free_step - times.draw +
                           copy(4.0 * static_cast<double>(batch() * network_.input.features())),
                 actors = times.draw / p(),
                 seconds = std::max(
                     {learner, actors, (learner + times.draw) / std::max(1, cluster_.cores)});
    now_.compute = learner;
    now_.waiting = seconds - learner;
  }

  const NetworkDescription& network_;
  const UseSpec& use_;
  const Cluster& cluster_;
  const Links& links_;
  LayerTimes& times_;
  const ModeSpec& mode_;
  Prediction now_;
};

}  // namespace

Prediction predict(const NetworkDescription& network, const UseSpec& use, const Cluster& cluster,
                   const Links& links, LayerTimes& times, const ModeSpec& mode) {
  return Predictor(network, use, cluster, links, times, mode).predict();
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

std::vector<ActivationExchange> activation_exchanges(const NetworkDescription& network, int ranks) {
  const std::vector<SplitSegment> segments = split_segments(network, ranks);
  std::vector<ActivationExchange> exchanges;
  const double others = ranks - 1;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const SplitSegment &before = segments[i - 1], &next = segments[i];
    const network::LayerDescription& layer =
        *std::ranges::find(network.layers, next.layer, &network::LayerDescription::name);
    const double bytes = 4 * static_cast<double>(network.batch) * next.values * others;
    ActivationExchange exchange{.from = before.layer, .to = next.layer};
    if (!next.receives_own) {
      exchange.forward = before.is_split ? bytes : 0;
      exchange.backward = !next.is_split ? 0 : before.is_split ? bytes : 2 * bytes;
    }
    const auto* convolution = std::get_if<network::Convolution>(&layer.layer);
    const bool is_last = i + 2 >= segments.size();  // before the loss
    if (layer.weights() > 0 && (convolution == nullptr || convolution->groups == 1))
      exchange.survey = is_last ? bytes / ranks : bytes;
    exchanges.push_back(exchange);
  }
  return exchanges;
}

}  // namespace stepladder
