#include "harness/measure/ceilings.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>

#include "harness/io/now.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/cpu/extensions.hpp"
#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/device_ceilings.hpp"
#include "kernels/common/isa.hpp"

namespace stepladder {
namespace {

// The FMA probes are assembly, because compilers would fold, spill or reorder intrinsics.
#if defined(__x86_64__)
// Registers 0 to 9 are independent accumulators: ten chains hide a latency of up to five cycles on
// two units.
// clang-format off
#define STEPLADDER_FMA_INTO(r, accumulator) \
  "vfmadd231ps %%" r "15, %%" r "14, %%" r accumulator "\n"
#define STEPLADDER_FMA(r)                                     \
  STEPLADDER_FMA_INTO(r, "0") STEPLADDER_FMA_INTO(r, "1")     \
  STEPLADDER_FMA_INTO(r, "2") STEPLADDER_FMA_INTO(r, "3")     \
  STEPLADDER_FMA_INTO(r, "4") STEPLADDER_FMA_INTO(r, "5")     \
  STEPLADDER_FMA_INTO(r, "6") STEPLADDER_FMA_INTO(r, "7")     \
  STEPLADDER_FMA_INTO(r, "8") STEPLADDER_FMA_INTO(r, "9")
// clang-format on
#define STEPLADDER_CLOBBERS                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc"

constexpr int chains = 10;

double fma_flops_avx512(std::int64_t rounds) {
  asm volatile(
      "vzeroall\n"
      "1:\n" STEPLADDER_FMA("zmm") "dec %0\n jnz 1b\n vzeroupper"
      : "+r"(rounds)::STEPLADDER_CLOBBERS);
  return chains * 16 * 2;
}
double fma_flops_avx2(std::int64_t rounds) {
  asm volatile(
      "vzeroall\n"
      "1:\n" STEPLADDER_FMA("ymm") "dec %0\n jnz 1b\n vzeroupper"
      : "+r"(rounds)::STEPLADDER_CLOBBERS);
  return chains * 8 * 2;
}
#define STEPLADDER_TEN_TIMES(instruction)                                              \
  instruction("0") instruction("1") instruction("2") instruction("3") instruction("4") \
      instruction("5") instruction("6") instruction("7") instruction("8") instruction("9")
// Without FMA: seven chains of multiplications and seven of additions, since additions may have a
// port of their own. Registers 14 and 15 are the operands.
// clang-format off
#define STEPLADDER_ZERO(r) "xorps %%xmm" r ", %%xmm" r "\n"
#define STEPLADDER_MULTIPLY_ADD(product, sum) \
  "mulps %%xmm14, %%xmm" product "\n addps %%xmm15, %%xmm" sum "\n"
double fma_flops_sse(std::int64_t rounds) {
  asm volatile(
      STEPLADDER_TEN_TIMES(STEPLADDER_ZERO) STEPLADDER_ZERO("10") STEPLADDER_ZERO("11")
      STEPLADDER_ZERO("12") STEPLADDER_ZERO("13") STEPLADDER_ZERO("14") STEPLADDER_ZERO("15")
      "1:\n"
      STEPLADDER_MULTIPLY_ADD("0", "1") STEPLADDER_MULTIPLY_ADD("2", "3")
      STEPLADDER_MULTIPLY_ADD("4", "5") STEPLADDER_MULTIPLY_ADD("6", "7")
      STEPLADDER_MULTIPLY_ADD("8", "9") STEPLADDER_MULTIPLY_ADD("10", "11")
      STEPLADDER_MULTIPLY_ADD("12", "13")
      "dec %0\n jnz 1b"
      : "+r"(rounds)::STEPLADDER_CLOBBERS);
  return 14 * 4;
}
// clang-format on
#undef STEPLADDER_ZERO
#undef STEPLADDER_MULTIPLY_ADD
// Narrow operands: instructions that multiply 2 bf16 or 4 int8 for each lane, or count the bits of
// a lane that differ.
#define STEPLADDER_BF16(accumulator) "vdpbf16ps %%zmm15, %%zmm14, %%zmm" accumulator "\n"
#define STEPLADDER_INT8(accumulator) "vpdpbusd %%zmm15, %%zmm14, %%zmm" accumulator "\n"
#define STEPLADDER_BITS(accumulator)                               \
  "vpxord %%zmm15, %%zmm14, %%zmm13\n vpopcntd %%zmm13, %%zmm13\n" \
  "vpaddd %%zmm13, %%zmm" accumulator ", %%zmm" accumulator "\n"
#define STEPLADDER_PROBE(name, instruction, flops_of_lane)                                 \
  double name(std::int64_t rounds) {                                                       \
    asm volatile(                                                                          \
        "vzeroall\n 1:\n" STEPLADDER_TEN_TIMES(instruction) "dec %0\n jnz 1b\n vzeroupper" \
        : "+r"(rounds)::STEPLADDER_CLOBBERS);                                              \
    return chains * 16 * flops_of_lane;                                                    \
  }
STEPLADDER_PROBE(bf16_flops, STEPLADDER_BF16, 4)
STEPLADDER_PROBE(int8_flops, STEPLADDER_INT8, 8)
STEPLADDER_PROBE(binary_flops, STEPLADDER_BITS, 64)
#undef STEPLADDER_FMA
#undef STEPLADDER_FMA_INTO
#undef STEPLADDER_CLOBBERS
#undef STEPLADDER_PROBE

// The matrix unit: four tiles of 16 x 16 sums, and products with 64 bytes of each row.
template <bool is_int8>
double amx_flops(std::int64_t rounds) {
  alignas(64) std::uint8_t configuration[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    configuration[16 + 2 * tile] = 64;  // bytes of a row
    configuration[48 + tile] = 16;      // rows
  }
  asm volatile("ldtilecfg %0\n tilezero %%tmm4\n tilezero %%tmm5\n" ::"m"(configuration));
  if constexpr (is_int8)
    asm volatile(
        "1:\n tdpbusd %%tmm5, %%tmm4, %%tmm0\n tdpbusd %%tmm5, %%tmm4, %%tmm1\n"
        "tdpbusd %%tmm5, %%tmm4, %%tmm2\n tdpbusd %%tmm5, %%tmm4, %%tmm3\n"
        "dec %0\n jnz 1b\n tilerelease"
        : "+r"(rounds)::"cc");
  else
    asm volatile(
        "1:\n tdpbf16ps %%tmm5, %%tmm4, %%tmm0\n tdpbf16ps %%tmm5, %%tmm4, %%tmm1\n"
        "tdpbf16ps %%tmm5, %%tmm4, %%tmm2\n tdpbf16ps %%tmm5, %%tmm4, %%tmm3\n"
        "dec %0\n jnz 1b\n tilerelease"
        : "+r"(rounds)::"cc");
  return 4 * 16 * 16 * (is_int8 ? 128 : 64);
}
#else
// Registers 0 to 15 are independent accumulators: they hide a latency of four cycles on four units.
double fma_flops_neon(std::int64_t rounds) {
#define STEPLADDER_FMA(accumulator) "fmla v" accumulator ".4s, v16.4s, v17.4s\n"
  asm volatile(
      "movi v16.4s, #0\n movi v17.4s, #0\n"
      "1:\n" STEPLADDER_FMA("0") STEPLADDER_FMA("1") STEPLADDER_FMA("2") STEPLADDER_FMA("3")
          STEPLADDER_FMA("4") STEPLADDER_FMA("5") STEPLADDER_FMA("6") STEPLADDER_FMA("7")
              STEPLADDER_FMA("8") STEPLADDER_FMA("9") STEPLADDER_FMA("10") STEPLADDER_FMA("11")
                  STEPLADDER_FMA("12") STEPLADDER_FMA("13") STEPLADDER_FMA("14")
                      STEPLADDER_FMA("15") "subs %0, %0, #1\n b.ne 1b"
      : "+r"(rounds)::"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
        "v12", "v13", "v14", "v15", "v16", "v17", "cc");
#undef STEPLADDER_FMA
  return 16 * 4 * 2;
}
#endif

// Processor time of the calling thread.
double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Best rate, in units per second, of five attempts of work(thread) on all threads at once. Attempts
// in which a thread waited for a processor are repeated, up to a limit.
double best_rate(int threads, double units_per_thread, const std::function<void(int)>& work) {
  constexpr int wanted = 5, most = 40;
  constexpr double waited = 0.1;  // share of the time
  double best = 0;
  for (int attempt = 0, undisturbed = 0; attempt < most && undisturbed < wanted; ++attempt) {
    double slowest = 0, longest_wait = 0;
    int started = 0;
#pragma omp parallel num_threads(threads) reduction(max : slowest, longest_wait, started)
    {
      const int thread = omp_get_thread_num();
      started = omp_get_num_threads();
#pragma omp barrier
      const double start = now(), processor_start = processor_time();
      work(thread);
      slowest = now() - start;
      longest_wait = slowest - (processor_time() - processor_start);
    }
    if (longest_wait < waited * slowest) ++undisturbed;
    best = std::max(best, units_per_thread * started / slowest);
  }
  return best;
}

using Probe = double (*)(std::int64_t rounds);  // returns the FLOPs of a round

struct Peak {
  std::string name;
  Probe probe;  // null: the machine has no such instruction
  std::int64_t rounds;
};
std::vector<Peak> peaks() {
  constexpr std::int64_t fma_rounds = 1500000;
  std::vector<Peak> all;
#if defined(__x86_64__)
  const std::pair<Isa, Probe> widest_first[] = {
      {Isa::avx512, fma_flops_avx512}, {Isa::avx2, fma_flops_avx2}, {Isa::sse42, fma_flops_sse}};
  for (const auto& [isa, probe] : widest_first)
    if (cpu_has(isa) || isa == Isa::sse42)  // every x86-64 executes that probe
      all.push_back(
          {all.empty() ? "fma_peak" : fmt::format("fma_peak_{}", name_of(isa)), probe, fma_rounds});
  const Probe bf16 = cpu_has(Extension::amx_bf16)      ? amx_flops<false>
                     : cpu_has(Extension::avx512_bf16) ? bf16_flops
                                                       : nullptr;
  const Probe int8 = cpu_has(Extension::amx_int8)      ? amx_flops<true>
                     : cpu_has(Extension::avx512_vnni) ? int8_flops
                                                       : nullptr;
  const Probe bits = cpu_has(Extension::avx512_vpopcntdq) ? binary_flops : nullptr;
#else
  all.push_back({"fma_peak", fma_flops_neon, fma_rounds});
  const Probe bf16 = nullptr, int8 = nullptr, bits = nullptr;
#endif
  all.push_back({"bf16_peak", bf16, 400000});
  all.push_back({"int8_peak", int8, 400000});
  all.push_back({"binary_peak", bits, 500000});
  return all;
}

double peak_rate(const Peak& peak, int threads) {
  const double flops = peak.probe(1) * static_cast<double>(peak.rounds);
  return best_rate(threads, flops, [&](int) { peak.probe(peak.rounds); });
}

// The mixes, on vectors of the widest ISA; `count` is a multiple of 64 floats. a and b are read,
// and c is written, but updates are of a.
struct Arrays {
  float *a, *b, *c;
};
enum class Mix { read, triad, copy, write, update, scale };

#if defined(__x86_64__)
#define STEPLADDER_IN_REGISTER "v"
#else
#define STEPLADDER_IN_REGISTER "w"
#endif
#define STEPLADDER_STREAM(name, attributes, lanes, vector, load, store, add, zero)             \
  template <Mix mix>                                                                           \
  attributes void name(Arrays s, std::int64_t n) {                                             \
    vector s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();                                 \
    for (std::int64_t i = 0; i < n; i += 4 * lanes) {                                          \
      if constexpr (mix == Mix::read) {                                                        \
        s0 = add(s0, load(s.a + i)), s1 = add(s1, load(s.a + i + lanes));                      \
        s2 = add(s2, load(s.a + i + 2 * lanes)), s3 = add(s3, load(s.a + i + 3 * lanes));      \
      } else {                                                                                 \
        for (std::int64_t j = i; j < i + 4 * lanes; j += lanes) {                              \
          if constexpr (mix == Mix::triad) store(s.c + j, add(load(s.a + j), load(s.b + j)));  \
          if constexpr (mix == Mix::copy) store(s.c + j, load(s.a + j));                       \
          if constexpr (mix == Mix::write) store(s.c + j, s0);                                 \
          if constexpr (mix == Mix::update) store(s.a + j, add(load(s.a + j), load(s.b + j))); \
          if constexpr (mix == Mix::scale) store(s.a + j, add(load(s.a + j), s0));             \
        }                                                                                      \
      }                                                                                        \
    }                                                                                          \
    vector sum = add(add(s0, s1), add(s2, s3));                                                \
    asm volatile("" ::STEPLADDER_IN_REGISTER(sum) : "memory");                                 \
  }
#if defined(__x86_64__)
STEPLADDER_STREAM(stream_avx512, __attribute__((target("avx512f"))), 16, __m512, _mm512_load_ps,
                  _mm512_store_ps, _mm512_add_ps, _mm512_setzero_ps)
STEPLADDER_STREAM(stream_avx, __attribute__((target("avx"))), 8, __m256, _mm256_load_ps,
                  _mm256_store_ps, _mm256_add_ps, _mm256_setzero_ps)
STEPLADDER_STREAM(stream_sse, , 4, __m128, _mm_load_ps, _mm_store_ps, _mm_add_ps, _mm_setzero_ps)
#else
inline float32x4_t no_sum() { return vdupq_n_f32(0); }
STEPLADDER_STREAM(stream_neon, , 4, float32x4_t, vld1q_f32, vst1q_f32, vaddq_f32, no_sum)
#endif
#undef STEPLADDER_STREAM
#undef STEPLADDER_IN_REGISTER

using Stream = void (*)(Arrays arrays, std::int64_t count);
template <Mix mix>
Stream widest() {
#if defined(__x86_64__)
  return cpu_has(Isa::avx512) ? stream_avx512<mix>
         : cpu_has(Isa::avx2) ? stream_avx<mix>
                              : stream_sse<mix>;
#else
  return stream_neon<mix>;
#endif
}

struct MixInfo {
  const char* name;
  int reads, writes;
  bool in_place;
  Stream stream;
  int arrays() const { return in_place ? reads : reads + writes; }
};
const MixInfo mixes[] = {{"stream_read", 1, 0, false, widest<Mix::read>()},
                         {"stream_triad", 2, 1, false, widest<Mix::triad>()},
                         {"stream_copy", 1, 1, false, widest<Mix::copy>()},
                         {"stream_write", 0, 1, false, widest<Mix::write>()},
                         {"stream_update", 2, 1, true, widest<Mix::update>()},
                         {"stream_scale", 1, 1, true, widest<Mix::scale>()}};

// The memory of every thread, touched first by the thread itself. All mixes share it.
class ThreadMemory {
 public:
  ThreadMemory(std::size_t bytes, int threads)
      : floats_(std::max<std::int64_t>(most_arrays * unit, static_cast<std::int64_t>(bytes) / 4)),
        of_thread_(static_cast<std::size_t>(threads)) {
#pragma omp parallel num_threads(threads)
    {
      auto& own = of_thread_[static_cast<std::size_t>(omp_get_thread_num())];
      own = aligned_array<float>(static_cast<std::size_t>(floats_));
      std::fill_n(own.get(), floats_, 1.0F);
    }
  }

