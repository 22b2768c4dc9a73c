// A work-group of TILE x TILE work-items computes a tile of C, from tiles of op(A) and op(B) in
// local memory.
kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void multiply(int m, int n, int k,
                                                                          global const float* a,
                                                                          global const float* b,
                                                                          global float* c) {
  local float a_tile[TILE][TILE];  // [i, l]
  local float b_tile[TILE][TILE];  // [l, j]
  const int x = get_local_id(0), y = get_local_id(1);
  const int j = get_global_id(0), i = get_global_id(1);
  float sum = 0;
  for (int first = 0; first < k; first += TILE) {
    a_tile[y][x] = i < m && first + x < k ? a_at(a, m, k, i, first + x) : 0;
    b_tile[y][x] = j < n && first + y < k ? b_at(b, k, n, first + y, j) : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int l = 0; l < TILE; ++l) sum += a_tile[y][l] * b_tile[l][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i < m && j < n) c[i * n + j] = sum;
}
