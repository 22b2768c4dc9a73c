// One work-item per window forward, per element of dx backward: it gathers the dy of the windows
// whose maximum it was.
kernel void forward(Geometry g, global const float* x, global float* y, global uchar* argmax) {
  const int t = get_global_id(0);
  if (t >= g.planes * g.out_height * g.out_width) return;
  const int j = t % g.out_width, i = t / g.out_width % g.out_height;
  x += t / (g.out_width * g.out_height) * g.height * g.width;
  float best = -INFINITY;
  // The first inside the plane: there may be no number that is larger than -infinity.
  int position = max(0, g.pad_h - i * g.stride_h) * g.window_w + max(0, g.pad_w - j * g.stride_w);
  for (int r = 0; r < g.window_h; ++r)
    for (int s = 0; s < g.window_w; ++s) {
      const int row = i * g.stride_h - g.pad_h + r, column = j * g.stride_w - g.pad_w + s;
      if (!is_inside(row, g.height) || !is_inside(column, g.width)) continue;
      const float value = x[row * g.width + column];
      if (value > best) best = value, position = r * g.window_w + s;
    }
  y[t] = best;
  argmax[t] = position;
}

kernel void backward(Geometry g, global float* dx, global const float* dy,
                     global const uchar* argmax) {
  const int t = get_global_id(0);
  if (t >= g.planes * g.height * g.width) return;
  const int column = t % g.width, row = t / g.width % g.height;
  const int first = t / (g.width * g.height) * g.out_height * g.out_width;
  float sum = 0;
  for (int r = 0; r < g.window_h; ++r)
    for (int s = 0; s < g.window_w; ++s) {
      const int down = row + g.pad_h - r, right = column + g.pad_w - s;
      if (down < 0 || right < 0 || down % g.stride_h != 0 || right % g.stride_w != 0) continue;
      const int i = down / g.stride_h, j = right / g.stride_w;
      if (i >= g.out_height || j >= g.out_width) continue;
      const int window = first + i * g.out_width + j;
      if (argmax[window] == r * g.window_w + s) sum += dy[window];
    }
  dx[t] = sum;
}