  int threads() const { return static_cast<int>(of_thread_.size()); }
  // Floats of each of `arrays` arrays that fill the memory.
  std::int64_t count(int arrays) const { return floats_ / arrays / unit * unit; }
  // The first, the second and the last of them.
  Arrays arrays(int thread, int parts) const {
    float* first = of_thread_[static_cast<std::size_t>(thread)].get();
    const std::int64_t each = count(parts);
    return {first, first + std::min(1, parts - 1) * each, first + (parts - 1) * each};
  }

 private:
  static constexpr std::int64_t unit = 64, most_arrays = 3;
  std::int64_t floats_;
  std::vector<AlignedArray<float>> of_thread_;
};

double stream_rate(const MixInfo& info, const ThreadMemory& memory) {
  const std::int64_t count = memory.count(info.arrays());
  const double moved = 4.0 * static_cast<double>(count) * (info.reads + info.writes);
  const auto passes = static_cast<std::int64_t>(std::max(1.0, 2.4e7 / moved));
  return best_rate(memory.threads(), moved * static_cast<double>(passes), [&](int thread) {
    const Arrays own = memory.arrays(thread, info.arrays());
    for (std::int64_t pass = 0; pass < passes; ++pass) info.stream(own, count);
  });
}

struct Level {
  const char* name;
  std::size_t bytes;  // of one thread
};
std::vector<Level> levels(const CacheSizes& caches, int threads) {
  std::vector<Level> all;
  if (caches.l1 > 0) all.push_back({"L1", caches.l1 / 2});
  if (caches.l2 > 0) all.push_back({"L2", caches.l2 / 2});
  // Not half of L3: on a shared machine others use a part of it.
  if (caches.l3 > 0)
    all.push_back({"L3", std::min(caches.l3 / 2 / static_cast<std::size_t>(threads),
                                  std::max(4 * caches.l2, std::size_t{1} << 20U))});
  const std::size_t last = std::max({caches.l1, caches.l2, caches.l3, std::size_t{8} << 20U});
  all.push_back(
      {"DRAM", std::min(std::size_t{256} << 20U, 4 * last) / static_cast<std::size_t>(threads)});
  return all;
}

double find(const std::vector<Ceiling>& ceilings, const std::string& name, const std::string& level,
            int threads) {
  for (const Ceiling& c : ceilings)
    if (c.name == name && c.level == level && c.threads == threads) return c.value * 1e9;
  return 0;
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const CacheSizes& caches, int threads,
                                      const std::function<bool(const std::string&)>& wanted) {
  std::vector<Ceiling> all;
  if (threads == 0) {
    for (const DeviceCeiling& c : measure_device_ceilings())
      all.push_back(
          {c.name, c.unit, 0, std::string_view(c.unit) == "GB/s" ? "device" : "", c.value});
    return all;
  }
  for (const Peak& peak : peaks())
    if (peak.probe != nullptr && wanted(peak.name))
      all.push_back({peak.name, "GFLOP/s", threads, "", peak_rate(peak, threads) / 1e9});
  for (const Level& level : levels(caches, threads)) {
    const ThreadMemory memory(level.bytes, threads);
    for (const MixInfo& info : mixes)
      if (wanted(info.name))
        all.push_back({info.name, "GB/s", threads, level.name, stream_rate(info, memory) / 1e9});
  }
  return all;
}

std::string why_inconsistent(const std::vector<Ceiling>& of_one, const std::vector<Ceiling>& of_all,
                             int cores) {
  constexpr double least = 0.6, most = 1.25;  // of the peak of one thread, for each core
  const auto peak = [](const std::vector<Ceiling>& ceilings, const auto& is_of) {
    const auto found = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& c) {
      return c.name == "fma_peak" && is_of(c.threads);
    });
    return found == ceilings.end() ? Ceiling{} : *found;
  };
  const Ceiling one = peak(of_one, [](int threads) { return threads == 1; }),
                all = peak(of_all, [](int threads) { return threads > 1; });
  if (one.value <= 0 || all.value <= 0) return {};
  const double share = all.value / one.value / std::min(all.threads, cores);
  if (share >= least && all.value <= most * all.threads * one.value) return {};
  return fmt::format("the FMA peak is {:.1f} GFLOP/s on {} threads and {:.1f} on one", all.value,
                     all.threads, one.value);
}

