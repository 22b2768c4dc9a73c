// A convolution in NCHW; plan.cpp passes it.
typedef struct {
  int batch, channels, height, width;
  int out_channels, out_height, out_width;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int group_in, group_out;
} Geometry;

int is_inside(int at, int size) { return at >= 0 && at < size; }
