// One mode between nodes and another inside, "between/inside". A node is a group of consecutive
// ranks that acts as one replica; its weights change by one step, and then nodes exchange changes.
//
//     inside   parameter_server   the first rank adds the gradients of the node and updates
//              token_ring         the weights go round the node, every rank adds its change
//              model_parallel     filters and neurons are divided among the ranks of the node
//     between  parameter_server   the first node adds the mean of all nodes' changes: synchronous
//              token_ring         the weights go round the nodes, none waits
//
// The seven combinations of ring, master-slave and model parallelism that clusters use:
// token_ring/token_ring, parameter_server/parameter_server, model_parallel/model_parallel,
// token_ring/parameter_server, parameter_server/token_ring, token_ring/model_parallel,
// parameter_server/model_parallel.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "harness/training/arithmetic.hpp"
#include "harness/training/forecast.hpp"
#include "harness/training/modes/replica.hpp"
#include "harness/training/modes/split_network.hpp"
#include "harness/training/modes/weight_token.hpp"

namespace stepladder {
namespace {

// The ranks of a node. Throws CannotRun.
int node_ranks_of(const ModeSpec& spec, int ranks, int hosts) {
  const std::string &between = spec.value("between"), &inside = spec.value("inside");
  const bool everywhere = between == "model_parallel" && inside == "model_parallel";
  if (!everywhere && between != "token_ring" && between != "parameter_server")
    throw CannotRun("between nodes: expected token_ring or parameter_server");
  if (inside != "token_ring" && inside != "parameter_server" && inside != "model_parallel")
    throw CannotRun("inside a node: expected token_ring, parameter_server or model_parallel");
  if (everywhere) return ranks;
  auto node = static_cast<int>(spec.integer("node"));
  if (node == 0) node = hosts > 1 ? ranks / hosts : std::min(2, ranks);
  if (ranks % node != 0)
    throw CannotRun(fmt::format(
        "{} ranks cannot be divided into nodes of {}; expected a divisor as node=N", ranks, node));
  return node;
}

// A node: its ranks make steps together.
class Node {
 public:
  explicit Node(const Communicator& ranks) : ranks_(ranks) {}
  virtual ~Node() = default;
  virtual TrainableNetwork& network() = 0;
  virtual double samples() = 0;  // of this rank in a step
  // A step on a batch. Returns this rank's contribution to the loss.
  virtual double gradient(std::int64_t batch) = 0;
  // After gradient(): updates the weights of the ranks that represent the node, and returns whether
  // this is one. All do in model parallel, each for its own weights.
  virtual bool update(double rate) = 0;
  virtual std::size_t count() const = 0;  // of the weights that this rank represents
  virtual void read(std::span<float> into) = 0;
  virtual void write(std::span<const float> from) = 0;
  virtual void share() = 0;  // what write() has changed, with the other ranks of the node
  virtual void collect() {}  // completes network() on every rank of the node
  virtual void restart(std::int64_t step) = 0;
  // True if all ranks represent the node, each for its own weights.
  virtual bool is_split() const { return false; }
  virtual void after_operations(const std::function<void(const Operation&)>& call) {
    network().after_operations(call);
  }
  double bytes_sent() const { return bytes_; }
  virtual const double& exchange_seconds() const { return seconds_; }  // so far

 protected:
  const Communicator& ranks_;
  double bytes_ = 0, seconds_ = 0;
};

// Ranks with the whole network, which divide the batch.
class ReplicaNode : public Node {
 public:
  ReplicaNode(const TrainingSetup& setup, const Communicator& ranks, int part, int parts)
      : Node(ranks),
        replica_(setup, setup.use, part, parts,
                 {.exchange = Exchange::none, .shared_gradients = false}),
        received_(replica_.parameters().size()) {}

  TrainableNetwork& network() override { return replica_.network(); }
  double samples() override { return replica_.samples(); }
  double gradient(std::int64_t batch) override {
    replica_.draw(batch);
    return replica_.gradient();
  }
  std::size_t count() const override { return received_.size(); }
  void read(std::span<float> into) override {
    std::ranges::copy(replica_.parameters(), into.begin());
  }
  void write(std::span<const float> from) override {
    std::ranges::copy(from, replica_.parameters().begin());
  }
  void restart(std::int64_t step) override { network().set_next_step(step + 1); }

 protected:
  void send(int to, std::span<const float> values) {
    const double start = training_clock();
    ranks_.send(to, values);
    seconds_ += training_clock() - start;
    bytes_ += static_cast<double>(values.size_bytes());
  }
  void receive(int from, std::span<float> values) {
    const double start = training_clock();
    ranks_.receive(from, values);
    seconds_ += training_clock() - start;
  }

