// The emulator runs the blocks of a cluster concurrently, with cluster barriers, distributed shared
// memory and multicast, and detects kernels that break their rules. Each faulty kernel is tested
// next to the same kernel without the fault.
#include "kernels/common/cuda/cluster.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "tests/error_messages.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

constexpr unsigned cluster = 4, clusters = 3, threads = 32;

// The first failure in many orders of threads; empty if there is none.
template <class Outcome>
std::string in_many_orders(const Outcome& outcome) {
  for (unsigned long long order = 1; order <= 50; ++order) {
    simt::seed_order(order);
    if (const std::string wrong = outcome(); !wrong.empty()) return wrong;
  }
  return "";
}

// --- barriers and distributed shared memory ------------------------------------------------------

enum class Fault {
  none,
  no_barrier_before,
  barrier_of_the_block_alone,
  no_barrier_after,
  waits_without_arriving,
  shared_variable,
};

// Each block writes to the next block of its cluster and sums what it receives. sums: [blocks]
template <Fault fault>
__global__ void write_to_next(float* sums) {
  auto* const received = dynamic_shared<float>();  // [threads]
  const unsigned next = (cluster_rank() + 1) % cluster;
  if constexpr (fault == Fault::shared_variable) {
    __shared__ float variable;
    variable = 0;
  }
  if constexpr (fault != Fault::no_barrier_before && fault != Fault::waits_without_arriving)
    cluster_arrive();
  if constexpr (fault != Fault::no_barrier_before) cluster_wait();
  map_shared_rank(received, next)[threadIdx.x] =
      static_cast<float>(blockIdx.x * threads + threadIdx.x);
  if constexpr (fault == Fault::barrier_of_the_block_alone)
    __syncthreads();
  else
    cluster_sync();
  if (threadIdx.x == 0) sums[blockIdx.x] = std::accumulate(received, received + threads, 0.0F);
}

