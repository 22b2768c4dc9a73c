// Rank 1 does what the argument says while the others wait for it. The run must end soon after the
// limit of STEPLADDER_RANK_TIMEOUT, and the message must name rank 1.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/io/mpi_session.hpp"
#include "harness/measure/measure.hpp"

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
