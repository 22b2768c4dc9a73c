// A work-item computes 8 neighbours of a row of C. Where the rows of op(B) are contiguous, a float8
// holds 8 columns of a row; where its columns are (TRANSPOSE_B), 8 elements of a column, and of a
// row of op(A).
float8 a_along_k(global const float* a, int m, int k, int i, int l) {
  if (!TRANSPOSE_A) return vload8(0, a + i * k + l);
  a += l * m + i;
  return (float8)(a[0], a[m], a[2 * m], a[3 * m], a[4 * m], a[5 * m], a[6 * m], a[7 * m]);
}

float sum_of(float8 v) {
  const float4 s = v.lo + v.hi;
  return s.x + s.y + s.z + s.w;
}

float element(int m, int n, int k, global const float* a, global const float* b, int i, int j) {
  int l = 0;
  float8 sums = 0;
  if (TRANSPOSE_B)
    for (; l + 8 <= k; l += 8) sums += a_along_k(a, m, k, i, l) * vload8(0, b + j * k + l);
  float sum = sum_of(sums);
  for (; l < k; ++l) sum += a_at(a, m, k, i, l) * b_at(b, k, n, l, j);
  return sum;
}

kernel void multiply(int m, int n, int k, global const float* a, global const float* b,
                     global float* c) {
  const int i = get_global_id(1), first = get_global_id(0) * 8;
  if (i >= m) return;
  if (TRANSPOSE_B || first + 8 > n) {
    for (int j = first; j < min(first + 8, n); ++j) c[i * n + j] = element(m, n, k, a, b, i, j);
    return;
  }
  float8 sums = 0;
  for (int l = 0; l < k; ++l) sums += a_at(a, m, k, i, l) * vload8(0, b + l * n + first);
  vstore8(sums, 0, c + i * n + first);
}
