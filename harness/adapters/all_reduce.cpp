#include "kernels/all_reduce/all_reduce.hpp"

#include "harness/adapters/filling.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/ranks/mpi_session.hpp"
#ifdef STEPLADDER_HAVE_MPI
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/mpi.hpp"
#endif

namespace stepladder {

using all_reduce::AllReduce;
using all_reduce::Operation;

namespace {

struct AllReduceAdapter {
  using Primitive = AllReduce;
  using Problem = all_reduce::Problem;

  // Two operands for each rank in this process: its only rank, or one per GPU.
  static int ranks_here(const Problem& p) { return p.gpus ? p.ranks : 1; }
  static std::size_t input_of(int rank) { return 2 * static_cast<std::size_t>(rank); }
  static std::size_t output_of(int rank) { return input_of(rank) + 1; }

  static std::vector<OperandInfo> operands(const Problem& p) {
    std::vector<OperandInfo> all;
    for (int rank = 0; rank < ranks_here(p); ++rank) {
      const std::string of = p.gpus ? fmt::format(" of GPU {}", rank) : "";
      all.push_back({.name = "input" + of, .count = p.count, .role = Role::input, .device = rank});
      all.push_back({.name = "output" + of,
                     .count = p.count,
                     .role = Role::output,
                     .device = rank,
                     .replica_of = rank > 0 ? static_cast<int>(output_of(0)) : -1});
    }
    return all;
  }
  static all_reduce::Operands bind(const Problem& p, const std::vector<void*>& at) {
    const auto vectors = [&](int rank) {
      return all_reduce::Vectors{static_cast<float*>(at[input_of(rank)]),
                                 static_cast<float*>(at[output_of(rank)])};
    };
    all_reduce::Operands operands{vectors(0).input, vectors(0).output};
    for (int rank = 0; p.gpus && rank < p.ranks; ++rank)
      operands.of_gpu[static_cast<std::size_t>(rank)] = vectors(rank);
    return operands;
  }
  static std::vector<const void*> pointers(const Problem& p, const all_reduce::Operands& o) {
    if (!p.gpus) return {o.input, o.output};
    std::vector<const void*> all;
    for (int rank = 0; rank < p.ranks; ++rank) {
      const all_reduce::Vectors& vectors = o.of_gpu[static_cast<std::size_t>(rank)];
      all.insert(all.end(), {vectors.input, vectors.output});
    }
    return all;
  }
#ifdef STEPLADDER_HAVE_MPI
  // For the variants whose vectors live in shared memory. Collective.
  static std::shared_ptr<const all_reduce::Window> window(const Problem&, std::size_t bytes) {
    const Resources resources{.communicator = mpi_session().communicator()};
    const RankWatch::Call call = mpi_session().watch("the allocation of shared memory");
    return std::make_shared<all_reduce::Window>(communicator_of(resources), bytes);
  }
#endif
  // In the exact tier a multiple of the number of ranks, so that the mean is exact too.
  static float value(const Problem& p, Tier tier, std::uint64_t stream, int rank, std::int64_t i) {
    return value_of_rank(tier, p.ranks, stream, rank, i);
  }

  static void fill(const Problem& p, Tier tier, const Random& random, Contents& contents) {
    const std::uint64_t values = stream_of_ranks(random);
    for (int here = 0; here < ranks_here(p); ++here) {
      const int rank = p.gpus ? here : mpi_session().rank();
      for (std::int64_t i = 0; i < p.count; ++i)
        floats(contents, input_of(here))[i] = value(p, tier, values, rank, i);
    }
  }
  static void expect(const Problem& p, Tier tier, const Random& random, Contents&,
                     std::vector<Expected>& expected) {
    const std::uint64_t values = stream_of_ranks(random);
    Expected& out = expected[output_of(0)];
    out.value.assign(static_cast<std::size_t>(p.count), 0.0);
    std::vector<double> magnitude(out.value.size());
    const double divisor = p.operation == Operation::mean ? p.ranks : 1;
    for (int rank = 0; rank < p.ranks; ++rank) {
      double squares = 0;
      for (std::int64_t i = 0; i < p.count; ++i) {
        const double term = value(p, tier, values, rank, i) / divisor;
        out.value[static_cast<std::size_t>(i)] += term;
        magnitude[static_cast<std::size_t>(i)] += std::abs(term);
        squares += term * term;
      }
      out.summand_norms += std::sqrt(squares);
    }
    if (tier == Tier::exact)
      for (double& v : out.value) v = std::round(v);  // the quotients are whole numbers
    bound_sums(tier, p.ranks, magnitude, out);
    for (int rank = 1; rank < ranks_here(p); ++rank) expected[output_of(rank)] = out;
  }
  static bool has_exact_tier(const Problem&) { return true; }
};

}  // namespace

template <>
std::vector<Access> accesses<AllReduce>(const all_reduce::Problem& p,
                                        const all_reduce::Operands& o) {
  return accesses_of<AllReduceAdapter>(p, o);
}

template <>
std::unique_ptr<Case> make_case<AllReduce>(const all_reduce::Problem& p, std::string suite,
                                           std::string name) {
  ProblemInfo info =
      describe(AllReduce::name, AllReduce::plain_layout, p, std::move(suite), std::move(name));
  info.bus_bytes = all_reduce::bus_bytes(p);
  info.vector_bytes = all_reduce::bytes_read(p);
  info.ranks = p.ranks;
  info.hosts = p.gpus ? 1 : mpi_session().hosts();
  return std::make_unique<TypedCase<AllReduceAdapter>>(p, std::move(info));
}

namespace {

// Over the ranks that mpirun started; without it, over the GPUs that this process has.
all_reduce::Problem problem_of(Operation operation, std::int64_t count, int ranks, int gpus) {
  if (ranks == 1 && gpus > 1) return {operation, count, gpus, true};
  return {operation, count, ranks};
}

int gpus_here() { return std::min(device_count(), all_reduce::max_gpus); }

class AllReduceType final : public PrimitiveType {
 public:
  const char* name() const override { return AllReduce::name; }
  bool needs_ranks() const override { return true; }
  std::vector<SuiteColumn> suite_columns() const override { return {{"count"}}; }
  std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const override {
    std::vector<std::unique_ptr<Case>> all;
    for (const Operation operation : {Operation::sum, Operation::mean})
      all.push_back(make_case<AllReduce>(
          problem_of(operation, row.integer("count", 0, std::int64_t{1} << 36), ranks, gpus_here()),
          row.text("suite"), row.text("name")));
    return all;
  }
  std::unique_ptr<Case> random_case(Random& random, int ranks) const override {
    const Operation operation = random.coin() ? Operation::sum : Operation::mean;
    const std::int64_t count =
        random.integer(0, 3) == 0 ? random.integer(0, 70000) : random.integer(0, 40);
    const bool over_gpus =
        gpus_here() > 1 && random.coin();  // else over processes, even if there is one
    const int gpus = over_gpus ? static_cast<int>(random.integer(2, gpus_here())) : 1;
    const all_reduce::Problem p = problem_of(operation, count, ranks, gpus);
    return random_case_of<AllReduce>(p);
  }
};

}  // namespace

const PrimitiveType& all_reduce_type() {
  static const AllReduceType type;
  return type;
}

}  // namespace stepladder
