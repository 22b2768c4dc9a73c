#include "harness/measure/links.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "harness/io/now.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"
#include "kernels/common/integer_math.hpp"

#ifdef STEPLADDER_HAVE_MPI
#include "kernels/all_reduce/mpi/compressed/narrow_floats.hpp"
#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/shared_window/flags.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/cpu/instructions.hpp"
#include "kernels/common/isa.hpp"
#include "kernels/common/mpi.hpp"
#endif

namespace stepladder {

#ifdef STEPLADDER_HAVE_MPI
namespace {

constexpr std::size_t longest = std::size_t{64} << 20U;  // bytes of a message
constexpr int tag = 2;

#if defined(__x86_64__)
// A copy that memory bounds: non-temporal stores, which do not read the target first, prefetches
// across boundaries of 4 KiB, where the hardware stops, and two halves at once, which keep more
// misses in flight. `to` is aligned to a cache line.
__attribute__((target("avx"))) void copy_streaming(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  constexpr std::size_t ahead = 2048;
  const std::size_t half = bytes / 2 / cache_line * cache_line;
  for (std::size_t i = 0; i < half; i += cache_line)
    for (const std::size_t at : {i, half + i}) {
      _mm_prefetch(reinterpret_cast<const char*>(from + at + ahead), _MM_HINT_T0);
      for (std::size_t j = at; j < at + cache_line; j += 32)
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to + j),
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + j)));
    }
  _mm_sfence();
  std::memcpy(to + 2 * half, from + 2 * half, bytes - 2 * half);
}
#endif

// Memory of which each measured operation takes another part, as rows over ranks do with their
// operands: beyond the caches, but for the shortest.
struct Rotated {
  explicit Rotated(std::size_t bytes, bool huge_pages)
      : bytes(bytes), source(allocate(bytes, huge_pages)), target(allocate(bytes, huge_pages)) {
    for (const auto& memory : {source.get(), target.get()}) std::memset(memory, 0, bytes);
  }
  std::size_t offset(std::size_t length, std::int64_t iteration) const {
    const std::size_t slot = round_up(length, cache_line) + cache_line;
    const std::size_t slots = std::min(bytes / slot, static_cast<std::size_t>(most_copies));
    return static_cast<std::size_t>(iteration) % slots * slot;
  }

  std::size_t bytes;
  AlignedArray<std::byte> source, target;

 private:
  static AlignedArray<std::byte> allocate(std::size_t bytes, bool huge_pages) {
    if (huge_pages) return aligned_array<std::byte>(bytes);
    AlignedArray<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
  }
};

class LinkMeter {
 public:
  explicit LinkMeter(std::size_t cache_per_rank)
      : communicator_(communicator_of({.communicator = mpi_session().communicator()})),
        rank_(mpi_session().rank()),
        ranks_(mpi_session().ranks()),
        node_(all_reduce::node_of(communicator_)),
        small_pages_(round_up(2 * cache_per_rank + 2 * huge_pages_from, 4096), false),
        huge_pages_(std::max(2 * cache_per_rank, 2 * longest), true),
        received_(aligned_array<std::byte>(longest)) {
    std::memset(received_.get(), 0, longest);
    MPI_Comm_rank(node_, &node_rank_);
    MPI_Comm_size(node_, &node_ranks_);
    MPI_Allreduce(&node_ranks_, &largest_node_, 1, MPI_INT, MPI_MAX, communicator_);
  }
  ~LinkMeter() { MPI_Comm_free(&node_); }

