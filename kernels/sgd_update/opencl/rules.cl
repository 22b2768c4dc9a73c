// The update rules of rules.hpp, in its order of enum Optimizer. NUMBER: float or a vector.
#define SGD 0
#define MOMENTUM 1
#define ADAGRAD 2
#define ADADELTA 3
#define RMSPROP 4
#define ADAM 5
#define HAS_STATE1 (OPTIMIZER != SGD)
#define HAS_STATE2 (OPTIMIZER == ADADELTA || OPTIMIZER == ADAM)

// The same as Constants<float> of rules.hpp, whose bool is a byte.
typedef struct {
  float learning_rate, epsilon, weight_decay, momentum;
  uchar decays;
  float rho, one_minus_rho, beta1, one_minus_beta1, beta2, one_minus_beta2;
} Constants;

void update_number(Constants c, NUMBER* weight, NUMBER gradient, NUMBER* state1, NUMBER* state2) {
  const NUMBER g = c.decays ? gradient + c.weight_decay * *weight : gradient;
#if OPTIMIZER == SGD
  *weight -= c.learning_rate * g;
#elif OPTIMIZER == MOMENTUM
  *state1 = c.momentum * *state1 + g;
  *weight -= c.learning_rate * *state1;
#elif OPTIMIZER == ADAGRAD
  *state1 += g * g;
  *weight -= c.learning_rate * g / (sqrt(*state1) + c.epsilon);
#elif OPTIMIZER == ADADELTA
  *state1 = c.rho * *state1 + c.one_minus_rho * g * g;
  const NUMBER change = sqrt((*state2 + c.epsilon) / (*state1 + c.epsilon)) * g;
  *state2 = c.rho * *state2 + c.one_minus_rho * change * change;
  *weight -= c.learning_rate * change;
#elif OPTIMIZER == RMSPROP
  *state1 = c.rho * *state1 + c.one_minus_rho * g * g;
  *weight -= c.learning_rate * g / (sqrt(*state1) + c.epsilon);
#elif OPTIMIZER == ADAM
  *state1 = c.beta1 * *state1 + c.one_minus_beta1 * g;
  *state2 = c.beta2 * *state2 + c.one_minus_beta2 * g * g;
  *weight -= c.learning_rate * *state1 / (sqrt(*state2) + c.epsilon);
#endif
}
