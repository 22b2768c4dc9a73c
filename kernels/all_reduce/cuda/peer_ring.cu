// The ring between the GPUs of one process, with peer access over NVLink or PCI Express. A kernel
// on GPU r reads the partial sum in the memory of GPU r - 1, adds its input and writes the result
// where GPU r + 1 reads it, without a buffer in between. The copy engines copy complete sums.
//
//     reduce-scatter   p-1 steps   output[r] = output[r - 1] + input[r]   for one chunk per GPU
//     all-gather       p-1 steps   output[r] = output[r - 1]              for one chunk per GPU
//
// Long chunks are split into two segments: one is in flight while the other waits for the
// neighbour. Every GPU reads 2 (p-1)/p n bytes from its neighbour, the minimum of any all-reduce.
// The all-gather may overwrite a partial sum: the complete sum was computed from it, so its reader
// has finished.
//
//     T = 2 (p-1) alpha + 2 (p-1)/p n beta          alpha: a launch, or an event between two GPUs
//
// Expected: near the link bandwidth for long vectors; the README has the arithmetic.
#include <algorithm>
#include <vector>

#include "kernels/all_reduce/cuda/gpu_group.hpp"
#include "kernels/all_reduce/ring_schedule.hpp"

namespace stepladder::all_reduce {
namespace {

// sum[i] = (incoming[i] + own[i]) / divisor; the first 4 · vectors elements as float4.
__global__ void __launch_bounds__(block_threads)
    add_kernel(const float* incoming, const float* own, float* sum, std::int64_t count,
               std::int64_t vectors, float divisor) {
  const std::int64_t i = thread_index();
  if (i < vectors) {
    const float4 a = reinterpret_cast<const float4*>(incoming)[i];
    const float4 b = reinterpret_cast<const float4*>(own)[i];
    reinterpret_cast<float4*>(sum)[i] = make_float4((a.x + b.x) / divisor, (a.y + b.y) / divisor,
                                                    (a.z + b.z) / divisor, (a.w + b.w) / divisor);
  }
  if (const std::int64_t j = 4 * vectors + i; j < count) sum[j] = (incoming[j] + own[j]) / divisor;
}

bool is_vector_aligned(const float* values) {
  return reinterpret_cast<std::uintptr_t>(values) % sizeof(float4) == 0;
}

class PeerRing final : public Plan {
 public:
  PeerRing(const Problem& problem, const Resources&)
      : problem_(problem),
        group_(problem),
        segments_(problem.count / group_.ranks() >= min_split_chunk ? 2 : 1) {
    group_.connect_ring();
    for (int i = 0; i < 2 * segments_ * group_.ranks(); ++i)
      events_.emplace_back(i % group_.ranks());
  }

  void run(const Operands& o) override {
    const int ranks = group_.ranks(), sums = ranks - 1;
    group_.start();
    for (int step = 0; step < 2 * sums; ++step)
      for (int segment = 0; segment < segments_; ++segment)
        for (int rank = 0; rank < ranks; ++rank) {
          const int previous = (rank + ranks - 1) % ranks;
          if (step > 0) done(previous, step - 1, segment).make_wait(rank);
          const Chunk chunk = chunk_at(rank, step, segment);
          const float* from = step == 0 ? o.of_gpu[previous].input : o.of_gpu[previous].output;
          if (step < sums)
            add(rank, from + chunk.first, o.of_gpu[rank].input + chunk.first,
                o.of_gpu[rank].output + chunk.first, chunk.count, step == sums - 1);
          else
            copy(rank, from + chunk.first, o.of_gpu[rank].output + chunk.first, chunk.count);
          done(rank, step, segment).record();
        }
    group_.finish();
  }

 private:
  static constexpr std::int64_t min_split_chunk = std::int64_t{1} << 18;  // floats

  // The segment of the chunk that `rank` receives at `step`.
  Chunk chunk_at(int rank, int step, int segment) const {
    const int ranks = group_.ranks(), sums = ranks - 1;
    const int index =
        step < sums ? reduce_scatter_chunk(rank, step) : all_gather_chunk(rank, step - sums);
    constexpr std::int64_t granule = 4;  // floats of a float4
    const Chunk chunk = chunk_of({0, problem_.count}, ranks, index, granule);
    return chunk_of(chunk, segments_, segment, granule);
  }

  void add(int rank, const float* incoming, const float* own, float* sum, std::int64_t count,
           bool is_last) const {
    if (count == 0) return;
    const CurrentGpu here(rank);
    const bool aligned =
        is_vector_aligned(incoming) && is_vector_aligned(own) && is_vector_aligned(sum);
    const std::int64_t vectors = aligned ? count / 4 : 0;
    const bool divides = is_last && problem_.operation == Operation::mean;
    launch_on(gpu_stream(rank), add_kernel,
              {blocks_for(std::max(vectors, count - 4 * vectors)), block_threads}, incoming, own,
              sum, count, vectors, divides ? static_cast<float>(group_.ranks()) : 1.0F);
  }

  void copy(int rank, const float* from, float* to, std::int64_t count) const {
    if (count == 0) return;
    const CurrentGpu here(rank);
    const int previous = (rank + group_.ranks() - 1) % group_.ranks();
    STEPLADDER_CUDA_CHECK(cudaMemcpyPeerAsync(to, rank, from, previous,
                                              static_cast<std::size_t>(count) * sizeof(float),
                                              gpu_stream(rank)));
  }

  // Steps alternate between two sets of events: when an event is recorded again, all waits for its
  // previous record have been submitted.
  const StreamEvent& done(int rank, int step, int segment) const {
    return events_[(step % 2 * segments_ + segment) * group_.ranks() + rank];
  }

  Problem problem_;
  GpuGroup group_;
  int segments_;                     // of a chunk
  std::vector<StreamEvent> events_;  // [2 steps, segments, ranks]
};

constexpr VariantInfo info{
    .name = "peer_ring",
    .technique = Technique::cuda,
    .builds_on = "ring",
    .adds = "the ring between the GPUs of one process, with peer access to each other's memory",
    .idea = Idea::processes,
    .place = Place::cuda,
};

const Registration registration{info, make_plan<AllReduce, PeerRing>};

}  // namespace
}  // namespace stepladder::all_reduce
