// All-reduce by loads and stores: the ranks copy their vectors into memory that they share, and
// every rank sums what it finds there. No message is sent.
//
//     rank 0    copy 0  copy 1  sum 0  copy 2  sum 1  …        a flag after each copy
//     rank 1    copy 0  copy 1  sum 0  copy 2  sum 1  …        a wait before each sum
//
//     T = handoff((p-1) n)                         below 8 KiB
//     T = handoff(0) + (p+2)/2 stream(n)           p <= 3, or short vectors
//     T = handoff(0) + (5 + 1/p)/2 stream(n)       otherwise
//
// Four slots of a chunk are used in turn. From 8 KiB on they are written past the caches: a line
// that another core has changed may come slower from its cache than from memory. With many ranks
// each sums a slice of a chunk and copies the others. Up to 56 bytes travel in the line of a flag.
//
// Identical bits: an element is summed in rank order, by every rank for itself or by one for all.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/shared_window/plan.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

constexpr std::int64_t chunk_floats = (256 << 10) / sizeof(float);

// One rank per slice pays from 4 ranks on, and not for short vectors: it takes three steps more.
bool in_slices(double ranks, double bytes) { return ranks >= 4 && ranks * bytes > (256 << 10); }

ExchangeSizes sizes_of(const Problem& p) {
  return {.chunk = std::min(chunk_floats, round_up(p.count, 16)),
          .sums = in_slices(p.ranks, static_cast<double>(p.count) * sizeof(float)),
          .streaming_from = streaming_bytes / static_cast<std::int64_t>(sizeof(float))};
}

class SharedWindowCopy final : public Plan {
 public:
  SharedWindowCopy(const Problem& problem, const Resources& resources)
      : exchange_(problem, resources, sizes_of(problem)), slices_(sizes_of(problem).sums) {}

  void run(const Operands& o) override {
    const std::int64_t count = exchange_.problem().count;
    exchange_.with_exchange([&](Exchange& exchange, auto mean) {
      if (count <= Exchange::line_floats)
        exchange.through_lines<mean()>(o.input, o.output, count);
      else if (slices_)
        exchange.through_slots_in_slices<mean()>(o.input, o.output, count);
      else
        exchange.through_slots<mean()>(o.input, o.output, count);
    });
  }

 private:
  SharedExchange exchange_;
  bool slices_;
};

double cost(const CommunicationCost& c) {
  const double cached = streaming_bytes;
  if (c.n < cached) return c.l.handoff((c.p - 1) * c.n);
  // A vector of n bytes is read, p - 1 are read from slots, one is written to slots and one to the
  // output; by slices, one of each, and sums of n/p are written and those of n read.
  const double vectors = in_slices(c.p, c.n) ? 5 + 1 / c.p : 2 + c.p;
  return c.l.handoff(0) + vectors / 2 * c.l.stream(c.n);
}

constexpr VariantInfo info{
    .name = "shared_window_copy",
    .technique = Technique::mpi,
    .builds_on = "ring",
    .adds = "copies through shared memory in place of messages: each rank sums what it finds there",
    .idea = Idea::shared_memory,
    .isa = build_isa,
};

const Registration registration{info, make_plan<AllReduce, SharedWindowCopy>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
