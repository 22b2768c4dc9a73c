// As opencl_local.cl, with the macros of register_tile.cl: a work-item has ROWS output channels and
// WIDTH pixels.
kernel __attribute__((reqd_work_group_size(LOCAL_X, LOCAL_Y, 1))) void forward(
    Geometry g, global const float* x, global const float* w, global float* y) {
  local float w_tile[STEP][TILE_M];                   // [l, o]
  local float patch_tile[STEP][TILE_N];               // [l, pixel]
  local int base[TILE_N], top[TILE_N], left[TILE_N];  // of each pixel: its image, its patch
  const int column = get_local_id(0), row = get_local_id(1), item = row * LOCAL_X + column;
  const int taps = g.kernel_h * g.kernel_w, length = g.group_in * taps;
  const int tiles = (g.group_out + TILE_M - 1) / TILE_M, group = get_group_id(1) / tiles;
  const int first_o = get_group_id(1) % tiles * TILE_M;  // within the group
  const int first_pixel = get_group_id(0) * TILE_N;
  const int plane = g.out_height * g.out_width, pixels = g.batch * plane;
  w += group * g.group_out * length;

  for (int j = item; j < TILE_N; j += ITEMS) {
    const int pixel = first_pixel + j, n = pixel / plane;
    const int p = pixel % plane / g.out_width, q = pixel % plane % g.out_width;
    base[j] = (n * g.channels + group * g.group_in) * g.height * g.width;
    top[j] = pixel < pixels ? p * g.stride_h - g.pad_h : g.height;  // no row of it is inside
    left[j] = q * g.stride_w - g.pad_w;
  }
  VECTOR kept[ROWS];
  for (int r = 0; r < ROWS; ++r) kept[r] = 0;
  for (int first = 0; first < length; first += STEP) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < STEP * TILE_M; e += ITEMS) {
      const int l = e % STEP, o = e / STEP;
      w_tile[l][o] = first_o + o < g.group_out && first + l < length
                         ? w[(first_o + o) * length + first + l]
                         : 0;
    }
    for (int e = item; e < STEP * TILE_N; e += ITEMS) {
      const int j = e % TILE_N, l = first + e / TILE_N;
      const int i = l / taps, h = top[j] + l % taps / g.kernel_w;
      const int v = left[j] + l % taps % g.kernel_w;
      const int exists = l < length && is_inside(h, g.height) && is_inside(v, g.width);
      patch_tile[e / TILE_N][j] = exists ? x[base[j] + (i * g.height + h) * g.width + v] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // As in the matmul rung: between two barriers the sums are in registers on a CPU too.
    VECTOR sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sums[r] = kept[r];
    for (int l = 0; l < STEP; ++l) {
      const VECTOR v = LOAD(column, patch_tile[l]);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) sums[r] += w_tile[l][row * ROWS + r] * v;
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) kept[r] = sums[r];
  }

  for (int r = 0; r < ROWS; ++r) {
    const int o = first_o + row * ROWS + r;
    if (o >= g.group_out) continue;
    float values[WIDTH];
    STORE(kept[r], 0, values);
    for (int e = 0; e < WIDTH; ++e) {
      const int pixel = first_pixel + column * WIDTH + e;
      if (pixel < pixels)
        y[(pixel / plane * g.out_channels + group * g.group_out + o) * plane + pixel % plane] =
            values[e];
    }
  }
}