  Replica replica_;
  std::vector<float> received_;
};

class ServerNode final : public ReplicaNode {
 public:
  using ReplicaNode::ReplicaNode;

  bool update(double rate) override {
    const std::span<float> gradients = replica_.gradients();
    if (ranks_.rank() != 0) {
      send(0, std::span<const float>(gradients));
      return false;
    }
    for (int rank = 1; rank < ranks_.ranks(); ++rank) {
      receive(rank, received_);
      add_to(gradients, received_);
    }
    divide(gradients, static_cast<float>(ranks_.ranks()));
    replica_.update(rate);
    return true;
  }
  void share() override {
    if (ranks_.rank() != 0) {
      receive(0, replica_.parameters());
      return;
    }
    for (int rank = 1; rank < ranks_.ranks(); ++rank)
      send(rank, std::span<const float>(replica_.parameters()));
  }
};

class RingNode final : public ReplicaNode {
 public:
  using ReplicaNode::ReplicaNode;

  bool update(double rate) override {
    const int rank = ranks_.rank(), ranks = ranks_.ranks();
    const std::span<float> weights = replica_.parameters();
    std::ranges::copy(weights, received_.begin());
    replica_.update(rate);
    if (ranks == 1) return true;
    // This rank's change, and the token: weights and the changes of the ranks before.
    const auto parts = static_cast<float>(ranks);
    std::vector<float>& before = received_;
    set_to_part_of_difference(weights, before, parts);
    if (rank > 0) receive(rank - 1, before);
    add_to(weights, before);
    send((rank + 1) % ranks, std::span<const float>(weights));
    if (rank == 0) receive(ranks - 1, weights);
    return rank == 0;
  }
  void share() override {
    const int rank = ranks_.rank(), ranks = ranks_.ranks();
    if (rank > 0) receive(rank - 1, replica_.parameters());
    if (rank + 1 < ranks) send(rank + 1, std::span<const float>(replica_.parameters()));
  }
};

class SplitNode final : public Node {
 public:
  SplitNode(const TrainingSetup& setup, const Communicator& ranks, int part, int parts)
      : Node(ranks),
        split_(with_part(setup, parts), ranks),
        first_(static_cast<int>(split_.whole().batch()) * part),
        batches_(*setup.data, static_cast<int>(setup.description.batch), setup.seed, setup.shift) {}

  TrainableNetwork& network() override { return split_.whole(); }
  double samples() override { return static_cast<double>(split_.whole().batch()) / ranks_.ranks(); }
  double gradient(std::int64_t batch) override {
    batches_.draw(batch, first_, network().images(), network().labels());
    split_.set_next_step(batch + 1);  // for dropout
    const double loss = split_.forward();
    split_.backward();
    bytes_ = split_.bytes_sent();
    return loss / ranks_.ranks();
  }
  bool update(double rate) override {
    split_.update(rate);
    return true;
  }
  std::size_t count() const override { return split_.parameter_count(); }
  void read(std::span<float> into) override { split_.read_parameters(into); }
  void write(std::span<const float> from) override { split_.write_parameters(from); }
  void share() override {}
  void collect() override { split_.collect(); }
  bool is_split() const override { return true; }
  void after_operations(const std::function<void(const Operation&)>& call) override {
    split_.after_operations(call);
  }
  const double& exchange_seconds() const override { return split_.exchange_seconds(); }
  void restart(std::int64_t step) override {
    split_.take();
    split_.set_next_step(step + 1);
  }

 private:
  static TrainingSetup with_part(TrainingSetup setup, int parts) {
    std::int64_t& batch = setup.description.batch;
    if (batch % parts != 0)
      throw std::runtime_error(
          fmt::format("model_parallel inside nodes: a batch of {} cannot be divided among {} nodes",
                      batch, parts));
    batch /= parts;
    return setup;
  }

  SplitNetwork split_;
  int first_;
  data::Batches batches_;
};

const ModeInfo info{
    .name = "hybrid",
    .idea =
        "one mode between nodes and another inside: between/inside, as token_ring/model_parallel",
    .replicas = ModeInfo::Replicas::ranks,
    .synchronous = false,
    .divides_batches = false,
    .options = {{"between", "token_ring",
                 "token_ring, parameter_server, or model_parallel with model_parallel inside"},
                {"inside", "parameter_server", "token_ring, parameter_server or model_parallel"},
                {"node", "0", "ranks of a node; 0: those of a host, or 2 on one host"}},
};

class Hybrid final : public Mode {
 public:
  Hybrid(const TrainingSetup& setup, const ModeSpec& spec)
      : Mode(setup, "hybrid"),
        is_ring_(spec.value("between") == "token_ring"),
        node_ranks_(node_ranks_of(spec, communicator().ranks(), mpi_session().hosts())),
        inside_(communicator().split(communicator().rank() / node_ranks_)),
        between_(communicator().split(communicator().rank() % node_ranks_)),
        node_(make_node(setup, spec)) {
    base_.resize(node_->count());
    change_.resize(node_->count());
    if (is_ring_) {
      token_ = std::make_unique<WeightToken>(between_, node_->count());
      node_->after_operations([this](const Operation&) { token_->poll(); });
    }
  }

