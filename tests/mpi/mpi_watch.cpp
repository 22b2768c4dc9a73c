// Rank 1 does what the argument says while the others wait for it. The run must end at once, or
// soon after the limit of STEPLADDER_RANK_TIMEOUT, and the message must name rank 1.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure/measure.hpp"
#include "harness/ranks/mpi_session.hpp"

namespace {

[[noreturn]] void loop() {
  volatile bool forever = true;
  while (forever) {
  }
  std::abort();
}

// Measures a rung whose call number `last`, counted from 0, does not return on rank 1.
void measure(int last) {
  int calls = 0;
  const auto run = [&](std::int64_t) {
    if (stepladder::mpi_session().rank() == 1 && calls++ == last) loop();
  };
  nlohmann::json json;
  stepladder::Meter(json).measure({{"the rung ring", run, stepladder::Clock::ranks}}, {});
}

// Measures a rung whose call number `call` throws on rank 1, and prints its error on rank 2. With a
// clock that is not of ranks another rung follows, which all ranks measure.
void measure_throwing(int call, stepladder::Clock clock) {
  int calls = 0, others = 0;
  const auto throws = [&](std::int64_t) {
    if (stepladder::mpi_session().rank() == 1 && calls++ == call)
      throw std::runtime_error("no page left for a test");
  };
  nlohmann::json json;
  const auto measured = stepladder::Meter(json).measure(
      {{"the rung ring", throws, clock}, {"another", [&](std::int64_t) { ++others; }, clock}}, {});
  const std::size_t repetitions = measured[1].samples.size();
  if (stepladder::mpi_session().rank() == 2)
    std::printf("error: %s; then %zu repetitions\n", measured[0].error.c_str(), repetitions);
  stepladder::mpi_session().require_same("count", {std::to_string(repetitions)});
}

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  stepladder::MpiSession& session = stepladder::mpi_session();
  try {
    session.start();
    const bool is_odd = session.rank() == 1;
    session.barrier();
    if (is_odd && what == "dies") std::raise(SIGKILL);
    if (is_odd && what == "stops") std::raise(SIGSTOP);
    if (is_odd && what == "loops") loop();
    if (what == "differs") session.require_same("suite", {"same", is_odd ? "one" : "two"});
    if (what == "lacks") {
      session.require_same("suite", {"same"});
      session.require_same("suite",
                           is_odd ? std::vector<std::string>{} : std::vector<std::string>{"line"});
    }
    if (what == "loops_in_warm_up") measure(0);
    if (what == "loops_when_timed") measure(20);
    using enum stepladder::Clock;
    if (what == "throws_in_warm_up") measure_throwing(0, ranks);
    if (what == "throws_when_timed") measure_throwing(20, ranks);
    if (what == "throws_alone_in_warm_up") measure_throwing(1, wall);
    if (what == "throws_alone_when_timed") measure_throwing(20, wall);
    if (what.starts_with("throws")) return 0;
    if (what == "lacks_a_file")
      session.agree([&] { return is_odd ? throw std::runtime_error("a.csv: no such file") : 0; });
    const auto watched = session.watch("the rung ring");
    if (is_odd && what == "loops_in_rung") loop();
    if (is_odd && what == "stops_in_rung") std::raise(SIGSTOP);
    session.max(1);
    if (what == "deadlock") loop();
  } catch (const std::exception& error) {
    if (session.rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
