// Two binary trees, each for one half of the vector. Half of the ranks of a binary tree are leaves,
// which send once and receive once; as inner nodes of the other tree they have the same work as all
// others. Halves travel in S segments: up, where an inner node adds those of its two children to
// its own, and down again as soon as the root has completed them.
//
//     T = S (alpha + 4 m beta) + 2 h (alpha + 2 m beta) + n gamma
//       = 2 n beta + n gamma + 2 h alpha + sqrt(8 h alpha n beta)    with the best S
//
// p ranks, n bytes, segments of m = n / 2S bytes, h = log2 p. S = sqrt(2 h n / b) minimizes T;
// b = alpha / beta is taken as 64 KiB, which is 50 us at 10 Gbit/s or 5 us at 100 Gbit/s.
//
// Identical bits: the root of a tree alone completes a segment and divides it; all others receive
// copies. tree_schedule.hpp has the trees (Sanders, Speck and Traeff, 2009).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"
#include "kernels/all_reduce/tree_schedule.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr double latency_bytes = 64 * 1024;  // alpha / beta
constexpr std::int64_t in_flight = 2;        // messages of a stream

double segments_of(double bytes, int ranks) {
  return std::max(1.0, std::round(std::sqrt(2 * tree_depth(ranks) * bytes / latency_bytes)));
}

// The segments that travel along one edge in one direction, in order.
struct Stream {
  std::array<MPI_Request, in_flight> requests{};
  std::int64_t started = 0, finished = 0;

  bool has_room() const { return started - finished < in_flight; }
  void start(MPI_Request request) {
    requests[static_cast<std::size_t>(started++ % in_flight)] = request;
  }
  MPI_Request oldest() const { return requests[static_cast<std::size_t>(finished % in_flight)]; }
};

struct Tree {
  int index;
  TreeNode node;
  Chunk half;
  std::int64_t segments;    // S; 0 if there is no element for this half
  std::int64_t summed = 0;  // segments that this rank can send to its parent
  std::array<Stream, 2> from_child{}, to_child{};
  Stream to_parent{}, from_parent{};

  bool is_root() const { return node.parent == no_rank; }
  bool is_leaf() const { return node.children[0] == no_rank; }
};

