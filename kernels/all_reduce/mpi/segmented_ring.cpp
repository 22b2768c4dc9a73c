// The ring with chunks in segments. A rank sends each segment on as soon as it has added it, while
// the next ones are on their way: the link carries the end of one step and the beginning of the
// next without a pause.
//
//     ring       | chunk 3             | add | chunk 2             | add |
//     segmented  | 3a | 3b | 3c | 3d | 2a | 2b | 2c | 2d |
//
//     T = 2 (p-1) (S/K alpha + n/p beta) + m gamma        p ranks, n bytes, S segments of m bytes
//
// K = min(S, 8) segments are in flight. Within a host a core copies messages or adds, and (p-1)/p n
// gamma replaces m gamma. Chunks of 64 KiB and more are divided into segments of at most 60 KiB:
// MPI over TCP sends those at once, and longer ones after a handshake that queues behind data.
//
// Identical bits: the sum of a segment is completed on one rank and then copied.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr double segment_bytes = 60 * 1024;
constexpr double shortest_divided = 64 * 1024;  // bytes of a chunk
constexpr std::int64_t most_in_flight = 8;      // segments, each way

double segments_of(double chunk_bytes) {
  if (chunk_bytes < shortest_divided) return 1;
  return std::max(2.0, std::ceil(chunk_bytes / segment_bytes));
}

class SegmentedRing final : public Plan {
 public:
  SegmentedRing(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        segments_(static_cast<std::int64_t>(
            segments_of(static_cast<double>(problem.count) * sizeof(float) / group_.ranks()))),
        in_flight_(std::min(most_in_flight, segments_)),
        longest_(problem.count / group_.ranks() / segments_ + 2),
        received_(aligned_array<float>(in_flight_ * longest_)) {
    sends_.fill(MPI_REQUEST_NULL);
    receives_.fill(MPI_REQUEST_NULL);
  }

  // Message i is segment i mod S of step i / S; steps 0 … p-2 are the reduce-scatter and p-1 … 2p-3
  // the all-gather. What arrives as message i leaves as message i + S, so sends may run ahead of
  // receives by up to S.
  void run(const Operands& o) override {
    const int ranks = group_.ranks();
    if (ranks == 1) return copy(o.input, o.output, problem_.count);
    const std::int64_t half = (ranks - 1) * segments_;
    const std::int64_t ahead = in_flight_ - 1;
    for (std::int64_t i = -ahead; i < 2 * half; ++i) {
      // In this order: the send of message i - 1 is complete before the all-gather may overwrite
      // what it sent.
      if (i + ahead < 2 * half) {
        start_send(o, i + ahead);
        start_receive(o, i + ahead);
      }
      if (i < 0) continue;
      Group::wait(receives_[slot(i)]);
      if (i < half) reduce(o, i);
    }
    Group::wait_all(sends_);
  }

 private:
  std::size_t slot(std::int64_t i) const { return static_cast<std::size_t>(i % in_flight_); }
  float* workspace(std::int64_t i) const { return received_.get() + i % in_flight_ * longest_; }

  // The segment that `rank` receives as message i.
  Chunk incoming(int rank, std::int64_t i) const {
    const int index = ring_index(rank, group_.ranks(), static_cast<int>(i / segments_));
    const Chunk chunk = chunk_of({0, problem_.count}, group_.ranks(), index);
    return chunk_of(chunk, static_cast<int>(segments_), static_cast<int>(i % segments_));
  }

  void start_send(const Operands& o, std::int64_t i) {
    const Chunk out = incoming(group_.next(), i);
    const float* source = i < segments_ ? o.input : o.output;
    Group::wait(sends_[slot(i)]);
    sends_[slot(i)] = group_.start_send(source + out.first, out.count, group_.next());
  }

  void start_receive(const Operands& o, std::int64_t i) {
    const Chunk in = incoming(group_.rank(), i);
    const bool reduces = i < (group_.ranks() - 1) * segments_;
    receives_[slot(i)] = group_.start_receive(reduces ? workspace(i) : o.output + in.first,
                                              in.count, group_.previous());
  }

  void reduce(const Operands& o, std::int64_t i) {
    const Chunk in = incoming(group_.rank(), i);
    add(workspace(i), o.input + in.first, o.output + in.first, in.count);
    const bool complete = i / segments_ == group_.ranks() - 2;
    if (complete && problem_.operation == Operation::mean)
      divide(o.output + in.first, in.count, group_.ranks());
  }

  Problem problem_;
  Group group_;
  std::int64_t segments_;         // S: per chunk
  std::int64_t in_flight_;        // segments, each way; at most S
  std::int64_t longest_;          // floats of a segment
  AlignedArray<float> received_;  // [in_flight, longest]
  std::array<MPI_Request, most_in_flight> sends_, receives_;
};

// Segments in flight share one alpha. Between nodes an addition overlaps transfers; within a node
// the core that adds also copies the messages.
double cost(const CommunicationCost& c) {
  const double chunk = c.n / c.p;
  const double segments = segments_of(chunk);
  const double in_flight = std::min<double>(most_in_flight, segments);
  const double transfer = segments / in_flight * c.flat().shift(in_flight * chunk / segments);
  const double addition = c.l.add(chunk / segments);
  if (c.one_node() || segments == 1) return (c.p - 1) * (2 * transfer + segments * addition);
  return (c.p - 1) * (std::max(transfer, segments * addition) + transfer) + addition;
}

constexpr VariantInfo info{
    .name = "segmented_ring",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "chunks in segments: the addition of one overlaps the transfer of the next",
    .idea = Idea::pipelining,
};

const Registration registration{info, make_plan<AllReduce, SegmentedRing>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
