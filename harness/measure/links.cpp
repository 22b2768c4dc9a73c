#include "harness/measure/links.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "harness/io/mpi_session.hpp"
#include "harness/measure/statistics.hpp"
#include "kernels/all_reduce/all_reduce.hpp"
#include "kernels/common/cpu/aligned.hpp"

#ifdef STEPLADDER_HAVE_MPI
#include <immintrin.h>

#include "kernels/all_reduce/mpi/reduce.hpp"
#include "kernels/all_reduce/mpi/window.hpp"
#include "kernels/common/isa.hpp"
#include "kernels/common/mpi.hpp"
#endif

namespace stepladder {

#ifdef STEPLADDER_HAVE_MPI
namespace {

constexpr std::size_t longest = std::size_t{64} << 20U;  // bytes of a message
constexpr int tag = 2;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Non-temporal stores: the target is not read first. `bytes` is a multiple of 64.
__attribute__((target("avx"))) void copy_streaming(std::byte* to, const std::byte* from,
                                                   std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  _mm_sfence();
}

class LinkMeter {
 public:
  explicit LinkMeter(const CacheSizes& caches)
      : communicator_(communicator_of({.communicator = mpi_session().communicator()})),
        rank_(mpi_session().rank()),
        ranks_(mpi_session().ranks()),
        node_(all_reduce::node_of(communicator_)),
        rotated_(std::max(2 * caches.l3, 2 * longest)),
        source_(aligned_array<std::byte>(rotated_)),
        target_(aligned_array<std::byte>(rotated_)),
        received_(aligned_array<std::byte>(longest)) {
    for (const auto& memory : {source_.get(), target_.get()}) std::memset(memory, 0, rotated_);
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
      links.flag = flag();
    }
    if (mpi_session().hosts() > 1)
      links.between = costs(communicator_, rank_, ranks_, first_on_another_host());
    links.add = curve([this](std::size_t bytes, std::int64_t i) {
      // A received vector, which is in cache, and the own one, which is not.
      const std::size_t at = offset(bytes, i);
      all_reduce::add(reinterpret_cast<const float*>(received_.get()),
                      reinterpret_cast<const float*>(source_.get() + at),
                      reinterpret_cast<float*>(target_.get() + at),
                      static_cast<std::int64_t>(bytes / sizeof(float)));
    });
    const CostCurve plain = curve([this](std::size_t bytes, std::int64_t i) {
      const std::size_t at = offset(bytes, i);
      std::memcpy(target_.get() + at, source_.get() + at, bytes);
    });
    const CostCurve streaming = curve([this](std::size_t bytes, std::int64_t i) {
      const std::size_t at = offset(bytes, i);
      if (cpu_has(Isa::avx2) && bytes % 64 == 0)
        copy_streaming(target_.get() + at, source_.get() + at, bytes);
      else
        std::memcpy(target_.get() + at, source_.get() + at, bytes);
    });
    std::vector<CostCurve::Point> faster = plain.points();
    for (CostCurve::Point& point : faster)
      point.seconds = std::min(point.seconds, streaming(point.bytes));
    links.copy = CostCurve(faster);
    return links;
  }

 private:
  using Work = std::function<void(std::size_t bytes, std::int64_t iteration)>;

  std::size_t offset(std::size_t bytes, std::int64_t iteration) const {
    const std::size_t slot = (bytes + 2 * cache_line - 1) / cache_line * cache_line;
    return static_cast<std::size_t>(iteration) % (rotated_ / slot) * slot;
  }

