// The variants that name an algorithm of Open MPI use it: algorithms that add in different orders
// round differently.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/mpi.hpp"
#include "tests/mpi/all_reduce_check.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {
namespace {

using all_reduce::Problem;
using all_reduce::Sample;

// The sums by the variant of that name; empty if it does not run here.
std::vector<float> sums(const char* name, const Problem& problem, const Sample& sample,
                        const Resources& resources) {
  for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
    if (std::strcmp(entry.info->name, name) != 0 || entry.factory == nullptr) continue;
    try {
      const auto plan = plan_variant<all_reduce::AllReduce>(entry, problem, resources);
      std::vector<float> output(sample.input.size());
      plan->run({sample.input.data(), output.data()});
      return output;
    } catch (const Unsupported&) {
      return {};
    }
  }
  return {};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

void check_algorithms(const MpiSession& session) {
  const Problem problem{.count = 1000 * session.ranks(), .ranks = session.ranks()};
  const Sample sample = all_reduce::uniform_sample(problem, session.rank(), 1);
  const Resources resources{.communicator = session.communicator()};
  const auto by = [&](const char* name) { return sums(name, problem, sample, resources); };
  const std::vector<float> before = by("mpi_allreduce"), linear = by("mpi_basic_linear"),
                           doubling = by("mpi_recursive_doubling"), ring = by("mpi_ring");
#ifdef OPEN_MPI
  for (const char* name : {"mpi_basic_linear", "mpi_nonoverlapping", "mpi_recursive_doubling",
                           "mpi_ring", "mpi_segmented_ring", "mpi_rabenseifner", "mpi_persistent"})
    expect(!by(name).empty(), std::string(name) + " runs with Open MPI");
  if (session.ranks() >= 4) {  // fewer addends have few orders
    expect(!same_bits(linear, doubling), "basic_linear and recursive_doubling differ in order");
    expect(!same_bits(linear, ring), "basic_linear and ring differ in order");
    expect(!same_bits(doubling, ring), "recursive_doubling and ring differ in order");
  }
#endif
  expect(same_bits(before, by("mpi_allreduce")), "the library's own choice is as before");
}

}  // namespace stepladder::test
