#include "kernels/matmul/distribution.hpp"

namespace stepladder::matmul {
namespace {

Block stored(bool transposed, Range rows, Range columns) {
  return transposed ? Block{columns, rows} : Block{rows, columns};
}

}  // namespace

GridShape grid_shape(const Problem& p) {
  int smaller = 1;
  for (int factor = 1; factor * factor <= p.ranks; ++factor)
    if (p.ranks % factor == 0) smaller = factor;
  const int larger = p.ranks / smaller;
  return p.m >= p.n ? GridShape{larger, smaller} : GridShape{smaller, larger};
}

Blocks blocks_by_rows(const Problem& p, int rank) {
  const Range m = partition(p.m, p.ranks, rank), n{0, p.n}, k{0, p.k};
  return {.a = stored(p.transpose_a, m, k),
          .b = p.transpose_b ? Block{partition(p.n, p.ranks, rank), k}
                             : Block{partition(p.k, p.ranks, rank), n},
          .c = {m, n}};
}

Blocks blocks_by_grid(const Problem& p, int rank) {
  const GridShape grid = grid_shape(p);
  const int i = rank / grid.columns, j = rank % grid.columns;
  const Range m = partition(p.m, grid.rows, i), n = partition(p.n, grid.columns, j);
  return {.a = stored(p.transpose_a, m, partition(p.k, grid.columns, j)),
          .b = stored(p.transpose_b, partition(p.k, grid.rows, i), n),
          .c = {m, n}};
}

Blocks blocks_of(const Problem& p, const VariantInfo& info, int rank) {
  return info.grid ? blocks_by_grid(p, rank) : blocks_by_rows(p, rank);
}

}  // namespace stepladder::matmul
