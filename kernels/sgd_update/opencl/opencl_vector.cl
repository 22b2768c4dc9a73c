// A work-item updates 8 weights with float8; the last one, those that are left.
float8 load(global const float* from, int lanes) {
  if (lanes == 8) return vload8(0, from);
  float values[8] = {0};
  for (int e = 0; e < lanes; ++e) values[e] = from[e];
  return vload8(0, values);
}

void store(float8 numbers, int lanes, global float* to) {
  if (lanes == 8) {
    vstore8(numbers, 0, to);
    return;
  }
  float values[8];
  vstore8(numbers, 0, values);
  for (int e = 0; e < lanes; ++e) to[e] = values[e];
}

kernel void update(int count, Constants c, global float* weights, global const float* gradient,
                   global float* state1, global float* state2) {
  const int i = get_global_id(0) * 8, lanes = min(count - i, 8);
  if (lanes <= 0) return;
  float8 weight = load(weights + i, lanes), s1 = 0, s2 = 0;
  if (HAS_STATE1) s1 = load(state1 + i, lanes);
  if (HAS_STATE2) s2 = load(state2 + i, lanes);
  update_number(c, &weight, load(gradient + i, lanes), &s1, &s2);
  store(weight, lanes, weights + i);
  if (HAS_STATE1) store(s1, lanes, state1 + i);
  if (HAS_STATE2) store(s2, lanes, state2 + i);
}
