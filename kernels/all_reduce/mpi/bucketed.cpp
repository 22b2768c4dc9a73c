// The vector in buckets, each a ring of its own made of non-blocking messages, with several buckets
// in flight: while the messages of one travel, this rank adds the values of another.
//
//     bucket 0   send 0 | add | send 1 | add | …
//     bucket 1      send 0 | add | send 1 | add | …
//
//     T = 2 (p-1) B/K alpha + 2 (p-1)/p n beta + (p-1)/p n/B gamma
//
// p ranks, n bytes, B buckets, K in flight: the additions of all but one bucket overlap messages,
// and K messages overlap their latencies. ring sends fewer messages and adds between them.
//
// The calling thread makes the progress, inside run(). MPI moves data while it waits, and on some
// networks during additions. In shared memory the processors copy, and little overlaps.
//
// Identical bits: the sum of a chunk is completed on one rank and then copied.
#include <algorithm>
#include <array>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/group.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/ring_steps.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr int slots = 4;                                 // K: buckets in flight, each on a channel
constexpr std::int64_t message = std::int64_t{1} << 15;  // floats of a long vector's chunk

std::int64_t buckets_of(std::int64_t count, std::int64_t ranks) {
  return std::max<std::int64_t>(1, count / (message * ranks));
}

class Bucketed final : public Plan {
 public:
  Bucketed(const Problem& problem, const Resources& resources)
      : problem_(problem),
        group_(problem, resources),
        buckets_(static_cast<int>(buckets_of(problem.count, group_.ranks()))),
        longest_(ceil_div(ceil_div(problem.count, buckets_), group_.ranks()) + 1),
        received_(aligned_array<float>(slots * longest_)) {}

  void run(const Operands& o) override {
    if (group_.ranks() == 1) return copy(o.input, o.output, problem_.count);
    requests_.fill(MPI_REQUEST_NULL);
    for (int slot = 0; slot < slots; ++slot) {
      at_[slot] = {.bucket = slot, .step = 0};
      advance(slot, o);
    }
    for (;;) {
      const std::size_t done = Group::wait_any(requests_);
      if (done == requests_.size()) return;  // no message is left
      const int slot = static_cast<int>(done / 2);
      if (done % 2 == 0) take(slot, o);
      if (!idle(slot)) continue;
      ++at_[slot].step;
      advance(slot, o);
    }
  }

 private:
  // A step of a bucket's ring: both of its messages have started.
  struct State {
    int bucket, step;
  };

  MPI_Request& receive_of(int slot) { return requests_[2 * slot]; }
  MPI_Request& send_of(int slot) { return requests_[2 * slot + 1]; }
  bool idle(int slot) {
    return receive_of(slot) == MPI_REQUEST_NULL && send_of(slot) == MPI_REQUEST_NULL;
  }
  int last_step() const { return 2 * (group_.ranks() - 1) - 1; }
  bool reduces(int step) const { return step < group_.ranks() - 1; }

  // The chunk of the bucket that `rank` receives at this step.
  Chunk chunk(const State& s, int rank) const {
    return chunk_of(chunk_of({0, problem_.count}, buckets_, s.bucket), group_.ranks(),
                    ring_index(rank, group_.ranks(), s.step));
  }

  // Starts the messages of the slot's step. A step without messages is complete at once; after the
  // last one, the slot takes its next bucket.
  void advance(int slot, const Operands& o) {
    State& s = at_[slot];
    for (;; ++s.step) {
      if (s.step > last_step()) s = {.bucket = s.bucket + slots, .step = 0};
      if (s.bucket >= buckets_) return;
      start(slot, o);
      if (receive_of(slot) == MPI_REQUEST_NULL) take(slot, o);
      if (!idle(slot)) return;
    }
  }

  void start(int slot, const Operands& o) {
    const State& s = at_[slot];
    const Chunk in = chunk(s, group_.rank());
    const Chunk out = chunk(s, group_.next());
    float* const to = reduces(s.step) ? received(slot) : o.output + in.first;
    const float* const from = (s.step == 0 ? o.input : o.output) + out.first;
    receive_of(slot) = group_.start_receive(to, in.count, group_.previous(), slot);
    send_of(slot) = group_.start_send(from, out.count, group_.next(), slot);
  }

  // Uses what the step received. The step may still be sending another chunk.
  void take(int slot, const Operands& o) {
    const State& s = at_[slot];
    if (!reduces(s.step)) return;
    const Chunk in = chunk(s, group_.rank());
    float* const sum = o.output + in.first;
    add(received(slot), o.input + in.first, sum, in.count);
    const bool complete = s.step == group_.ranks() - 2;
    if (complete && problem_.operation == Operation::mean) divide(sum, in.count, group_.ranks());
  }

  float* received(int slot) const { return received_.get() + slot * longest_; }

  Problem problem_;
  Group group_;
  int buckets_;
  std::int64_t longest_;                           // floats of a chunk
  AlignedArray<float> received_;                   // [slots, longest]
  std::array<State, slots> at_{};                  // [slot]
  std::array<MPI_Request, 2 * slots> requests_{};  // [slot]: its receive and its send
};

// Inside a node the processors copy the messages, and no addition overlaps them.
double cost(const CommunicationCost& c) {
  const auto floats = static_cast<std::int64_t>(c.n / sizeof(float));
  const auto buckets = static_cast<double>(buckets_of(floats, static_cast<std::int64_t>(c.p)));
  const double later = std::max(0.0, buckets / slots - 1);  // latencies that are not overlapped
  const double added = c.one_node() ? buckets : 1;
  return (c.p - 1) * (2 * (c.flat().shift(c.n / c.p) + later * c.flat().shift(0)) +
                      added * c.l.add(c.n / c.p / buckets));
}

constexpr VariantInfo info{
    .name = "bucketed",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "several rings at once, one for each bucket: messages overlap additions",
    .idea = Idea::pipelining,
};

const Registration registration{info, make_plan<AllReduce, Bucketed>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
