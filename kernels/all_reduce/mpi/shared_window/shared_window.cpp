// All-reduce of vectors in memory that the ranks share. No message is sent: each rank sums its
// slice of all vectors and stores the sum into the results of all ranks.
//
//     barrier    all inputs are complete, and all outputs may be written
//     rank 0     slice 0 of p inputs -> sum -> slice 0 of p outputs
//     rank 1     slice 1 of p inputs -> sum -> slice 1 of p outputs
//     barrier    all outputs are complete
//
//     T = 2 handoff(0) + stream(n)          short vectors: handoff((p-1) n)
//
// Each input is read once and each output written once: 2 p n bytes, the minimum. Long results are
// stored past the caches. Short vectors are copied into slots that all ranks read: one wait.
//
// Identical bits: one rank sums an element for all; of short vectors all do, in rank order.
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/all_reduce/mpi/shared_window/plan.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/mpi.hpp"

namespace stepladder::all_reduce {
namespace {

// Vectors of all ranks up to this many bytes together are copied into slots.
constexpr std::int64_t slot_bytes = 2048;

bool in_slots(double ranks, double bytes) { return ranks * bytes <= slot_bytes; }

ExchangeSizes sizes_of(const Problem& p) {
  const auto bytes = static_cast<std::int64_t>(sizeof(float)) * p.count;
  return {.chunk = in_slots(p.ranks, static_cast<double>(bytes)) ? round_up(p.count, 16) : 0,
          .streaming_from = streaming_bytes / static_cast<std::int64_t>(sizeof(float))};
}

class SharedWindow final : public Plan {
 public:
  SharedWindow(const Problem& problem, const Resources& resources)
      : exchange_(problem, resources, sizes_of(problem)),
        short_(sizes_of(problem).chunk > 0),
        inputs_(static_cast<std::size_t>(problem.ranks)),
        outputs_(static_cast<std::size_t>(problem.ranks)) {}

  void run(const Operands& o) override {
    const std::int64_t count = exchange_.problem().count;
    exchange_.with_exchange([&](Exchange& exchange, auto mean) {
      if (count <= Exchange::line_floats)
        exchange.through_lines<mean()>(o.input, o.output, count);
      else if (short_)
        exchange.through_slots<mean()>(o.input, o.output, count);
      else
        exchange.in_slices<mean()>(vectors(o, o.input, inputs_), vectors(o, o.output, outputs_),
                                   count);
    });
  }

 private:
  // The vectors of all ranks.
  template <class T>
  static T* const* vectors(const Operands& o, T* mine, std::vector<T*>& all) {
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      all[rank] = o.window->of(static_cast<int>(rank), mine);
    return all.data();
  }

  SharedExchange exchange_;
  bool short_;
  std::vector<const float*> inputs_;  // [ranks]
  std::vector<float*> outputs_;       // [ranks]
};

double cost(const CommunicationCost& c) {
  if (in_slots(c.p, c.n)) return c.l.handoff((c.p - 1) * c.n);
  return 2 * c.l.handoff(0) + c.l.stream(c.n);
}

constexpr VariantInfo info{
    .name = "shared_window",
    .technique = Technique::mpi,
    .builds_on = "shared_window_copy",
    .adds = "the vectors lie in shared memory: each rank sums a slice of all for all",
    .idea = Idea::shared_memory,
    .isa = build_isa,
    .window = true,
};

const Registration registration{info, make_plan<AllReduce, SharedWindow>, cost};

}  // namespace
}  // namespace stepladder::all_reduce