class DoubleBinaryTree final : public Plan {
 public:
  DoubleBinaryTree(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        segments_(static_cast<std::int64_t>(
            segments_of(static_cast<double>(problem.count) * sizeof(float), group_.ranks()))),
        longest_(problem.count / 2 / segments_ + 2) {
    bool is_inner = false;
    for (int index : {0, 1}) {
      const TreeNode node = tree_node(index, group_.rank(), group_.ranks());
      const Chunk half = chunk_of({0, problem.count}, 2, index);
      trees_[static_cast<std::size_t>(index)] = {
          .index = index, .node = node, .half = half, .segments = half.count > 0 ? segments_ : 0};
      is_inner = is_inner || node.children[0] != no_rank;
    }
    // A rank is an inner node of one tree at most.
    if (is_inner) received_ = aligned_array<float>(2 * in_flight * longest_);
  }

  void run(const Operands& o) override {
    if (group_.ranks() == 1) return copy(o.input, o.output, problem_.count);
    for (Tree& tree : trees_) {
      tree = {.index = tree.index, .node = tree.node, .half = tree.half, .segments = tree.segments};
      if (tree.is_leaf()) tree.summed = tree.segments;
      advance(tree, o);
    }
    // Waits for any stream's oldest message, as often as messages are on their way.
    for (;;) {
      std::array<MPI_Request, 12> requests;
      std::array<std::pair<Stream*, Tree*>, 12> streams;
      std::size_t count = 0;
      for (Tree& tree : trees_)
        for (Stream* stream : {&tree.from_child[0], &tree.from_child[1], &tree.to_parent,
                               &tree.from_parent, &tree.to_child[0], &tree.to_child[1]})
          if (stream->started > stream->finished) {
            requests[count] = stream->oldest();
            streams[count++] = {stream, &tree};
          }
      if (count == 0) return;
      const auto [stream, tree] = streams[Group::wait_any({requests.data(), count})];
      ++stream->finished;
      advance(*tree, o);
    }
  }

 private:
  // Adds what has arrived and starts every message that can start.
  void advance(Tree& tree, const Operands& o) {
    if (!tree.is_leaf()) advance_sums(tree, o);
    if (!tree.is_root()) {
      const float* source = tree.is_leaf() ? o.input : o.output;
      for (Stream& up = tree.to_parent; up.started < tree.summed && up.has_room();) {
        const Chunk part = segment(tree, up.started);
        up.start(group_.start_send(source + part.first, part.count, tree.node.parent, tree.index));
      }
      // A segment comes down into the memory from which it was sent up.
      Stream& down = tree.from_parent;
      while (down.started < tree.to_parent.finished && down.has_room()) {
        const Chunk part = segment(tree, down.started);
        down.start(
            group_.start_receive(o.output + part.first, part.count, tree.node.parent, tree.index));
      }
    }
    const std::int64_t complete = tree.is_root() ? tree.summed : tree.from_parent.finished;
    for (std::size_t c : {0, 1}) {
      if (tree.node.children[c] == no_rank) continue;
      Stream& down = tree.to_child[c];
      while (down.started < complete && down.has_room()) {
        const Chunk part = segment(tree, down.started);
        down.start(group_.start_send(o.output + part.first, part.count, tree.node.children[c],
                                     tree.index));
      }
    }
  }

  void advance_sums(Tree& tree, const Operands& o) {
    const auto [first, second] = tree.node.children;
    while (tree.summed < tree.segments && tree.from_child[0].finished > tree.summed &&
           (second == no_rank || tree.from_child[1].finished > tree.summed)) {
      const Chunk part = segment(tree, tree.summed);
      float* sum = o.output + part.first;
      add(o.input + part.first, workspace(0, tree.summed), sum, part.count);
      if (second != no_rank) add(sum, workspace(1, tree.summed), sum, part.count);
      if (tree.is_root() && problem_.operation == Operation::mean)
        divide(sum, part.count, group_.ranks());
      ++tree.summed;
    }
    for (std::size_t c : {0, 1}) {
      if (tree.node.children[c] == no_rank) continue;
      Stream& up = tree.from_child[c];
      while (up.started < tree.segments && up.started - tree.summed < in_flight)
        up.start(group_.start_receive(workspace(c, up.started), segment(tree, up.started).count,
                                      tree.node.children[c], tree.index));
    }
  }

  Chunk segment(const Tree& tree, std::int64_t index) const {
    return chunk_of(tree.half, static_cast<int>(segments_), static_cast<int>(index));
  }
  float* workspace(std::size_t child, std::int64_t index) const {
    return received_.get() +
           (static_cast<std::int64_t>(child) * in_flight + index % in_flight) * longest_;
  }

  Problem problem_;
  Group group_;
  std::int64_t segments_;  // S, of each half; none of them is empty unless the half is
  std::int64_t longest_;   // floats of a segment
  std::array<Tree, 2> trees_{};
  AlignedArray<float> received_;  // [child, in_flight, longest]
};

// A rank sends and receives four messages per segment, all in flight at once: two in the reduction
// and two in the broadcast. At each of 2h levels the first segment waits for those of two children.
// With two ranks there is one child: half as many messages and additions.
double cost(const CommunicationCost& c) {
  if (c.p < 2) return c.l.copy(c.n);
  const int ranks = static_cast<int>(c.p);
  const double segments = segments_of(c.n, ranks);
  const double segment = c.n / (2 * segments);
  const int children = ranks == 2 ? 1 : 2;
  return segments * (c.flat().shift(2 * children * segment) + children * c.l.add(segment)) +
         2 * tree_depth(ranks) * c.flat().shift(children * segment);
}

constexpr VariantInfo info{
    .name = "double_binary_tree",
    .technique = Technique::mpi,
    .builds_on = "binomial_tree",
    .adds =
        "two pipelined binary trees for half of the vector each: leaves of one are inner nodes "
        "of the other",
    .idea = Idea::algorithm,
};

const Registration registration{info, make_plan<AllReduce, DoubleBinaryTree>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