  TrainableNetwork& network() override { return node_->network(); }
  // Every node has the same weights after train().
  void collect() override { node_->collect(); }
  void restart(const Progress& progress) override {
    Mode::restart(progress);
    node_->restart(progress.step);
    own_batches_ = progress.step / nodes();
  }

 private:
  int nodes() const { return communicator().ranks() / node_ranks_; }
  int node() const { return communicator().rank() / node_ranks_; }

  // Nodes divide a batch if they make their steps together; else each takes whole ones.
  std::unique_ptr<Node> make_node(const TrainingSetup& setup, const ModeSpec& spec) const {
    const int nodes = is_ring_ ? 1 : this->nodes(), node = is_ring_ ? 0 : this->node();
    const std::string& inside = spec.value("inside");
    if (inside == "model_parallel") return std::make_unique<SplitNode>(setup, inside_, node, nodes);
    const int part = node * node_ranks_ + inside_.rank(), parts = nodes * node_ranks_;
    if (inside == "token_ring") return std::make_unique<RingNode>(setup, inside_, part, parts);
    return std::make_unique<ServerNode>(setup, inside_, part, parts);
  }

  void train_to(std::int64_t last) override {
    const double bytes = node_->bytes_sent() + (token_ ? token_->bytes_sent() : 0);
    node_->read(base_);
    is_ring_ ? train_ring(last) : train_together(last);
    sent(node_->bytes_sent() + (token_ ? token_->bytes_sent() : 0) - bytes);
  }

  // Work of the node, in which its ranks exchange messages.
  template <class Work>
  void compute_in_node(double samples, const Work& work) {
    compute_and_exchange(samples, node_->exchange_seconds(), work);
  }

  double gradient(std::int64_t batch) {
    double loss = 0;
    compute_in_node(node_->samples(), [&] { loss = node_->gradient(batch); });
    return loss;
  }

  void train_together(std::int64_t last) {
    while (progress().step < last) {
      const double rate = learning_rate(progress().step);
      double loss = gradient(progress().step);
      bool represents = false;
      compute_in_node(0, [&] { represents = node_->update(rate); });
      if (represents && nodes() > 1) add_mean_change();
      compute_in_node(0, [&] { node_->share(); });
      blocked([&] { communicator().sum(std::span<double>(&loss, 1)); });
      finished(node_->is_split() ? loss / nodes() : loss, rate);
    }
  }

  // The first node adds the mean of the changes of all to the weights, and sends them.
  void add_mean_change() {
    const double bytes = static_cast<double>(base_.size() * sizeof(float));
    compute(0, [&] {
      node_->read(change_);
      subtract_from(change_, base_);
    });
    if (between_.rank() != 0) {
      blocked([&] { between_.send(0, std::span<const float>(change_)); }, bytes);
      blocked([&] { between_.receive(0, std::span<float>(base_)); }, bytes);
      sent(bytes);
    } else {
      received_.resize(base_.size());
      for (int other = 1; other < nodes(); ++other) {
        blocked([&] { between_.receive(other, std::span<float>(received_)); }, bytes);
        compute(0, [&] { add_to(change_, received_); });
      }
      compute(0, [&] { add_quotient(base_, change_, static_cast<float>(nodes())); });
      for (int other = 1; other < nodes(); ++other)
        blocked([&] { between_.send(other, std::span<const float>(base_)); }, bytes);
      sent(bytes * (nodes() - 1));
    }
    compute(0, [&] { node_->write(base_); });
  }

