// Pooling in NCHW; plan.cpp passes it. A plane is a channel of an image.
typedef struct {
  int planes, height, width, out_height, out_width;
  int window_h, window_w, stride_h, stride_w, pad_h, pad_w;
} Geometry;

int is_inside(int at, int size) { return at >= 0 && at < size; }
