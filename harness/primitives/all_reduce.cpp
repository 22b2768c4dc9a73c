#include "kernels/all_reduce/all_reduce.hpp"

#include "harness/primitives/filling.hpp"
#include "harness/primitives/types.hpp"
#include "harness/ranks.hpp"

namespace stepladder {

using all_reduce::AllReduce;
using all_reduce::Operation;

template <>
struct Adapter<AllReduce> {
  using Problem = all_reduce::Problem;

  static std::vector<Field> fields(const Problem& p) {
    return {{"input", p.count, Role::input}, {"output", p.count, Role::output}};
  }
  static all_reduce::Operands bind(const Problem&, const std::vector<void*>& at) {
    return {static_cast<float*>(at[0]), static_cast<float*>(at[1])};
  }
  // Every rank can draw the values of every other: a hash of (stream, rank, index).
  static float value(const Problem& p, Tier tier, std::uint64_t stream, int rank, std::int64_t i) {
    std::uint64_t h =
        (stream ^ (static_cast<std::uint64_t>(rank) << 40U)) + static_cast<std::uint64_t>(i);
    h = (h ^ (h >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    h = (h ^ (h >> 27U)) * 0x94d049bb133111ebULL;
    h ^= h >> 31U;
    if (tier == Tier::accuracy) return static_cast<float>(h >> 40U) * 0x1p-23F - 1.0F;
    // For the mean, multiples of the number of ranks: the quotient is exact too.
    return static_cast<float>(static_cast<std::int64_t>(h % 33) - 16) * static_cast<float>(p.ranks);
  }
  static std::uint64_t stream(const Problem& p) {
    return 0x9e3779b97f4a7c15ULL * static_cast<std::uint64_t>(p.count + 1);
  }

  static void fill(const Problem& p, Tier tier, Random&, Contents& contents) {
    const int rank = mpi_session().rank();
    for (std::int64_t i = 0; i < p.count; ++i)
      floats(contents, 0)[i] = value(p, tier, stream(p), rank, i);
  }
  static void expect(const Problem& p, Tier tier, Contents&, std::vector<Expected>& expected) {
    Expected& out = expected[1];
    out.value.assign(static_cast<std::size_t>(p.count), 0.0);
    std::vector<double> magnitude(out.value.size());
    const double divisor = p.operation == Operation::mean ? p.ranks : 1;
    for (int rank = 0; rank < p.ranks; ++rank)
      for (std::int64_t i = 0; i < p.count; ++i) {
        const double term = value(p, tier, stream(p), rank, i) / divisor;
        out.value[static_cast<std::size_t>(i)] += term;
        magnitude[static_cast<std::size_t>(i)] += std::abs(term);
      }
    if (tier == Tier::exact)
      for (double& v : out.value) v = std::round(v);  // of quotients that are whole
    bound_sums(tier, p.ranks, magnitude, out);
  }
  static bool has_exact_tier(const Problem&) { return true; }
};

template <>
std::unique_ptr<Case> make_case<AllReduce>(const all_reduce::Problem& p, std::string suite,
                                           std::string name) {
  ProblemInfo info =
      describe(AllReduce::name, AllReduce::plain_layout, p, std::move(suite), std::move(name));
  info.bus_bytes = all_reduce::bus_bytes(p);
  info.ranks = p.ranks;
  return std::make_unique<TypedCase<AllReduce>>(p, std::move(info));
}

namespace {

class AllReduceType final : public PrimitiveType {
 public:
  const char* name() const override { return AllReduce::name; }
  bool needs_ranks() const override { return true; }
  std::vector<std::string> suite_columns() const override { return {"count"}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const override {
    std::vector<std::unique_ptr<Case>> all;
    for (const Operation operation : {Operation::sum, Operation::mean})
      all.push_back(
          make_case<AllReduce>({operation, row.integer("count", 0, std::int64_t{1} << 36), ranks},
                               row.text("suite"), row.text("name")));
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int ranks) const override {
    const all_reduce::Problem p{
        random.coin() ? Operation::sum : Operation::mean,
        random.integer(0, 3) == 0 ? random.integer(0, 70000) : random.integer(0, 40), ranks};
    return make_case<AllReduce>(p, "random", "random." + direction(p) + "." + shape(p));
  }
};

}  // namespace

const PrimitiveType& all_reduce_type() {
  static const AllReduceType type;
  return type;
}

}  // namespace stepladder
