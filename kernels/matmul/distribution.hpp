// Which blocks of A, B and C a rank has, in problems of several ranks. Every element belongs to
// exactly one rank. Blocks are those of the matrices as they are stored; part r of p of a dimension
// is partition(size, p, r) (kernels/common/cpu/partition.hpp), empty where there are more parts
// than elements.
//
//   by rows       rank r has part r of the rows of op(A) and C, and of the rows of the stored B
//   by a grid     rank i · q + j of p x q has, where M is divided in p parts and N in q,
//                 op(A) [M part i, K part j of q], op(B) [K part i of p, N part j],
//                 C [M part i, N part j]
#pragma once

#include "kernels/common/cpu/partition.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {

struct Block {
  Range rows, columns;
};

struct Blocks {
  Block a, b, c;
};

// p x q, the most square factorisation of the number of ranks; the larger factor divides the larger
// of m and n.
struct GridShape {
  int rows, columns;
};
GridShape grid_shape(const Problem& problem);

Blocks blocks_by_rows(const Problem& problem, int rank);
Blocks blocks_by_grid(const Problem& problem, int rank);
// The blocks of a variant with .over_ranks.
Blocks blocks_of(const Problem& problem, const VariantInfo& info, int rank);

}  // namespace stepladder::matmul