  Links measure() {
    Links links;
    if (largest_node_ > 1) {
      links.within = costs(node_, node_rank_, node_ranks_, 1);
      links.handoff = handoff();
    }
    if (mpi_session().hosts() > 1)
      links.between = costs(communicator_, rank_, ranks_, first_on_another_host());
    links.add = curve([this](std::size_t bytes, std::int64_t i) {
      // A received vector, which is in cache, and the own one, which is not.
      const auto [source, target] = vectors(bytes, i);
      all_reduce::add(reinterpret_cast<const float*>(received_.get()),
                      reinterpret_cast<const float*>(source), reinterpret_cast<float*>(target),
                      static_cast<std::int64_t>(bytes / sizeof(float)));
    });
    links.copy = curve([this](std::size_t bytes, std::int64_t i) {
      const auto [source, target] = vectors(bytes, i);
      std::memcpy(target, source, bytes);
    });
    const auto in_huge_pages = [this](const auto& copy) {
      return curve([&](std::size_t bytes, std::int64_t i) {
        const std::size_t at = huge_pages_.offset(bytes, i);
        copy(huge_pages_.target.get() + at, huge_pages_.source.get() + at, bytes);
      });
    };
    std::vector<CostCurve::Point> fastest = in_huge_pages(std::memcpy).points();
#if defined(__x86_64__)
    if (cpu_has(Isa::avx2)) {
      const CostCurve streaming = in_huge_pages(copy_streaming);
      for (CostCurve::Point& point : fastest)
        point.seconds = std::min(point.seconds, streaming(point.bytes));
    }
#endif
    links.stream = CostCurve(fastest);
    constexpr std::size_t cached_bytes = std::size_t{64} << 10U;
    links.code = median_seconds(cached_bytes,
                                [this](std::size_t bytes, std::int64_t) {
                                  all_reduce::Bf16::encode(
                                      reinterpret_cast<const float*>(received_.get()),
                                      static_cast<std::int64_t>(bytes / sizeof(float)),
                                      reinterpret_cast<std::uint16_t*>(huge_pages_.target.get()));
                                }) /
                 cached_bytes;
    return links;
  }

 private:
  using Work = std::function<void(std::size_t bytes, std::int64_t iteration)>;

  struct Vectors {
    std::byte *source, *target;
  };
  // Chunks of vectors, one for each rank, in pages as such vectors have them.
  Vectors vectors(std::size_t bytes, std::int64_t iteration) const {
    const bool huge = bytes * static_cast<std::size_t>(ranks_) >= huge_pages_from;
    const Rotated& memory = huge ? huge_pages_ : small_pages_;
    const std::size_t at = memory.offset(bytes, iteration);
    return {memory.source.get() + at, memory.target.get() + at};
  }

  // Seconds of work(bytes) at each length, on the slowest rank; median of several batches. Ends
  // where the rate of a slow link decides, since the last two points are continued as a line.
  CostCurve curve(const Work& work) {
    std::vector<CostCurve::Point> points;
    for (std::size_t bytes = 4; bytes <= longest; bytes *= bytes < 1024 ? 4 : 2) {
      const double seconds = median_seconds(bytes, work);
      points.push_back({static_cast<double>(bytes), seconds});
      const bool by_rate = seconds > 2 * points.front().seconds;
      if (seconds > 0.5 || (seconds > 0.1 && by_rate)) break;
    }
    return CostCurve(points);
  }

  double median_seconds(std::size_t bytes, const Work& work) {
    constexpr double slot = 2e-3;  // of a batch
    constexpr int batches = 7;
    double estimate = batch(bytes, 1, work);
    estimate = std::min(estimate, batch(bytes, 2, work));
    const auto iterations = static_cast<std::int64_t>(std::clamp(slot / estimate, 1.0, 1e5));
    std::vector<double> seconds;
    for (int i = 0; i < (estimate > 0.02 ? 3 : batches); ++i)
      seconds.push_back(batch(bytes, iterations, work));
    return summarize(std::move(seconds)).median;
  }

  double batch(std::size_t bytes, std::int64_t iterations, const Work& work) {
    mpi_session().barrier();
    const double start = now();
    for (std::int64_t i = 0; i < iterations; ++i) {
      work(bytes, next_++);
      _mm_mfence();  // the next one does not begin before this one ends
    }
    return mpi_session().max((now() - start) / static_cast<double>(iterations));
  }