template <Fault fault>
std::string write_outcome() {
  std::vector<float> sums(cluster * clusters);
  try {
    launch(write_to_next<fault>, {cluster * clusters, threads, threads * sizeof(float), cluster},
           sums.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  for (unsigned block = 0; block < cluster * clusters; ++block) {
    const unsigned writer = block / cluster * cluster + (block + cluster - 1) % cluster;
    const float expected = static_cast<float>(writer * threads * threads + threads * 31 / 2);
    if (sums[block] != expected) return "wrong sum";
  }
  return "";
}

TEST(Cluster, BlocksWriteEachOthersMemory) {
  EXPECT_EQ(in_many_orders(write_outcome<Fault::none>), "");
}

TEST(Cluster, DetectsAccessToABlockThatMayNotHaveStarted) {
  EXPECT_TRUE(says(in_many_orders(write_outcome<Fault::no_barrier_before>), {"has not started"}));
}

TEST(Cluster, DetectsABlockBarrierInPlaceOfAClusterBarrier) {
  EXPECT_FALSE(in_many_orders(write_outcome<Fault::barrier_of_the_block_alone>).empty());
}

__global__ void one_block_does_not_arrive() {
  if (cluster_rank() != 2) cluster_sync();
}

TEST(Cluster, RejectsABarrierThatOneBlockNeverReaches) {
  try {
    launch(one_block_does_not_arrive, {cluster, threads, 0, cluster});
    FAIL() << "the blocks passed";
  } catch (const std::exception& error) {
    EXPECT_TRUE(
        says(error.what(), {"waits forever", "the barrier of its cluster", "cluster_test.cpp"}));
  }
}

TEST(Cluster, RejectsAWaitWithoutAnArrival) {
  EXPECT_TRUE(says(write_outcome<Fault::waits_without_arriving>(), {"without having arrived"}));
}

TEST(Cluster, RejectsSharedVariables) {
  EXPECT_TRUE(says(write_outcome<Fault::shared_variable>(), {"__shared__ variables"}));
}

// Each block reads the memory of the next one; the last barrier keeps that memory alive.
template <Fault fault>
__global__ void read_from_next(float* values) {
  auto* const own = dynamic_shared<float>();  // [threads]
  own[threadIdx.x] = static_cast<float>(blockIdx.x);
  cluster_sync();
  const unsigned next = (cluster_rank() + 1) % cluster;
  values[blockIdx.x * threads + threadIdx.x] = map_shared_rank(own, next)[threadIdx.x];
  if constexpr (fault != Fault::no_barrier_after) cluster_sync();
}

template <Fault fault>
std::string read_outcome() {
  std::vector<float> values(cluster * clusters * threads);
  try {
    launch(read_from_next<fault>, {cluster * clusters, threads, threads * sizeof(float), cluster},
           values.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  for (unsigned i = 0; i < values.size(); ++i) {
    const unsigned block = i / threads;
    const unsigned next = block / cluster * cluster + (block + 1) % cluster;
    if (values[i] != static_cast<float>(next)) return "wrong value";
  }
  return "";
}

TEST(Cluster, DetectsABlockThatEndsWhileOthersReadItsMemory) {
  EXPECT_EQ(in_many_orders(read_outcome<Fault::none>), "");
  EXPECT_TRUE(says(in_many_orders(read_outcome<Fault::no_barrier_after>), {"which has ended"}));
}

__global__ void does_nothing() {}

TEST(Cluster, RejectsGridsThatAreNotWholeClusters) {
  EXPECT_NO_THROW(launch(does_nothing, {8, 32, 0, 4}));
  EXPECT_THROW(launch(does_nothing, {6, 32, 0, 4}), std::runtime_error);
  EXPECT_THROW(launch(does_nothing, {16, 32, 0, 16}), std::runtime_error);
}

__global__ void record_ranks(unsigned* ranks) { ranks[blockIdx.x] = cluster_rank(); }

TEST(Cluster, ConsecutiveBlocksFormAClusterAndOneBlockMayBeACluster) {
  for (const unsigned size : {1U, 2U, 4U}) {
    std::vector<unsigned> ranks(8);
    launch(record_ranks, {8, 1, 0, size}, ranks.data());
    for (unsigned block = 0; block < 8; ++block) EXPECT_EQ(ranks[block], block % size);
  }
}

// --- multicast -----------------------------------------------------------------------------------

enum class BoxFault {
  none,
  no_barrier_before,
  no_barrier_after,
  mask_without_a_block,
  mask_with_a_block_too_many,
  overwrites_what_others_read,
};

constexpr int box_rows = 8, rounds = 3;

struct Shared {
  float boxes[2][box_rows * swizzled_row];
  Barrier full, empty;
};

// matrix: [rounds · 2 · 8, 32], sums: [2]. In each round, each block of a cluster of two loads one
// box into both blocks; both blocks sum both boxes.
template <BoxFault fault>
__global__ void share_boxes(TensorMap map, float* sums) {
  auto& shared = *dynamic_shared<Shared>();
  const unsigned rank = cluster_rank();
  constexpr bool too_early = fault == BoxFault::overwrites_what_others_read;
  if (threadIdx.x == 0) {
    shared.full.initialise(1);
    shared.empty.initialise(too_early ? 1 : 2);
    fence_barrier_init();
  }
  if constexpr (fault == BoxFault::no_barrier_before)
    __syncthreads();
  else
    cluster_sync();

  if (threadIdx.x == 0) {
    constexpr unsigned mask = fault == BoxFault::mask_without_a_block         ? 0b01
                              : fault == BoxFault::mask_with_a_block_too_many ? 0b111
                                                                              : 0b11;
    for (unsigned round = 0; round < rounds; ++round) {
      shared.empty.wait(round % 2 ^ 1U);
      shared.full.arrive_and_expect_tx(sizeof shared.boxes);
      load_box_multicast(mask, shared.boxes[rank], map,
                         static_cast<int>(round * 2 + rank) * box_rows, 0, shared.full);
    }
  } else if (threadIdx.x == 1) {
    float sum = 0;
    for (unsigned round = 0; round < rounds; ++round) {
      shared.full.wait(round % 2);
      for (const auto& box : shared.boxes) sum += std::accumulate(box, box + 256, 0.0F);
      if constexpr (too_early)
        shared.empty.arrive();
      else
        for (unsigned block = 0; block < 2; ++block) shared.empty.arrive_at(block);
    }
    sums[blockIdx.x] = sum;
  }
  if constexpr (fault != BoxFault::no_barrier_after) cluster_sync();
}

template <BoxFault fault>
std::string multicast_outcome() {
  std::vector<float> matrix(std::size_t{rounds} * 2 * box_rows * swizzled_row), sums(2);
  std::iota(matrix.begin(), matrix.end(), 1.0F);
  const float expected = std::accumulate(matrix.begin(), matrix.end(), 0.0F);
  try {
    launch(share_boxes<fault>, {2, 2, sizeof(Shared), 2},
           tensor_map(matrix.data(), rounds * 2 * box_rows, swizzled_row, swizzled_row, box_rows,
                      TmaRounding::none),
           sums.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  return sums[0] == expected && sums[1] == expected ? "" : "wrong sum";
}

TEST(Cluster, MulticastWritesToAllBlocksOfTheMask) {
  EXPECT_EQ(in_many_orders(multicast_outcome<BoxFault::none>), "");
}

TEST(Cluster, DetectsMulticastToUninitialisedBarriers) {
  EXPECT_FALSE(in_many_orders(multicast_outcome<BoxFault::no_barrier_before>).empty());
}

TEST(Cluster, DetectsABlockThatEndsWhileAnotherWritesToItOrArrives) {
  EXPECT_TRUE(
      says(in_many_orders(multicast_outcome<BoxFault::no_barrier_after>), {"which has ended"}));
}

TEST(Cluster, DetectsAWrongMask) {
  EXPECT_TRUE(
      says(multicast_outcome<BoxFault::mask_without_a_block>(), {"waits forever", "mbarrier"}));
  EXPECT_TRUE(says(multicast_outcome<BoxFault::mask_with_a_block_too_many>(),
                   {"block 2 of a cluster of 2"}));
}

TEST(Cluster, DetectsABoxThatIsOverwrittenWhileTheOtherBlockReadsIt) {
  EXPECT_FALSE(in_many_orders(multicast_outcome<BoxFault::overwrites_what_others_read>).empty());
}

}  // namespace
}  // namespace stepladder
