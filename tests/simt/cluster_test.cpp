// The emulator runs the blocks of a cluster at once, with barriers, memory and copies in common, and shows
// kernels that break the rules of clusters: each fault here stands beside the kernel without it.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "kernels/common/cuda/barrier.hpp"
#include "kernels/common/cuda/cluster.hpp"
#include "kernels/common/cuda/launch.hpp"
#include "kernels/common/cuda/shared_memory.hpp"
#include "kernels/common/cuda/tma.hpp"
#include "kernels/common/cuda/swizzle.hpp"
#include "tests/error_messages.hpp"
#include "tests/simt/multiprocessor.hpp"

namespace stepladder {
namespace {

constexpr unsigned cluster = 4, clusters = 3, threads = 32;

// What is wrong in one of many orders of threads; empty when all is right in each.
template <class Outcome>
std::string in_many_orders(const Outcome& outcome) {
  for (unsigned long long order = 1; order <= 50; ++order) {
    simt::seed_order(order);
    if (const std::string wrong = outcome(); !wrong.empty()) return wrong;
  }
  return "";
}

// --- barriers and each other's memory ------------------------------------------------------------

enum class Fault {
  none,
  no_barrier_before,
  barrier_of_the_block_alone,
  no_barrier_after,
  waits_without_arriving,
  shared_variable,
};

// Each block tells its neighbour, all of which add what they were told. sums: one for each block
template <Fault fault>
__global__ void tell_the_next(float* sums) {
  auto* const told = dynamic_shared<float>();  // [threads]
  const unsigned next = (cluster_rank() + 1) % cluster;
  if constexpr (fault == Fault::shared_variable) {
    __shared__ float variable;
    variable = 0;
  }
  if constexpr (fault != Fault::no_barrier_before && fault != Fault::waits_without_arriving)
    cluster_arrive();
  if constexpr (fault != Fault::no_barrier_before) cluster_wait();
  shared_of(next, told)[threadIdx.x] = static_cast<float>(blockIdx.x * threads + threadIdx.x);
  if constexpr (fault == Fault::barrier_of_the_block_alone)
    __syncthreads();
  else
    cluster_sync();
  if (threadIdx.x == 0) sums[blockIdx.x] = std::accumulate(told, told + threads, 0.0F);
}

template <Fault fault>
std::string telling() {
  std::vector<float> sums(cluster * clusters);
  try {
    launch(tell_the_next<fault>, {cluster * clusters, threads, threads * sizeof(float), cluster},
           sums.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  for (unsigned block = 0; block < cluster * clusters; ++block) {
    const unsigned teller = block / cluster * cluster + (block + cluster - 1) % cluster;
    const float expected = static_cast<float>(teller * threads * threads + threads * 31 / 2);
    if (sums[block] != expected) return "wrong sum";
  }
  return "";
}

TEST(Cluster, BlocksWriteEachOthersMemory) { EXPECT_EQ(in_many_orders(telling<Fault::none>), ""); }

TEST(Cluster, ShowsThatABlockMayNotHaveBegun) {
  EXPECT_TRUE(says(in_many_orders(telling<Fault::no_barrier_before>), {"has not begun"}));
}

TEST(Cluster, ShowsABarrierOfTheBlockWhereTheClusterHasToWait) {
  EXPECT_FALSE(in_many_orders(telling<Fault::barrier_of_the_block_alone>).empty());
}

__global__ void one_block_stays_away() {
  if (cluster_rank() != 2) cluster_sync();
}

TEST(Cluster, RefusesABarrierThatOneBlockNeverReaches) {
  try {
    launch(one_block_stays_away, {cluster, threads, 0, cluster});
    FAIL() << "the blocks passed";
  } catch (const std::exception& error) {
    EXPECT_TRUE(
        says(error.what(), {"waits for ever", "the barrier of its cluster", "cluster_test.cpp"}));
  }
}

TEST(Cluster, RefusesToWaitWithoutArriving) {
  EXPECT_TRUE(says(telling<Fault::waits_without_arriving>(), {"without having arrived"}));
}

TEST(Cluster, RefusesSharedVariables) {
  EXPECT_TRUE(says(telling<Fault::shared_variable>(), {"__shared__ variables"}));
}

// Each block reads what its neighbour wrote; the last barrier keeps the neighbour's memory alive.
template <Fault fault>
__global__ void ask_the_next(float* answers) {
  auto* const mine = dynamic_shared<float>();  // [threads]
  mine[threadIdx.x] = static_cast<float>(blockIdx.x);
  cluster_sync();
  const unsigned next = (cluster_rank() + 1) % cluster;
  answers[blockIdx.x * threads + threadIdx.x] = shared_of(next, mine)[threadIdx.x];
  if constexpr (fault != Fault::no_barrier_after) cluster_sync();
}

template <Fault fault>
std::string asking() {
  std::vector<float> answers(cluster * clusters * threads);
  try {
    launch(ask_the_next<fault>, {cluster * clusters, threads, threads * sizeof(float), cluster},
           answers.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  for (unsigned i = 0; i < answers.size(); ++i) {
    const unsigned block = i / threads;
    const unsigned next = block / cluster * cluster + (block + 1) % cluster;
    if (answers[i] != static_cast<float>(next)) return "wrong answer";
  }
  return "";
}

TEST(Cluster, ShowsABlockThatEndsWhileOthersReadItsMemory) {
  EXPECT_EQ(in_many_orders(asking<Fault::none>), "");
  EXPECT_TRUE(says(in_many_orders(asking<Fault::no_barrier_after>), {"which has ended"}));
}

__global__ void does_nothing() {}

TEST(Cluster, RefusesGridsThatAreNotWholeClusters) {
  EXPECT_NO_THROW(launch(does_nothing, {8, 32, 0, 4}));
  EXPECT_THROW(launch(does_nothing, {6, 32, 0, 4}), std::runtime_error);
  EXPECT_THROW(launch(does_nothing, {16, 32, 0, 16}), std::runtime_error);
}

__global__ void note_ranks(unsigned* ranks) { ranks[blockIdx.x] = cluster_rank(); }

TEST(Cluster, NeighboursInTheGridFormAClusterAndABlockMayBeOneAlone) {
  for (const unsigned size : {1U, 2U, 4U}) {
    std::vector<unsigned> ranks(8);
    launch(note_ranks, {8, 1, 0, size}, ranks.data());
    for (unsigned block = 0; block < 8; ++block) EXPECT_EQ(ranks[block], block % size);
  }
}

// --- boxes for several blocks --------------------------------------------------------------------

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

// matrix: [rounds · 2 · 8, 32]. Of each round's two boxes either block of a cluster of two brings one to
// both, and both add all there is. sums: [2]
template <BoxFault fault>
__global__ void share_boxes(TensorMap map, float* sums) {
  auto& shared = *dynamic_shared<Shared>();
  const unsigned rank = cluster_rank();
  constexpr bool too_early = fault == BoxFault::overwrites_what_others_read;
  if (threadIdx.x == 0) {
    shared.full.initialise(1);
    shared.empty.initialise(too_early ? 1 : 2);
    publish_barriers();
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
      shared.full.arrive_and_expect(sizeof shared.boxes);
      load_box_for(mask, shared.boxes[rank], map, static_cast<int>(round * 2 + rank) * box_rows, 0,
                   shared.full);
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
std::string sharing() {
  std::vector<float> matrix(std::size_t{rounds} * 2 * box_rows * swizzled_row), sums(2);
  std::iota(matrix.begin(), matrix.end(), 1.0F);
  const float expected = std::accumulate(matrix.begin(), matrix.end(), 0.0F);
  try {
    launch(share_boxes<fault>, {2, 2, sizeof(Shared), 2},
           tensor_map(matrix.data(), rounds * 2 * box_rows, swizzled_row, swizzled_row, box_rows,
                      OnTheWay::unchanged),
           sums.data());
  } catch (const std::exception& error) {
    return error.what();
  }
  return sums[0] == expected && sums[1] == expected ? "" : "wrong sum";
}

TEST(Cluster, ABoxComesToAllBlocksOfTheMask) {
  EXPECT_EQ(in_many_orders(sharing<BoxFault::none>), "");
}

TEST(Cluster, ShowsBoxesSentToBarriersThatAreNotInitialised) {
  EXPECT_FALSE(in_many_orders(sharing<BoxFault::no_barrier_before>).empty());
}

TEST(Cluster, ShowsABlockThatEndsWhileAnotherWritesToItOrArrives) {
  EXPECT_TRUE(says(in_many_orders(sharing<BoxFault::no_barrier_after>), {"which has ended"}));
}

TEST(Cluster, ShowsAWrongMask) {
  EXPECT_TRUE(says(sharing<BoxFault::mask_without_a_block>(), {"waits for ever", "mbarrier"}));
  EXPECT_TRUE(says(sharing<BoxFault::mask_with_a_block_too_many>(), {"block 2 of a cluster of 2"}));
}

TEST(Cluster, ShowsABoxThatIsOverwrittenWhileTheOtherBlockReadsIt) {
  EXPECT_FALSE(in_many_orders(sharing<BoxFault::overwrites_what_others_read>).empty());
}

}  // namespace
}  // namespace stepladder