  // Seconds of work(bytes) at each length, on the slowest rank; median of several batches.
  CostCurve curve(const Work& work) {
    std::vector<CostCurve::Point> points;
    for (std::size_t bytes = 4; bytes <= longest; bytes *= bytes < 1024 ? 4 : 2) {
      const double seconds = median_seconds(bytes, work);
      points.push_back({static_cast<double>(bytes), seconds});
      if (seconds > 0.5) break;
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
    for (int i = 0; i < (estimate > 0.1 ? 3 : batches); ++i)
      seconds.push_back(batch(bytes, iterations, work));
    return summarize(std::move(seconds)).median;
  }

  double batch(std::size_t bytes, std::int64_t iterations, const Work& work) {
    mpi_session().barrier();
    const double start = now();
    for (std::int64_t i = 0; i < iterations; ++i) work(bytes, next_++);
    return mpi_session().max((now() - start) / static_cast<double>(iterations));
  }

  // `partner`: the rank that rank 0 sends to.
  LinkCosts costs(MPI_Comm communicator, int rank, int ranks, int partner) {
    LinkCosts costs;
    const auto exchange = [=, this](std::size_t bytes, std::int64_t i, int to, int from) {
      MPI_Sendrecv(source_.get() + offset(bytes, i), static_cast<int>(bytes), MPI_BYTE, to, tag,
                   target_.get() + offset(bytes, i), static_cast<int>(bytes), MPI_BYTE, from, tag, communicator,
                   MPI_STATUS_IGNORE);
    };
    costs.send = curve([&](std::size_t bytes, std::int64_t i) {  // there and back
      const int other = rank == 0 ? partner : 0;
      const auto send = [&] {
        MPI_Send(source_.get() + offset(bytes, i), static_cast<int>(bytes), MPI_BYTE, other, tag,
                 communicator);
      };
      const auto receive = [&] {
        MPI_Recv(target_.get() + offset(bytes, i), static_cast<int>(bytes), MPI_BYTE, other, tag, communicator,
                 MPI_STATUS_IGNORE);
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

  // One way: ranks 0 and 1 of a node answer each other through flags in shared memory.
  double flag() {
    all_reduce::Window window(node_, cache_line);
    const auto flag_of = [&](int rank) {
      return std::atomic_ref<std::int64_t>(
          *reinterpret_cast<std::int64_t*>(window.of(rank, window.segment())));
    };
    std::int64_t round = 0;
    constexpr int rounds = 500;
    std::vector<double> seconds;
    for (int repetition = 0; repetition < 9; ++repetition) {
      mpi_session().barrier();
      const double start = now();
      for (int i = 0; i < rounds && node_rank_ < 2 && node_ranks_ > 1; ++i) {
        ++round;
        if (node_rank_ == 0) flag_of(0).store(round, std::memory_order_release);
        for (int spins = 0;
             flag_of(1 - node_rank_).load(std::memory_order_acquire) < round; ++spins)
          if (spins > 1000) std::this_thread::yield();
        if (node_rank_ == 1) flag_of(1).store(round, std::memory_order_release);
      }
      seconds.push_back(mpi_session().max(now() - start) / (2 * rounds));
    }
    return summarize(std::move(seconds)).median;
  }

  MPI_Comm communicator_;
  int rank_, ranks_;
  MPI_Comm node_;
  int node_rank_ = 0, node_ranks_ = 1, largest_node_ = 1;
  std::size_t rotated_;
  AlignedArray<std::byte> source_, target_, received_;
  std::int64_t next_ = 0;
};

}  // namespace

Links measure_links(const CacheSizes& caches) {
  if (mpi_session().ranks() == 1) return {};
  return LinkMeter(caches).measure();
}

#else

Links measure_links(const CacheSizes&) { return {}; }

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

CostCurve curve_from(const nlohmann::json& json) {
  std::vector<CostCurve::Point> points;
  for (const nlohmann::json& point : json) points.push_back({point[0], point[1]});
  return CostCurve(points);
}

LinkCosts costs_from(const nlohmann::json& json) {
  return {curve_from(json["send"]), curve_from(json["shift"]), curve_from(json["swap"])};
}

}  // namespace

nlohmann::json as_json(const Links& links) {
  return {{"within", as_json(links.within)}, {"between", as_json(links.between)},
          {"add", as_json(links.add)},       {"copy", as_json(links.copy)},
          {"flag", links.flag}};
}

Links links_from_json(const nlohmann::json& json) {
  return {costs_from(json["within"]), costs_from(json["between"]), curve_from(json["add"]),
          curve_from(json["copy"]), json["flag"]};
}

double break_even_rate(detail::CostFunction compressed, double ranks, double bytes,
                       const Links& links) {
  const CostCurve& measured = (links.between.send.empty() ? links.within : links.between).send;
  if (measured.empty()) return 0;
  Links scaled = links;
  const CommunicationCost cost{.p = ranks, .n = bytes, .g = ranks, .l = scaled};
  const auto fastest_exact = [&] {
    double fastest = std::numeric_limits<double>::infinity();
    for (const detail::Entry& entry : detail::entries(all_reduce::AllReduce::name)) {
      const VariantInfo& info = *entry.info;
      if (entry.cost != nullptr && !info.window && info.message_share == 1.0 &&
          info.technique == Technique::mpi)
        fastest = std::min(fastest, entry.cost(cost));
    }
    return fastest;
  };
  for (double rate = 1e13; rate >= 1e6; rate /= 1.02) {
    const CostCurve line = CostCurve::line(measured.points().front().seconds, 8 / rate);
    scaled.within = {line, line, line};
    if (compressed(cost) < fastest_exact()) return rate;
  }
  return 0;
}

Roof all_reduce_roof(double bytes, int hosts, const Links& links) {
  if (hosts == 1) return {"memory_bound", links.copy(bytes)};
  if (links.between.send.empty()) return {};
  const CostCurve::Point& longest = links.between.send.points().back();
  return {"bandwidth_bound", 2.0 * (hosts - 1) / hosts * bytes * longest.seconds / longest.bytes};
}

}  // namespace stepladder
