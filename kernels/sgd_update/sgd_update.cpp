#include "kernels/sgd_update/sgd_update.hpp"

#include <fmt/format.h>

namespace stepladder::sgd_update {

namespace {

struct Rule {
  const char* name;
  int states, flops;  // flops: of a weight, without weight decay
};

const Rule& rule_of(Optimizer optimizer) {
  static constexpr Rule rules[] = {{"sgd", 0, 2},       {"momentum", 1, 4}, {"adagrad", 1, 7},
                                   {"adadelta", 2, 16}, {"rmsprop", 1, 9},  {"adam", 2, 14}};
  static_assert(std::size(rules) == static_cast<std::size_t>(Optimizer::adam) + 1);
  return rules[static_cast<std::size_t>(optimizer)];
}

}  // namespace

const char* name_of(Optimizer optimizer) { return rule_of(optimizer).name; }

int states(Optimizer optimizer) { return rule_of(optimizer).states; }

void SgdUpdate::require(const Problem& p, const VariantInfo& info) {
  if (p.ranks > 1 && !info.over_ranks) throw Unsupported("its update is of one process");
  if (p.ranks == 1 && info.over_ranks)
    throw Unsupported("its update is of several processes: start them with mpirun");
}

std::string direction(const Problem& p) { return name_of(p.optimizer); }

std::string shape(const Problem& p) {
  return fmt::format("{}{}", p.count, p.weight_decay != 0 ? " decay" : "");
}

double flops(const Problem& p) {
  return static_cast<double>(p.count) *
         (rule_of(p.optimizer).flops + (p.weight_decay != 0 ? 2 : 0));
}

double bytes_read(const Problem& p) {
  return 4.0 * static_cast<double>(p.count) * (2 + states(p.optimizer));
}

double bytes_written(const Problem& p) {
  return 4.0 * static_cast<double>(p.count) * (1 + states(p.optimizer));
}

}  // namespace stepladder::sgd_update
