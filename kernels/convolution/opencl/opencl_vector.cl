// A work-item computes 8 neighbours of a row of y. With a stride of 1 they read 8 neighbours of x.
float8 load(global const float* line, int column, int stride, int width) {
  if (stride == 1 && column >= 0 && column + 8 <= width) return vload8(0, line + column);
  float values[8];
  for (int e = 0; e < 8; ++e) {
    const int at = column + e * stride;
    values[e] = is_inside(at, width) ? line[at] : 0;
  }
  return vload8(0, values);
}

kernel void forward(Geometry g, global const float* x, global const float* w, global float* y) {
  const int vectors = (g.out_width + 7) / 8;  // of a row
  const int t = get_global_id(0);
  if (t >= g.batch * g.out_channels * g.out_height * vectors) return;
  const int q = t % vectors * 8, p = t / vectors % g.out_height;
  const int o = t / (vectors * g.out_height) % g.out_channels;
  const int n = t / (vectors * g.out_height * g.out_channels);
  float8 sums = 0;
  for (int i = 0; i < g.group_in; ++i)
    for (int r = 0; r < g.kernel_h; ++r) {
      const int row = p * g.stride_h - g.pad_h + r;
      if (!is_inside(row, g.height)) continue;
      const int channel = o / g.group_out * g.group_in + i;
      global const float* line = x + ((n * g.channels + channel) * g.height + row) * g.width;
      for (int s = 0; s < g.kernel_w; ++s)
        sums += w[((o * g.group_in + i) * g.kernel_h + r) * g.kernel_w + s] *
                load(line, q * g.stride_w - g.pad_w + s, g.stride_w, g.width);
    }
  y += ((n * g.out_channels + o) * g.out_height + p) * g.out_width + q;
  if (q + 8 <= g.out_width) {
    vstore8(sums, 0, y);
  } else {
    float last[8];
    vstore8(sums, 0, last);
    for (int e = 0; q + e < g.out_width; ++e) y[e] = last[e];
  }
}
