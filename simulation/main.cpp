// stepladder_smpi: the all-reduce rungs on the ranks that SimGrid's smpirun simulates. Written for
// scripts/simulate.py, which also runs it:
//
//     list                   the variants: name, technique and why it does not run, between tabs
//     verify VARIANT NODE_RANKS
//                            exact sums and means of integers, on every rank
//     time VARIANT OPERATION COUNT NODE_RANKS ALPHA BETA NEAR_ALPHA NEAR_BETA
//                            one run; NEAR_… between the ranks of a node, for the cost model
//
// Rank 0 prints "ok", "unavailable: REASON" or "failed: REASON"; of time, "ok SECONDS MODEL
// MESSAGES" (MODEL is - without a cost function). All ranks share one process and take turns in one
// thread: rungs have no variables outside functions, and this folder has only the counter of
// calls.cpp and the block of memory.cpp, which are for all ranks together.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <simgrid/s4u/Actor.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/links.hpp"
#include "kernels/common/variant.hpp"
#include "simulation/arithmetic.hpp"
#include "simulation/calls.hpp"

namespace stepladder::simulation {
namespace {

using all_reduce::AllReduce;
using all_reduce::Operation;
using all_reduce::Problem;

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_of_world() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

template <class... Values>
void print(const char* format, Values... values) {
  if (rank_of_world() == 0) std::printf(format, values...);
}

std::string why_not_here(const detail::Entry& entry) {
  if (entry.factory == nullptr) return entry.why_missing;
  if (entry.info->window)
    return "its ranks wait for each other in shared memory, without MPI calls";
  if (entry.info->name == std::string_view("mpi_iallreduce"))
    return "SimGrid's MPI_Iallreduce exchanges whole vectors between all ranks, as no MPI library "
           "does";
  return "";
}

const detail::Entry& entry_of(std::string_view name) {
  for (const detail::Entry& entry : detail::entries(AllReduce::name))
    if (full_name(*entry.info) == name) return entry;
  throw std::invalid_argument("no variant is called " + std::string(name));
}

LinkCosts links_of(double alpha, double beta) {
  const CostCurve line = CostCurve::line(alpha, beta);
  return {line, line, line};
}

// --- verify --------------------------------------------------------------------------------------

float value(int rank, std::int64_t index) {
  auto x =
      static_cast<std::uint32_t>(rank) * 2654435761U + static_cast<std::uint32_t>(index) * 40503U;
  x = (x ^ (x >> 15U)) * 0x2c1b3c6dU;
  return static_cast<float>((x >> 8U) % 17) - 8.0F;
}

// What is wrong with the result on this rank; empty if nothing is.
std::string fault_of(all_reduce::Plan& plan, const Problem& problem, bool in_place) {
  constexpr float untouched = 12345;
  const int rank = rank_of_world();
  const auto count = static_cast<std::size_t>(problem.count);
  std::vector<float> input(count + 1);
  for (std::int64_t i = 0; i < problem.count; ++i)
    input[static_cast<std::size_t>(i)] = value(rank, i);
  std::vector<float> output(count + 1, untouched);
  if (in_place) output = input;
  output[count] = untouched;
  plan.run({in_place ? output.data() : input.data(), output.data()});
  if (output[count] != untouched) return "it wrote beyond its output";
  for (std::int64_t i = 0; i < problem.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (input[at] != value(rank, i)) return "it changed its input";
    float expected = 0;
    for (int r = 0; r < problem.ranks; ++r) expected += value(r, i);
    if (problem.operation == Operation::mean) expected /= static_cast<float>(problem.ranks);
    if (output[at] != expected)
      return "element " + std::to_string(i) + " of " + std::to_string(problem.count) + " is " +
             std::to_string(output[at]) + " instead of " + std::to_string(expected);
  }
  return "";
}

// The lowest rank with a fault tells all.
std::string first_fault(const std::string& mine) {
  const int rank = mine.empty() ? ranks_of_world() : rank_of_world();
  int first = 0;
  MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks_of_world()) return "";
  std::vector<char> text(200, '\0');
  std::copy_n(mine.begin(), std::min(mine.size(), text.size() - 1), text.begin());
  MPI_Bcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, first, MPI_COMM_WORLD);
  return "rank " + std::to_string(first) + " of " + std::to_string(ranks_of_world()) + ": " +
         text.data();
}