Roof roof_of(const ProblemInfo& problem, double operand_bytes, bool cold, int threads,
             const CacheSizes& caches, const std::vector<Ceiling>& ceilings) {
  const double bytes = problem.bytes_read + problem.bytes_written;
  if (bytes <= 0) return {};
  const double reads = problem.bytes_read / bytes;
  const MixInfo* nearest =
      std::min_element(std::begin(mixes), std::end(mixes), [&](const MixInfo& a, const MixInfo& b) {
        const auto distance = [&](const MixInfo& m) {  // in place or not counts first
          return std::abs(static_cast<double>(m.reads) / (m.reads + m.writes) - reads) +
                 (m.in_place == problem.in_place ? 0 : 2);
        };
        return distance(a) < distance(b);
      });
  // A cache holds a part of operands that it does not hold whole.
  const double per_thread = operand_bytes / threads;
  const std::pair<const char*, double> held[] = {
      {"L1", cold ? 0 : static_cast<double>(caches.l1) / per_thread},
      {"L2", cold ? 0 : static_cast<double>(caches.l2) / per_thread},
      {"L3", cold ? 0 : static_cast<double>(caches.l3) / operand_bytes},
      {"DRAM", 1}};
  Roof memory;
  double share = 0;  // that this level and those above it hold
  for (const auto& [level, holds] : held) {
    const double here = std::min(holds, 1.0) - share;
    if (here <= 0) continue;
    const double bandwidth = find(ceilings, nearest->name, level, threads);
    if (bandwidth <= 0) {  // not measured
      memory = {};
      break;
    }
    share += here;
    memory.name = fmt::format("{}_{}", nearest->name, level);
    memory.seconds += here * bytes / bandwidth;
  }
  const bool is_fp32 = problem.precision.empty() || problem.precision == "fp32" ||
                       problem.precision == "fp16";  // which is widened
  const std::string name = is_fp32 ? "fma_peak" : problem.precision + "_peak";
  const double peak = find(ceilings, name, "", threads);
  const Roof compute{name, peak > 0 ? problem.flops / peak : 0};
  return compute.seconds >= memory.seconds ? compute : memory;
}

Roof device_roof_of(const ProblemInfo& problem, const VariantInfo& variant,
                    const std::vector<Ceiling>& ceilings) {
  const bool on_tensor_cores = variant.precision == Precision::tf32 || variant.operand_error > 0;
  const bool is_fp32 = variant.precision == Precision::fp32;
  const double fma = find(ceilings, "fma_peak", "", 0);
  const double tf32 = find(ceilings, "tf32_peak", "", 0);
  const double bandwidth = find(ceilings, "stream_copy", "device", 0);
  const double bytes = problem.bytes_read + problem.bytes_written;
  if (!is_fp32 && variant.precision != Precision::tf32) return {};
  if (fma <= 0 || bandwidth <= 0 || bytes <= 0 || (on_tensor_cores && tf32 <= 0)) return {};
  Roof compute{"fma_peak", problem.flops / fma};
  if (!is_fp32)
    compute = {"tf32_peak", problem.flops / tf32};
  else if (on_tensor_cores && tf32 / 3 > fma)
    compute = {"tf32_peak/3", problem.flops / (tf32 / 3)};
  const Roof memory{"stream_copy_device", bytes / bandwidth};
  return compute.seconds >= memory.seconds ? compute : memory;
}

}  // namespace stepladder
