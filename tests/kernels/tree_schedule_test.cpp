// The two trees of double_binary_tree: both span all ranks, and every rank has the work of one
// inner node.
#include "kernels/all_reduce/tree_schedule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stepladder::all_reduce {
namespace {

constexpr int most_ranks = 1100;

bool is_inner(const TreeNode& node) {
  return node.children[0] != no_rank || node.children[1] != no_rank;
}

TEST(TreeSchedule, BothAreTreesOverAllRanks) {
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (int tree : {0, 1}) {
      std::vector<int> visits(static_cast<std::size_t>(ranks), 0);
      std::vector<int> level;
      for (int rank = 0; rank < ranks; ++rank)
        if (tree_node(tree, rank, ranks).parent == no_rank) level.push_back(rank);
      ASSERT_EQ(level.size(), 1u) << "one root of tree " << tree << " of " << ranks;
      int depth = -1;
      for (; !level.empty(); ++depth) {
        std::vector<int> below;
        for (int rank : level) {
          ++visits[static_cast<std::size_t>(rank)];
          const TreeNode node = tree_node(tree, rank, ranks);
          ASSERT_TRUE(node.children[0] != no_rank || node.children[1] == no_rank);
          for (int child : node.children) {
            if (child == no_rank) continue;
            ASSERT_GE(child, 0);
            ASSERT_LT(child, ranks);
            ASSERT_EQ(tree_node(tree, child, ranks).parent, rank) << tree << " of " << ranks;
            below.push_back(child);
          }
        }
        ASSERT_LE(below.size(), static_cast<std::size_t>(ranks)) << "no cycle";
        level = below;
      }
      for (int rank = 0; rank < ranks; ++rank)
        ASSERT_EQ(visits[static_cast<std::size_t>(rank)], 1) << rank << " of " << ranks;
      ASSERT_EQ(depth, tree_depth(ranks)) << ranks;
    }
}

TEST(TreeSchedule, EveryRankIsAnInnerNodeOfOneTreeAtMost) {
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (int rank = 0; rank < ranks; ++rank)
      ASSERT_FALSE(is_inner(tree_node(0, rank, ranks)) && is_inner(tree_node(1, rank, ranks)))
          << rank << " of " << ranks;
}

TEST(TreeSchedule, SevenRanksFormAPerfectTree) {
  const std::vector<int> parents{1, 3, 1, no_rank, 5, 3, 5};
  for (int rank = 0; rank < 7; ++rank) {
    EXPECT_EQ(tree_node(0, rank, 7).parent, parents[static_cast<std::size_t>(rank)]);
    const int shifted = parents[static_cast<std::size_t>((rank + 6) % 7)];
    EXPECT_EQ(tree_node(1, rank, 7).parent, shifted == no_rank ? no_rank : (shifted + 1) % 7);
  }
}

}  // namespace
}  // namespace stepladder::all_reduce
