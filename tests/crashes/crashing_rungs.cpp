// Rungs that crash the process, each in its own way, for tests of the supervisor.
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "harness/measure/work_record.hpp"
#include "kernels/matmul/matmul.hpp"
#include "kernels/sgd_update/rules.hpp"

namespace stepladder::sgd_update {
namespace {

void update_weights(const Problem& p, const Operands& o) {
  const Constants<float> constants(p, o);
  float none = 0;
  for (std::int64_t i = 0; i < p.count; ++i)
    update<Optimizer::sgd>(constants, o.weights[i], o.gradient[i], none, none);
}

// Correct, until it crashes in its call number `call`.
template <void (*crash)(), int call>
class Crashing final : public Plan {
 public:
  Crashing(const Problem& problem, const Resources&) : problem_(problem) {
    if (problem.optimizer != Optimizer::sgd) throw Unsupported("sgd only");
  }
  void run(const Operands& o) override {
    if (++calls_ == call) crash();
    update_weights(problem_, o);
  }

 private:
  Problem problem_;
  int calls_ = 0;
};

void segv() { std::raise(SIGSEGV); }
void give_up() { std::abort(); }
// ud2, 0f 0b
void execute_illegal() { __builtin_trap(); }
void leave() { std::exit(0); }  // NOLINT(concurrency-mt-unsafe)
void hang() {
  for (;;) pause();
}
// Only where the search for a rung that crashes runs it alone.
void hang_alone() {
  if (kept_work_record() == nullptr) hang();
}
void eat_memory() {
  for (;;) {
    constexpr std::size_t bytes = std::size_t{64} << 20U;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) hang();
    std::memset(memory, 1, bytes);
    usleep(5000);  // so that the limit comes first
  }
}
// Writes behind an allocation: free() of a later one aborts.
void damage_heap() {
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(static_cast<char*>(std::malloc(40)));
  volatile std::size_t beyond = 80;
  for (char* block : blocks) std::memset(block, 0x5a, beyond);
}

constexpr int verified = 1, timed = 30;

#define STEPLADDER_CRASHING(rung, crash, call)                                      \
  constexpr VariantInfo rung##_info{                                                \
      .name = "crashes_" #rung, .technique = Technique::serial, .adds = "crashes"}; \
  const Registration rung##_registration{rung##_info, make_plan<SgdUpdate, Crashing<crash, call>>};
STEPLADDER_CRASHING(abort, give_up, verified)
STEPLADDER_CRASHING(alone, hang_alone, verified)
STEPLADDER_CRASHING(exit, leave, timed)
STEPLADDER_CRASHING(hang, hang, timed)
STEPLADDER_CRASHING(heap, damage_heap, verified)
STEPLADDER_CRASHING(illegal, execute_illegal, verified)
STEPLADDER_CRASHING(late, segv, timed)
STEPLADDER_CRASHING(memory, eat_memory, verified)
STEPLADDER_CRASHING(segv, segv, verified)
#undef STEPLADDER_CRASHING

}  // namespace
}  // namespace stepladder::sgd_update

namespace stepladder::matmul {
namespace {

void crash(const Problem&, const Operands&) { std::raise(SIGSEGV); }

// Vendors come after the rungs on OpenMP threads.
constexpr VariantInfo info{
    .name = "crashes_segv", .technique = Technique::vendor, .adds = "crashes"};
const Registration registration{info, plan_of<crash>};

}  // namespace
}  // namespace stepladder::matmul