  // Ranks of a node make their steps together until the tokens of all have ended.
  void train_ring(std::int64_t last) {
    const bool represents = node_->is_split() || inside_.rank() == 0;
    if (represents) token_->begin(base_, progress().step);
    std::int64_t own = 0;
    double loss = 0, rate = 0, all_ended = 0, updates = static_cast<double>(progress().step);
    while (all_ended == 0) {
      rate = learning_rate(static_cast<std::int64_t>(updates));
      loss = gradient(own_batches_++ * nodes() + node());
      bool ended = true, updates_node = false;
      compute_in_node(0, [&] { updates_node = node_->update(rate); });
      compute(0, [&] {
        if (!updates_node) return;
        ++own;
        if (token_->arrived()) {
          node_->read(change_);
          const std::int64_t missed = token_->exchange(change_, own, last);
          node_->write(change_);
          for (; own > 0; --own)
            if (inside_.rank() == 0) stale(missed);
        }
        ended = token_->ended();
      });
      compute_in_node(0, [&] { node_->share(); });
      blocked([&] {
        all_ended = ended ? 1 : 0;
        inside_.minimum(std::span<double>(&all_ended, 1));
        double sums[] = {loss, inside_.rank() == 0 ? static_cast<double>(token_->updates()) : 0};
        inside_.sum(std::span<double>(sums));
        loss = sums[0];
        updates = sums[1];
      });
      if (communicator().rank() == 0 && token_->updates() > progress().step)
        finished(loss, rate, token_->updates() - progress().step);
    }
    std::int64_t all = 0;
    blocked([&] {
      // The ranks that represent their node have the weights; the others get them.
      if (represents) {
        all = token_->finish(change_);
        node_->write(change_);
      }
      node_->share();
      all = static_cast<std::int64_t>(communicator().maximum(static_cast<double>(all)));
    });
    finished(loss, rate, all - progress().step);
  }

  bool is_ring_;
  int node_ranks_;
  Communicator inside_, between_;  // the ranks of this node; those of other nodes in this position
  std::unique_ptr<Node> node_;
  std::unique_ptr<WeightToken> token_;
  std::vector<float> base_, change_, received_;  // base_: the weights after the last exchange
  std::int64_t own_batches_ = 0;
};

void forecast(Forecast& f) {
  const std::string &between = f.mode.value("between"), &inside = f.mode.value("inside");
  if (between == "model_parallel" && inside == "model_parallel")
    return mode_named("model_parallel").forecast(f);
  const int node = node_ranks_of(f.mode, f.cluster.ranks, f.cluster.hosts);
  const int nodes = f.cluster.ranks / node;
  const bool is_ring = between == "token_ring", is_split = inside == "model_parallel";
  if (is_split && !is_ring && f.batch() % nodes != 0)
    throw CannotRun(
        fmt::format("a batch of {} cannot be divided among {} nodes", f.batch(), nodes));
  // Consecutive ranks are a node: messages inside it stay on a host if it fits there.
  const bool is_on_host = f.of_host() % node == 0;
  const auto near = [&](double bytes) {
    return is_on_host ? f.links.within.send(bytes) : f.hop(bytes);
  };
  const double k = node, all = is_split ? f.n() / k : f.n();  // that a rank represents
  const std::int64_t samples = is_ring ? f.batch() : f.part(nodes);
  if (is_split) {
    f.predicted.compute = f.times.split(samples, node, f.cluster.ranks).slowest_step;
    f.predicted.exposed = f.exchange(samples, node, [&](double bytes) {
      return is_on_host ? f.links.within.shift(bytes) : f.shift(bytes);
    });
  } else {
    const StepTimes& times = f.times.whole(ceil_div(samples, std::int64_t{node}), f.cluster.ranks);
    const double hops = inside == "token_ring" ? k : k - 1;
    f.predicted.compute = times.slowest_gradient +
                          (inside == "token_ring" ? times.update + f.copy(f.n()) + 2 * f.add(f.n())
                                                  : times.update_alone + f.copy(f.n()));
    f.predicted.exposed =
        node == 1 ? 0 : hops * (near(f.n()) + f.add(f.n())) + (k - 1) * near(f.n());
    f.predicted.bytes += ((inside == "token_ring" ? k : k - 1) + (k - 1)) * f.n() / k;
  }
  const double step = f.predicted.compute + f.predicted.exposed;
  if (is_ring) {
    const double whole = f.with_token(step, nodes, all, f.hop(all));
    f.predicted.compute = (f.predicted.compute + whole - step) / nodes;
    f.predicted.exposed /= nodes;
    if (!is_split) f.predicted.bytes /= nodes;
  } else if (nodes > 1) {
    const double others = nodes - 1;
    f.predicted.compute += 2 * f.copy(all) + 2 * f.add(all);
    f.predicted.exposed += others * (2 * f.hop(all) + f.add(all));
    f.predicted.bytes += 2 * others * all / nodes / (is_split ? 1 : k);
  }
}

const ModeRegistration registration(info, make_mode<Hybrid>, forecast);

}  // namespace
}  // namespace stepladder
