kernel ONE_ITEM WHOLE_VECTORS void multiply(int m, int n, int k, global const float* restrict a,
                                            global const float* restrict b,
                                            global float* restrict c) {
  const int row = get_group_id(0) * ROWS, column = get_group_id(1) * COLUMNS;
  const bool in_place = !TRANSPOSE_B && column + COLUMNS <= n;
  VECTOR sums[ROWS][VECTORS];
  clear_tile(sums);
  for (int l = 0; l < k; ++l) {
    float of_a[ROWS];
    VECTOR of_b[VECTORS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) of_a[r] = a_at(a, m, k, min(row + r, m - 1), l);
    if (in_place) {
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) of_b[v] = LOAD(v, b + l * n + column);
    } else {
      float elements[COLUMNS];
      for (int j = 0; j < COLUMNS; ++j)
        elements[j] = column + j < n ? b_at(b, k, n, l, column + j) : 0;
#pragma unroll
      for (int v = 0; v < VECTORS; ++v) of_b[v] = LOAD(v, elements);
    }
    add_products(sums, of_a, of_b);
  }
  store_tile(sums, row, column, m, n, c);
}
