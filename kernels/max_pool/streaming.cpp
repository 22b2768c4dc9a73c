// openmp for what no cache holds. Windows read two rows of x in turns, and a processor that looks for
// streams of lines finds none: so the rows are announced some way ahead, in the order of memory. And
// a store to a line that is not in the cache first reads the line: dx, of which every line is written
// whole, goes past the caches (in rows of whole vectors; others are stored as before).
//
// Expected out of cache: forward up to the bandwidth of a plain read, backward half of the traffic. In
// cache it loses: the announcements cost a tenth, and whoever needs dx next finds it in memory.
#include "kernels/max_pool/simd_pooling.hpp"

namespace stepladder::max_pool {
namespace {

class Streaming final : public Plan {
 public:
  Streaming(const Problem& p, const Resources& resources)
      : planes_(p.planes()),
        parts_(threads_worth(p, resources.threads)),
        pooling_(p, parts_, true) {}

  void run(const Operands& o) override {
#pragma omp parallel for num_threads(parts_) schedule(static, 1) if (parts_ > 1)
    for (int part = 0; part < parts_; ++part) {
      pooling_.run(o, planes_ * part / parts_, planes_ * (part + 1) / parts_, part);
      _mm_sfence();  // what went past the caches is there for all
    }
  }

 private:
  std::int64_t planes_;
  int parts_;
  SimdPooling<build_isa> pooling_;
};

constexpr VariantInfo info{
    .name = "streaming",
    .technique = Technique::openmp,
    .builds_on = "openmp",
    .adds = "x announced in the order of memory, dx written past the caches",
    .isa = build_isa,
    .threaded = true,
};

const Registration registration{info, make_plan<MaxPool, Streaming>};

}  // namespace
}  // namespace stepladder::max_pool