  // `partner`: the rank that rank 0 sends to. Messages come from memory and arrive in one buffer; a
  // ring, for one, also sends sums from the caches and gathers them in memory.
  LinkCosts costs(MPI_Comm communicator, int rank, int ranks, int partner) {
    LinkCosts costs;
    const auto exchange = [=, this](std::size_t bytes, std::int64_t i, int to, int from) {
      const int length = static_cast<int>(bytes);
      MPI_Sendrecv(vectors(bytes, i).source, length, MPI_BYTE, to, tag, received_.get(), length,
                   MPI_BYTE, from, tag, communicator, MPI_STATUS_IGNORE);
    };
    costs.send = curve([&](std::size_t bytes, std::int64_t i) {  // there and back
      const int other = rank == 0 ? partner : 0;
      const int length = static_cast<int>(bytes);
      const auto send = [&] {
        MPI_Send(vectors(bytes, i).source, length, MPI_BYTE, other, tag, communicator);
      };
      const auto receive = [&] {
        MPI_Recv(received_.get(), length, MPI_BYTE, other, tag, communicator, MPI_STATUS_IGNORE);
      };
      if (ranks == 1 || (rank != 0 && rank != partner)) return;
      if (rank == 0) send();
      receive();
      if (rank != 0) send();
    });
    std::vector<CostCurve::Point> one_way = costs.send.points();
    for (CostCurve::Point& point : one_way) point.seconds /= 2;
    costs.send = CostCurve(one_way);
    costs.shift = curve([&](std::size_t bytes, std::int64_t i) {
      if (ranks > 1) exchange(bytes, i, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
    });
    costs.swap = curve([&](std::size_t bytes, std::int64_t i) {
      const int half = ranks / 2;
      const int other = rank < half ? rank + half : rank < 2 * half ? rank - half : MPI_PROC_NULL;
      exchange(bytes, i, other, other);
    });
    return costs;
  }

  int first_on_another_host() const {
    std::vector<int> node_ranks(static_cast<std::size_t>(ranks_));
    int mine = -1;
    MPI_Group everyone{}, here{};
    MPI_Comm_group(communicator_, &everyone);
    MPI_Comm_group(node_, &here);
    const int zero = 0;
    MPI_Group_translate_ranks(everyone, 1, &zero, here, &mine);
    MPI_Group_free(&everyone);
    MPI_Group_free(&here);
    // Ranks that do not share memory with rank 0 translate it to MPI_UNDEFINED.
    int candidate = mine == MPI_UNDEFINED ? rank_ : ranks_;
    MPI_Allreduce(MPI_IN_PLACE, &candidate, 1, MPI_INT, MPI_MIN, communicator_);
    return candidate;
  }

  // Through slots that are used in turn. What fits a cache line shares that of the flag.
  CostCurve handoff() {
    struct alignas(cache_line) FlagLine {
      all_reduce::Flag round;
      std::byte values[cache_line - sizeof(round)];
    };
    constexpr std::size_t longest_slot = std::size_t{64} << 10U;
    constexpr std::size_t slots = 4;  // a rank is one round ahead of another at most
    constexpr std::size_t slot_bytes = sizeof(FlagLine) + longest_slot;
    constexpr int rounds = 200;
    const all_reduce::Window window(node_, slots * slot_bytes);
    const auto line = [&](int rank, all_reduce::Step round) -> FlagLine& {
      return *reinterpret_cast<FlagLine*>(
          window.of(rank, window.segment() + round % slots * slot_bytes));
    };
    all_reduce::Step round = 0;
    std::vector<CostCurve::Point> points;
    for (std::size_t bytes = 4; bytes <= longest_slot; bytes *= 4) {
      const auto values_of = [&](FlagLine& at) {
        return bytes <= sizeof at.values ? at.values : reinterpret_cast<std::byte*>(&at + 1);
      };
      std::vector<double> seconds;
      for (int repetition = 0; repetition < 9; ++repetition) {
        mpi_session().barrier();
        const double start = now();
        for (int i = 0; i < rounds && node_ranks_ > 1; ++i) {
          const auto [source, target] = vectors(bytes, static_cast<std::int64_t>(++round));
          FlagLine& mine = line(node_rank_, round);
          std::memcpy(values_of(mine), source, bytes);
          mine.round.store(round, std::memory_order_release);
          for (int rank = 0; rank < node_ranks_; ++rank)
            all_reduce::wait_for(line(rank, round).round, round, rank, {});
          std::memcpy(target, values_of(line((node_rank_ + 1) % node_ranks_, round)), bytes);
        }
        seconds.push_back(mpi_session().max(now() - start) / rounds);
      }
      points.push_back({static_cast<double>(bytes), summarize(std::move(seconds)).median});
    }
    return CostCurve(points);
  }

  MPI_Comm communicator_;
  int rank_, ranks_;
  MPI_Comm node_;
  int node_rank_ = 0, node_ranks_ = 1, largest_node_ = 1;
  Rotated small_pages_, huge_pages_;
  AlignedArray<std::byte> received_;
  std::int64_t next_ = 0;
};

}  // namespace

