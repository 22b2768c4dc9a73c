// Forward as a matrix product: y[o, pixel] = sum over l = (i, r, s) of w[o, l] · patch[l, pixel],
// of which a work-group of TILE x TILE work-items computes a tile. The patches are gathered into
// local memory; the matrix of all of them exists nowhere.
kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void forward(Geometry g,
                                                                         global const float* x,
                                                                         global const float* w,
                                                                         global float* y) {
  local float w_tile[TILE][TILE];      // [o, l]
  local float patch_tile[TILE][TILE];  // [l, pixel]
  const int column = get_local_id(0), row = get_local_id(1);
  const int taps = g.kernel_h * g.kernel_w, length = g.group_in * taps;
  const int tiles = (g.group_out + TILE - 1) / TILE, group = get_group_id(1) / tiles;
  const int o = get_group_id(1) % tiles * TILE + row;  // within the group
  const int plane = g.out_height * g.out_width;
  const int pixel = get_group_id(0) * TILE + column, pixels = g.batch * plane;
  const int n = pixel / plane, p = pixel % plane / g.out_width, q = pixel % plane % g.out_width;
  x += (n * g.channels + group * g.group_in) * g.height * g.width;
  w += (group * g.group_out + o) * length;

  float sum = 0;
  for (int first = 0; first < length; first += TILE) {
    w_tile[row][column] = o < g.group_out && first + column < length ? w[first + column] : 0;
    const int l = first + row, i = l / taps, r = l % taps / g.kernel_w, s = l % taps % g.kernel_w;
    const int h = p * g.stride_h - g.pad_h + r, v = q * g.stride_w - g.pad_w + s;
    const int exists =
        pixel < pixels && l < length && is_inside(h, g.height) && is_inside(v, g.width);
    patch_tile[row][column] = exists ? x[(i * g.height + h) * g.width + v] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < TILE; ++e) sum += w_tile[row][e] * patch_tile[e][column];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (o < g.group_out && pixel < pixels)
    y[(n * g.out_channels + group * g.group_out + o) * plane + pixel % plane] = sum;
}
