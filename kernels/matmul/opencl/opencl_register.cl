// A work-group computes a tile of C from tiles of op(A) and op(B) in local memory, with the macros
// of register_tile.cl.
kernel __attribute__((reqd_work_group_size(LOCAL_X, LOCAL_Y, 1))) void multiply(
    int m, int n, int k, global const float* a, global const float* b, global float* c) {
  local float a_tile[STEP][TILE_M];  // [l, i]
  local float b_tile[STEP][TILE_N];  // [l, j]
  const int x = get_local_id(0), y = get_local_id(1), item = y * LOCAL_X + x;
  const int row = get_group_id(1) * TILE_M, column = get_group_id(0) * TILE_N;

  VECTOR kept[ROWS];
  for (int r = 0; r < ROWS; ++r) kept[r] = 0;
  for (int first = 0; first < k; first += STEP) {
    // Neighbouring work-items read neighbours in memory.
    for (int e = item; e < STEP * TILE_M; e += ITEMS) {
      const int i = TRANSPOSE_A ? e % TILE_M : e / STEP, l = TRANSPOSE_A ? e / TILE_M : e % STEP;
      a_tile[l][i] = row + i < m && first + l < k ? a_at(a, m, k, row + i, first + l) : 0;
    }
    for (int e = item; e < STEP * TILE_N; e += ITEMS) {
      const int j = TRANSPOSE_B ? e / STEP : e % TILE_N, l = TRANSPOSE_B ? e % STEP : e / TILE_N;
      b_tile[l][j] = column + j < n && first + l < k ? b_at(b, k, n, first + l, column + j) : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // A compiler for CPUs keeps what lives across a barrier in memory: the sums are in registers
    // between two barriers.
    VECTOR sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = kept[r];
    for (int l = 0; l < STEP; ++l) {
      const VECTOR v = LOAD(x, b_tile[l]);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) sums[r] += a_tile[l][y * ROWS + r] * v;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) kept[r] = sums[r];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const int j = column + x * WIDTH;
  for (int r = 0; r < ROWS; ++r) {
    const int i = row + y * ROWS + r;
    if (i >= m || j >= n) continue;
    if (j + WIDTH <= n) {
      STORE(kept[r], 0, c + i * n + j);
    } else {
      float last[WIDTH];
      STORE(kept[r], 0, last);
      for (int e = 0; j + e < n; ++e) c[i * n + j + e] = last[e];
    }
  }
}
