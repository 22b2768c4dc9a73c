// Of kernels for CPUs, in which a work-group is one work-item, which computes a tile of C of ROWS x
// COLUMNS elements in registers, with the macros of register_tile.cl. Group (i, j) has the tile of
// rows i · ROWS … and columns j · COLUMNS …
#define COLUMNS (VECTORS * WIDTH)
#define ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))

// Without it, compilers for CPUs of 512 bits may divide each vector into two of 256, and then lack
// registers.
#if defined(__has_attribute)
#if __has_attribute(min_vector_width)
#define WHOLE_VECTORS __attribute__((min_vector_width(32 * WIDTH)))
#endif
#endif
#ifndef WHOLE_VECTORS
#define WHOLE_VECTORS
#endif

void clear_tile(VECTOR sums[ROWS][VECTORS]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) sums[r][v] = 0;
}

// A column of op(A) and a row of op(B).
void add_products(VECTOR sums[ROWS][VECTORS], const float a[ROWS], const VECTOR b[VECTORS]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) sums[r][v] = fma((VECTOR)(a[r]), b[v], sums[r][v]);
}

void store_tile(const VECTOR sums[ROWS][VECTORS], int row, int column, int m, int n,
                global float* c) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (row + r >= m) continue;
    global float* to = c + (row + r) * n + column;
    float last[COLUMNS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v)
      if (column + COLUMNS <= n)
        STORE(sums[r][v], v, to);
      else
        STORE(sums[r][v], v, last);
    if (column + COLUMNS > n)
      for (int j = 0; column + j < n; ++j) to[j] = last[j];
  }
}
