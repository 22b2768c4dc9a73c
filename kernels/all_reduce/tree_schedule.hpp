// The two trees of double_binary_tree. In an in-order tree over positions 1 … p a position is as
// high above the leaves as its lowest set bit: odd positions are leaves, even ones inner nodes.
//
//                 4
//          2             6              p = 7
//       1     3       5     7
//
// Tree 0 has rank r at position r + 1. Tree 1 moves every rank that is an inner node there to an
// odd position: it mirrors the tree for an even p, and shifts it by one for an odd p. So every rank
// is an inner node in at most one tree (Sanders, Speck and Traeff, Two-tree algorithms for full
// bandwidth broadcast, reduction and scan, 2009).
#pragma once

#include <array>
#include <bit>

namespace stepladder::all_reduce {

inline constexpr int no_rank = -1;

struct TreeNode {
  int parent;                   // no_rank at the root
  std::array<int, 2> children;  // no_rank if missing; a leaf has none, and a node without the first
                                // child lacks the second
};

// Positions for ranks. The children of position i are i - b/2 and i + b/2; b is the lowest set bit
// of i. If the latter is above p, the right child is the root of the positions i + 1 … p.
inline TreeNode in_order_node(int position, int p) {
  const int bit = position & -position;
  TreeNode node{no_rank, {no_rank, no_rank}};
  if (bit > 1) {
    node.children[0] = position - bit / 2;
    int right = bit / 2;
    while (right > 0 && position + right > p) right /= 2;
    if (right > 0) node.children[1] = position + right;
  }
  const int parent = (position ^ bit) | (bit << 1);
  if (parent <= p)
    node.parent = parent;
  else if (position != bit)  // the parent is missing: its own parent
    node.parent = position ^ bit;
  return node;
}

// The neighbours of a rank in tree 0 or 1 over `ranks` ranks.
inline TreeNode tree_node(int tree, int rank, int ranks) {
  const bool even = ranks % 2 == 0;
  const auto position = [&] {
    if (tree == 0) return rank + 1;
    return even ? ranks - rank : (rank == 0 ? ranks : rank);
  };
  const auto rank_at = [&](int at) {
    if (at == no_rank) return no_rank;
    if (tree == 0) return at - 1;
    return even ? ranks - at : at % ranks;
  };
  const TreeNode node = in_order_node(position(), ranks);
  return {rank_at(node.parent), {rank_at(node.children[0]), rank_at(node.children[1])}};
}

// Edges between the root and the deepest leaf: log2 p, rounded down.
inline int tree_depth(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }

}  // namespace stepladder::all_reduce
