// MpiSession as the harness uses it.
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "harness/measure/machine.hpp"
#include "tests/mpi/checks.hpp"

namespace stepladder::test {

void check_session(const MpiSession& session) {
  const int rank = session.rank();
  const int ranks = session.ranks();
  expect(MpiSession::launched_by_mpirun(), "a program under mpirun detects it");
  expect(MpiSession::why_unavailable().empty(), "MPI is available");
  expect(session.communicator() != nullptr, "there is a communicator");
  expect(session.max(rank) == ranks - 1, "max sees every rank");
  expect(session.max(-1.0 - rank) == -1.0, "max of negative numbers");
  session.barrier();

  const std::uint64_t hash = 0xfedcba9876543210u;
  expect(session.same_on_all_ranks(hash), "equal hashes are the same");
  expect(session.same_on_all_ranks(0), "so are zeros");
  for (int odd = 0; odd < ranks && ranks > 1; ++odd) {
    expect(!session.same_on_all_ranks(rank == odd ? hash + 1 : hash), "one hash differs upwards");
    expect(!session.same_on_all_ranks(rank == odd ? 0 : hash), "one hash differs downwards");
  }

  expect(session.ranks_of_host_with(rank) == 1, "no other rank has this number");
  expect(session.ranks_of_host_with(7) == ranks, "all ranks of a host have this number");
  constexpr std::size_t cache = 1U << 20U;
  Machine machine;
  machine.caches.l3 = cache;
  expect(last_level_cache_per_rank(machine) == cache, "ranks that may move share no cache");
  machine.last_level_cache = rank;
  expect(last_level_cache_per_rank(machine) == cache, "each rank has a cache of its own");
  machine.last_level_cache = 0;
  expect(last_level_cache_per_rank(machine) == cache / static_cast<std::size_t>(ranks),
         "ranks divide the cache that they share");

  const std::int64_t big = std::int64_t{1} << 40;
  expect(session.broadcast(big + rank) == big, "broadcast of an integer is rank 0's");
  expect(session.broadcast(0.5 + rank) == 0.5, "broadcast of a double is rank 0's");
  expect(session.broadcast(std::string(rank == 0 ? "two words" : "")) == "two words",
         "broadcast of a string to shorter ones");
  expect(session.broadcast(std::string(rank == 0 ? "" : "something")).empty(),
         "broadcast of an empty string");

  const auto thrown = [&](const std::function<void()>& work) -> std::string {
    try {
      session.agree([&] {
        work();
        return 0;
      });
    } catch (const std::exception& error) {
      expect(session.all_threw(error), "it is known that all ranks threw");
      return error.what();
    }
    return "";
  };
  const auto fail = [](const std::string& reason) { throw std::runtime_error(reason); };
  expect(session.agree([&] { return rank; }) == rank, "each rank has its own result");
  expect(thrown([] {}).empty(), "no rank threw");
  expect(thrown([&] { fail("none"); }) == "none", "all ranks threw the same");
  const std::string last = fmt::format("rank {} of {}: late", ranks - 1, ranks);
  expect(thrown([&] { rank == ranks - 1 ? fail("late") : void(); }) == (ranks > 1 ? last : "late"),
         "one rank threw");
  expect(thrown([&] { fail(std::to_string(rank)); }) ==
             (ranks > 1 ? fmt::format("rank 0 of {}: 0", ranks) : "0"),
         "each rank threw something else");
  expect(!session.all_threw(std::runtime_error("alone")), "an error of one rank");
}

}  // namespace stepladder::test
