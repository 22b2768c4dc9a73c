// Elements of op(A) [m, k] and op(B) [k, n]; TRANSPOSE_A and TRANSPOSE_B are 0 or 1.
float a_at(global const float* a, int m, int k, int i, int l) {
  return TRANSPOSE_A ? a[l * m + i] : a[i * k + l];
}
float b_at(global const float* b, int k, int n, int l, int j) {
  return TRANSPOSE_B ? b[j * k + l] : b[l * n + j];
}