void verify(const detail::Entry& entry, int node_ranks) {
  const LinkCosts any = links_of(1e-6, 1e-9);  // for rungs that choose by them
  const Links links{any, any, any.send, any.send, any.send, any.send, 1e-9};
  const int ranks = ranks_of_world();
  for (const std::int64_t count : {0, 1, ranks - 1, 257, 4096})
    for (const Operation operation : {Operation::sum, Operation::mean}) {
      const Problem problem{
          .operation = operation, .count = count, .ranks = ranks, .node_ranks = node_ranks};
      const auto plan = plan_variant<AllReduce>(entry, problem,
                                                {.communicator = &MPI_COMM_WORLD, .links = &links});
      for (const bool in_place : {false, true}) {
        const std::string fault = first_fault(fault_of(*plan, problem, in_place));
        if (!fault.empty()) {
          print("failed: %s\n", fault.c_str());
          return;
        }
      }
    }
  print("ok\n");
}

// --- time ----------------------------------------------------------------------------------------

void time(const detail::Entry& entry, const Problem& problem, const Links& links) {
  const auto plan =
      plan_variant<AllReduce>(entry, problem, {.communicator = &MPI_COMM_WORLD, .links = &links});
  const auto count = static_cast<std::size_t>(problem.count);
  const AlignedArray<float> input = aligned_array<float>(count);
  const AlignedArray<float> output = aligned_array<float>(count);

  // All ranks start at the same time, after all plans are constructed.
  constexpr double start = 1000;
  if (MPI_Wtime() > start / 2) throw std::runtime_error("constructing the plans took too long");
  simgrid::s4u::this_actor::sleep_until(start / 2);
  const std::int64_t sent_before = messages_sent();
  simgrid::s4u::this_actor::sleep_until(start);
  plan->run({input.get(), output.get()});
  const double end = MPI_Wtime();
  double last = 0;
  MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const std::int64_t sent = messages_sent() - sent_before;

  std::string model = "-";
  if (entry.cost != nullptr) {
    const double ranks = problem.ranks;
    const double node_ranks = problem.node_ranks == 0 ? ranks : problem.node_ranks;
    char text[40];
    std::snprintf(text, sizeof text, "%.9g",
                  entry.cost({ranks, 4.0 * static_cast<double>(problem.count), node_ranks, links}));
    model = text;
  }
  print("ok %.9g %s %lld\n", last - start, model.c_str(), static_cast<long long>(sent));
}

int run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "list" && words.size() == 1) {
    for (const detail::Entry& entry : detail::entries(AllReduce::name))
      print("%s\t%s\t%s\n", full_name(*entry.info).c_str(), name_of(entry.info->technique),
            why_not_here(entry).c_str());
    return 0;
  }
  if (words.size() != (mode == "verify" ? 3 : 9) || (mode != "verify" && mode != "time")) {
    print("failed: unknown arguments\n");
    return 2;
  }
  const detail::Entry& entry = entry_of(words[1]);
  if (const std::string why = why_not_here(entry); !why.empty()) throw Unsupported(why);
  if (mode == "verify") {
    verify(entry, std::stoi(words[2]));
    return 0;
  }
  const Problem problem{.operation = words[2] == "mean" ? Operation::mean : Operation::sum,
                        .count = std::stoll(words[3]),
                        .ranks = ranks_of_world(),
                        .node_ranks = std::stoi(words[4])};
  Links links;
  links.within = links_of(std::stod(words[7]), std::stod(words[8]));
  if (problem.node_ranks > 0) links.between = links_of(std::stod(words[5]), std::stod(words[6]));
  links.add = arithmetic().add;
  links.copy = arithmetic().copy;
  links.stream = links.copy;
  links.handoff = links.within.send;
  links.code = links.add(1e9) / 1e9;
  time(entry, problem, links);
  return 0;
}

}  // namespace
}  // namespace stepladder::simulation

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 0;
  try {
    status = stepladder::simulation::run({argv + 1, argv + argc});
  } catch (const stepladder::Unsupported& why) {
    stepladder::simulation::print("unavailable: %s\n", why.what());
  } catch (const std::exception& error) {
    std::printf("failed: rank %d: %s\n", stepladder::simulation::rank_of_world(), error.what());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
