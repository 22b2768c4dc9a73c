// One work-item per element of the result. The gradients gather, so that no two work-items write
// the same element.
kernel void forward(Geometry g, global const float* x, global const float* w, global float* y) {
  const int t = get_global_id(0);
  if (t >= g.batch * g.out_channels * g.out_height * g.out_width) return;
  const int q = t % g.out_width, p = t / g.out_width % g.out_height;
  const int o = t / (g.out_width * g.out_height) % g.out_channels;
  const int n = t / (g.out_width * g.out_height * g.out_channels);
  float sum = 0;
  for (int i = 0; i < g.group_in; ++i)
    for (int r = 0; r < g.kernel_h; ++r)
      for (int s = 0; s < g.kernel_w; ++s) {
        const int row = p * g.stride_h - g.pad_h + r, column = q * g.stride_w - g.pad_w + s;
        if (!is_inside(row, g.height) || !is_inside(column, g.width)) continue;
        const int channel = o / g.group_out * g.group_in + i;
        sum += x[((n * g.channels + channel) * g.height + row) * g.width + column] *
               w[((o * g.group_in + i) * g.kernel_h + r) * g.kernel_w + s];
      }
  y[t] = sum;
}

kernel void backward_data(Geometry g, global float* dx, global const float* w,
                          global const float* dy) {
  const int t = get_global_id(0);
  if (t >= g.batch * g.channels * g.height * g.width) return;
  const int column = t % g.width, row = t / g.width % g.height;
  const int channel = t / (g.width * g.height) % g.channels;
  const int n = t / (g.width * g.height * g.channels);
  const int first = channel / g.group_in * g.group_out, i = channel % g.group_in;
  float sum = 0;
  for (int r = 0; r < g.kernel_h; ++r)
    for (int s = 0; s < g.kernel_w; ++s) {
      const int down = row + g.pad_h - r, right = column + g.pad_w - s;
      if (down < 0 || right < 0 || down % g.stride_h != 0 || right % g.stride_w != 0) continue;
      const int p = down / g.stride_h, q = right / g.stride_w;
      if (p >= g.out_height || q >= g.out_width) continue;
      for (int o = first; o < first + g.group_out; ++o)
        sum += dy[((n * g.out_channels + o) * g.out_height + p) * g.out_width + q] *
               w[((o * g.group_in + i) * g.kernel_h + r) * g.kernel_w + s];
    }
  dx[t] = sum;
}

kernel void backward_weights(Geometry g, global const float* x, global float* dw,
                             global const float* dy) {
  const int t = get_global_id(0);
  if (t >= g.out_channels * g.group_in * g.kernel_h * g.kernel_w) return;
  const int s = t % g.kernel_w, r = t / g.kernel_w % g.kernel_h;
  const int i = t / (g.kernel_w * g.kernel_h) % g.group_in;
  const int o = t / (g.kernel_w * g.kernel_h * g.group_in);
  const int channel = o / g.group_out * g.group_in + i;
  float sum = 0;
  for (int n = 0; n < g.batch; ++n)
    for (int p = 0; p < g.out_height; ++p)
      for (int q = 0; q < g.out_width; ++q) {
        const int row = p * g.stride_h - g.pad_h + r, column = q * g.stride_w - g.pad_w + s;
        if (!is_inside(row, g.height) || !is_inside(column, g.width)) continue;
        sum += x[((n * g.channels + channel) * g.height + row) * g.width + column] *
               dy[((n * g.out_channels + o) * g.out_height + p) * g.out_width + q];
      }
  dw[t] = sum;
}
