// STEPS: along K, that a work-item packs.

// ROWS rows of op(A), side by side: panels[m / ROWS][k][ROWS]. Rows beyond m are zeros.
kernel ONE_ITEM void pack_a(int m, int k, global const float* a, global float* panels) {
  const int row = get_group_id(1) * ROWS, first = get_group_id(0) * STEPS;
  const int last = min(first + STEPS, k);
  panels += row * k;
  for (int r = 0; r < ROWS; ++r)
    for (int l = first; l < last; ++l)
      panels[l * ROWS + r] = row + r < m ? a_at(a, m, k, row + r, l) : 0;
}

// COLUMNS columns of op(B): panels[n / COLUMNS][k][COLUMNS]. Columns beyond n are zeros.
kernel ONE_ITEM WHOLE_VECTORS void pack_b(int k, int n, global const float* b,
                                          global float* panels) {
  const int column = get_group_id(1) * COLUMNS, first = get_group_id(0) * STEPS;
  const int last = min(first + STEPS, k);
  panels += column * k;
  for (int l = first; l < last; ++l)
    if (!TRANSPOSE_B && column + COLUMNS <= n)
      for (int v = 0; v < VECTORS; ++v) STORE(LOAD(v, b + l * n + column), v, panels + l * COLUMNS);
    else
      for (int j = 0; j < COLUMNS; ++j)
        panels[l * COLUMNS + j] = column + j < n ? b_at(b, k, n, l, column + j) : 0;
}

kernel ONE_ITEM WHOLE_VECTORS void multiply(int m, int n, int k, global const float* restrict a,
                                            global const float* restrict b,
                                            global float* restrict c) {
  const int row = get_group_id(0) * ROWS, column = get_group_id(1) * COLUMNS;
  a += row * k;
  b += column * k;
  VECTOR sums[ROWS][VECTORS];
  clear_tile(sums);
  for (int l = 0; l < k; ++l, a += ROWS, b += COLUMNS) {
    float of_a[ROWS];
    VECTOR of_b[VECTORS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) of_a[r] = a[r];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) of_b[v] = LOAD(v, b);
    add_products(sums, of_a, of_b);
  }
  store_tile(sums, row, column, m, n, c);
}
