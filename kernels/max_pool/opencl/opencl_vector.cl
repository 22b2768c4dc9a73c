// A work-item computes 8 neighbouring windows of a row. Position (r, s) of them is 8 elements of a
// row of x: neighbours with a stride of 1, every other one of 16 with a stride of 2.
float8 load(global const float* line, int column, int stride, int width) {
  if (stride == 1 && column >= 0 && column + 8 <= width) return vload8(0, line + column);
  if (stride == 2 && column >= 0 && column + 16 <= width) return vload16(0, line + column).even;
  float values[8];
  for (int e = 0; e < 8; ++e) {
    const int at = column + e * stride;
    values[e] = is_inside(at, width) ? line[at] : -INFINITY;
  }
  return vload8(0, values);
}

kernel void forward(Geometry g, global const float* x, global float* y, global uchar* argmax) {
  const int vectors = (g.out_width + 7) / 8;  // of a row
  const int t = get_global_id(0);
  if (t >= g.planes * g.out_height * vectors) return;
  const int j = t % vectors * 8, i = t / vectors % g.out_height;
  const int plane = t / (vectors * g.out_height);
  float8 best = -INFINITY;
  // The first inside the plane: there may be no number that is larger than -infinity.
  const int8 columns = (int8)(j) + (int8)(0, 1, 2, 3, 4, 5, 6, 7);
  int8 position = max(0, g.pad_h - i * g.stride_h) * g.window_w +
                  max((int8)(0), g.pad_w - columns * g.stride_w);
  for (int r = 0; r < g.window_h; ++r) {
    const int row = i * g.stride_h - g.pad_h + r;
    if (!is_inside(row, g.height)) continue;
    global const float* line = x + (plane * g.height + row) * g.width;
    for (int s = 0; s < g.window_w; ++s) {
      const float8 value = load(line, j * g.stride_w - g.pad_w + s, g.stride_w, g.width);
      const int8 is_larger = value > best;
      best = select(best, value, is_larger);
      position = select(position, (int8)(r * g.window_w + s), is_larger);
    }
  }
  const int first = (plane * g.out_height + i) * g.out_width + j;
  const uchar8 positions = convert_uchar8(position);
  if (j + 8 <= g.out_width) {
    vstore8(best, 0, y + first);
    vstore8(positions, 0, argmax + first);
  } else {
    float values[8];
    uchar places[8];
    vstore8(best, 0, values);
    vstore8(positions, 0, places);
    for (int e = 0; j + e < g.out_width; ++e) {
      y[first + e] = values[e];
      argmax[first + e] = places[e];
    }
  }
}
