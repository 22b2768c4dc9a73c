// The ring between the GPUs of one process. GPU r reads GPU r - 1's memory as if it were its own, over
// NVLink or PCI Express: a kernel adds its part to the sum that comes in and writes it where the next GPU
// will read it, with no buffer in between; finished sums are copied by the copy engines.
//
//     sum      for each part, GPU by GPU:   output[r] = output[r - 1] + input[r]      p - 1 steps
//     gather                                output[r] = output[r - 1]                 p - 1 steps
//
// Parts of a long vector are cut into pieces: while a piece waits for the neighbour, another is under way.
// Every GPU reads 2 (p-1)/p n bytes from its neighbour, the least that any all-reduce can. ring_parts.hpp
// says who has which part when.
//
//     T = 2 (p-1) alpha + 2 (p-1)/p n beta          alpha: a launch, or an event between two GPUs
//
// What still reads a partial sum is done when the finished one takes its place: that sum was made from it.
//
// Expected: near the link's bandwidth for long vectors: 268 MB over 8 GPUs with 450 GB/s each way in
// 1.05 ms and more. Below some MB the 2 (p-1) steps of 10 us and more are all of the time.
#include <algorithm>
#include <vector>

#include "kernels/all_reduce/cuda/gpu_group.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"

namespace stepladder::all_reduce {
namespace {

// sum[i] = (incoming[i] + own[i]) / divisor: the first `fours` vectors of four, then one by one.
__global__ void __launch_bounds__(block_threads)
    add_kernel(const float* incoming, const float* own, float* sum, std::int64_t count,
               std::int64_t fours, float divisor) {
  const std::int64_t i = thread_index();
  if (i < fours) {
    const float4 a = reinterpret_cast<const float4*>(incoming)[i];
    const float4 b = reinterpret_cast<const float4*>(own)[i];
    reinterpret_cast<float4*>(sum)[i] = make_float4((a.x + b.x) / divisor, (a.y + b.y) / divisor,
                                                    (a.z + b.z) / divisor, (a.w + b.w) / divisor);
  }
  if (const std::int64_t j = 4 * fours + i; j < count) sum[j] = (incoming[j] + own[j]) / divisor;
}

bool in_fours(const float* values) {
  return reinterpret_cast<std::uintptr_t>(values) % sizeof(float4) == 0;
}

class PeerRing final : public Plan {
 public:
  PeerRing(const Problem& problem, const Resources&)
      : problem_(problem),
        group_(problem),
        pieces_(problem.count / group_.ranks() >= worth_cutting ? 2 : 1) {
    group_.connect_ring();
    for (int i = 0; i < 2 * pieces_ * group_.ranks(); ++i) events_.emplace_back(i % group_.ranks());
  }

  void run(const Operands& o) override {
    const int ranks = group_.ranks(), sums = ranks - 1;
    group_.start();
    for (int step = 0; step < 2 * sums; ++step)
      for (int piece = 0; piece < pieces_; ++piece)
        for (int rank = 0; rank < ranks; ++rank) {
          const int previous = (rank + ranks - 1) % ranks;
          if (step > 0) done(previous, step - 1, piece).hold(rank);
          const Part part = part_at(rank, step, piece);
          const float* from = step == 0 ? o.of_gpu[previous].input : o.of_gpu[previous].output;
          if (step < sums)
            add(rank, from + part.first, o.of_gpu[rank].input + part.first,
                o.of_gpu[rank].output + part.first, part.count, step == sums - 1);
          else
            copy(rank, from + part.first, o.of_gpu[rank].output + part.first, part.count);
          done(rank, step, piece).record();
        }
    group_.finish();
  }

 private:
  static constexpr std::int64_t worth_cutting = std::int64_t{1} << 18;  // floats of a part

  Part part_at(int rank, int step, int piece) const {
    const int ranks = group_.ranks(), sums = ranks - 1;
    const int index = step < sums ? part_to_sum(rank, step) : part_to_gather(rank, step - sums);
    constexpr std::int64_t grain = 4;  // floats, to read and write vectors
    return part_of(part_of({0, problem_.count}, ranks, index, grain), pieces_, piece, grain);
  }

  void add(int rank, const float* incoming, const float* own, float* sum, std::int64_t count,
           bool is_last) const {
    if (count == 0) return;
    const CurrentGpu here(rank);
    const bool vectors = in_fours(incoming) && in_fours(own) && in_fours(sum);
    const std::int64_t fours = vectors ? count / 4 : 0;
    const bool divides = is_last && problem_.operation == Operation::mean;
    launch_on(gpu_stream(rank), add_kernel,
              {blocks_for(std::max(fours, count - 4 * fours)), block_threads}, incoming, own, sum,
              count, fours, divides ? static_cast<float>(group_.ranks()) : 1.0F);
  }

  void copy(int rank, const float* from, float* to, std::int64_t count) const {
    if (count == 0) return;
    const CurrentGpu here(rank);
    const int previous = (rank + group_.ranks() - 1) % group_.ranks();
    STEPLADDER_CUDA_CHECK(cudaMemcpyPeerAsync(to, rank, from, previous,
                                              static_cast<std::size_t>(count) * sizeof(float),
                                              gpu_stream(rank)));
  }

  // Of one step and the next: when an event is recorded again, all that wait for it are waiting.
  const StreamEvent& done(int rank, int step, int piece) const {
    return events_[(step % 2 * pieces_ + piece) * group_.ranks() + rank];
  }

  Problem problem_;
  GpuGroup group_;
  int pieces_;                       // of a part
  std::vector<StreamEvent> events_;  // [2 steps, pieces, ranks]
};

constexpr VariantInfo info{
    .name = "peer_ring",
    .technique = Technique::cuda,
    .builds_on = "ring",
    .adds = "the ring between the GPUs of one process, which read each other's memory",
    .place = Place::cuda,
};

const Registration registration{info, make_plan<AllReduce, PeerRing>};

}  // namespace
}  // namespace stepladder::all_reduce
