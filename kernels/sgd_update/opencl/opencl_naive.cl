// One work-item per weight.
kernel void update(int count, Constants c, global float* weights, global const float* gradient,
                   global float* state1, global float* state2) {
  const int i = get_global_id(0);
  if (i >= count) return;
  float weight = weights[i], s1 = HAS_STATE1 ? state1[i] : 0, s2 = HAS_STATE2 ? state2[i] : 0;
  update_number(c, &weight, gradient[i], &s1, &s2);
  weights[i] = weight;
  if (HAS_STATE1) state1[i] = s1;
  if (HAS_STATE2) state2[i] = s2;
}