Links measure_links(std::size_t cache_per_rank) {
  if (mpi_session().ranks() == 1) return {};
  return LinkMeter(cache_per_rank).measure();
}

#else

Links measure_links(std::size_t) { return {}; }

#endif

namespace {

nlohmann::json as_json(const CostCurve& curve) {
  nlohmann::json points = nlohmann::json::array();
  for (const CostCurve::Point& point : curve.points())
    points.push_back({point.bytes, point.seconds});
  return points;
}

nlohmann::json as_json(const LinkCosts& costs) {
  return {{"send", as_json(costs.send)},
          {"shift", as_json(costs.shift)},
          {"swap", as_json(costs.swap)}};
}

// Links or const Links.
template <class L>
auto curves_of(L& links) {
  return std::array{&links.within.send,  &links.within.shift,  &links.within.swap,
                    &links.between.send, &links.between.shift, &links.between.swap,
                    &links.add,          &links.copy,          &links.stream,
                    &links.handoff};
}

CostCurve median_of(const std::vector<CostCurve>& curves) {
  std::size_t length = curves.front().points().size();  // slow lengths may be left out
  for (const CostCurve& curve : curves) length = std::min(length, curve.points().size());
  std::vector<CostCurve::Point> points;
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<double> seconds;
    for (const CostCurve& curve : curves) seconds.push_back(curve.points()[i].seconds);
    points.push_back({curves.front().points()[i].bytes, summarize(std::move(seconds)).median});
  }
  return CostCurve(points);
}

}  // namespace

nlohmann::json as_json(const Links& links) {
  return {{"within", as_json(links.within)},
          {"between", as_json(links.between)},
          {"add", as_json(links.add)},
          {"copy", as_json(links.copy)},
          {"stream", as_json(links.stream)},
          {"handoff", as_json(links.handoff)},
          {"code", links.code}};
}

Links median_of(const std::vector<Links>& measurements) {
  Links medians;
  const auto all = curves_of(medians);
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<CostCurve> same;
    for (const Links& one : measurements) same.push_back(*curves_of(one)[i]);
    *all[i] = median_of(same);
  }
  std::vector<double> codes;
  for (const Links& one : measurements) codes.push_back(one.code);
  medians.code = summarize(std::move(codes)).median;
  return medians;
}

double break_even_rate(detail::CostFunction compressed, double ranks, double bytes,
                       const Links& links) {
  const CostCurve& measured = (links.between.send.empty() ? links.within : links.between).send;
  if (measured.empty()) return 0;
  Links scaled = links;
  const CommunicationCost cost{.p = ranks, .n = bytes, .g = ranks, .l = scaled};
  const auto set_rate = [&](double rate) {
    const CostCurve line = CostCurve::line(measured.points().front().seconds, 8 / rate);
    scaled.within = {line, line, line};
  };
  constexpr double fastest_link = 1e13;
  constexpr double slowest_link = 1e6;
  std::vector<detail::CostFunction> exact;  // of rungs that send messages
  for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
    const VariantInfo& info = *entry.info;
    if (entry.cost == nullptr || info.encoded_share != 1.0 || info.technique != Technique::mpi)
      continue;
    set_rate(slowest_link);
    const double slowest = entry.cost(cost);
    set_rate(fastest_link);
    if (entry.cost(cost) < slowest) exact.push_back(entry.cost);
  }
  for (double rate = fastest_link; rate >= slowest_link; rate /= 1.02) {
    set_rate(rate);
    const double seconds = compressed(cost);
    if (std::all_of(exact.begin(), exact.end(),
                    [&](detail::CostFunction other) { return seconds < other(cost); }))
      return rate;
  }
  return 0;
}

Roof all_reduce_roof(double bytes, int hosts, const Links& links) {
  if (hosts == 1) return {"memory_bound", links.stream(bytes)};
  if (links.between.send.empty()) return {};
  const CostCurve::Point& longest = links.between.send.points().back();
  return {"bandwidth_bound", 2.0 * (hosts - 1) / hosts * bytes * longest.seconds / longest.bytes};
}

}  // namespace stepladder
