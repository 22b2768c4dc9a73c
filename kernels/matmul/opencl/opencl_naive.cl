// One work-item per element of C.
kernel void multiply(int m, int n, int k, global const float* a, global const float* b,
                     global float* c) {
  const int j = get_global_id(0), i = get_global_id(1);
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int l = 0; l < k; ++l) sum += a_at(a, m, k, i, l) * b_at(b, k, n, l, j);
  c[i * n + j] = sum;
}
