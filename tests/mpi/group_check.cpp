// Messages in segments, and problems that differ between ranks.
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/all_reduce/mpi/group.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {
namespace {

using all_reduce::Group;
using all_reduce::Operation;
using all_reduce::Problem;

float value(int rank, std::int64_t i) { return static_cast<float>(100 * rank + i); }

std::vector<float> vector_of(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(value(rank, i));
  return values;
}

// Segments of 7 elements, in place of 2^28, for which a test has no memory.
void check_segments(const MpiSession& session, const Resources& resources) {
  const int rank = session.rank();
  const int ranks = session.ranks();
  const Group group(Problem{.count = 0, .ranks = ranks}, resources, 7);
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;
  const auto length = [](int r) { return 6 + 4 * std::int64_t{r}; };  // 6, 10, 14, 18, 22
  for (int extra : {0, 1}) {
    const std::int64_t out = length(rank) + extra;
    const std::int64_t in = length(previous) + extra;
    const std::vector<float> sent = vector_of(rank, out);
    const std::vector<float> wanted = vector_of(previous, in);

    std::vector<float> received(static_cast<std::size_t>(in));
    group.exchange({sent.data(), out, next}, {received.data(), in, previous});
    expect(received == wanted, "exchange of " + std::to_string(out) + " for " + std::to_string(in) +
                                   " elements in segments of 7");
    if (ranks == 1) continue;
    received.assign(received.size(), 0);
    if (rank == 0) group.send(sent.data(), out, next);
    group.receive(received.data(), in, previous);
    if (rank != 0) group.send(sent.data(), out, next);
    expect(received == wanted, "send of " + std::to_string(in) + " elements in segments of 7");
  }
}

// The message of the std::invalid_argument that the constructor throws; empty when it does not.
std::string rejection(const Problem& problem, const Resources& resources) {
  try {
    const Group group(problem, resources);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

void check_group(const MpiSession& session) {
  const Resources resources{.communicator = session.communicator()};
  const int ranks = session.ranks();
  const int last = ranks - 1;
  check_segments(session, resources);

  expect(rejection({.count = 5, .ranks = ranks}, resources).empty(), "a group of all ranks");
  expect(rejection({.count = 5, .ranks = ranks + 1}, resources).find("communicator has") !=
             std::string::npos,
         "a problem for more ranks than there are is rejected");
  expect(rejection({.count = -1, .ranks = ranks}, resources).find("-1") != std::string::npos,
         "a negative count is rejected");
  if (ranks > 1) {
    const bool odd = session.rank() == last;
    const std::string culprit = "but rank " + std::to_string(last) + " has the ";
    const Problem other_count{.count = odd ? 7 : 8, .ranks = ranks};
    expect(rejection(other_count, resources).find(culprit + "sum of 7") != std::string::npos,
           "every rank learns which rank has another count");
    const Problem other_operation{
        .operation = odd ? Operation::mean : Operation::sum, .count = 8, .ranks = ranks};
    expect(rejection(other_operation, resources).find(culprit + "mean of 8") != std::string::npos,
           "every rank learns which rank has another operation");
  }

  bool unsupported = false;
  try {
    const Group group(Problem{.count = 1, .ranks = 1}, Resources{});
  } catch (const Unsupported&) {
    unsupported = true;
  }
  expect(unsupported, "without MPI a plan is unavailable");
}

}  // namespace stepladder::test
