#include "kernels/sgd_update/sgd_update.hpp"

#include <fmt/format.h>

namespace stepladder::sgd_update {
namespace {

struct Rule {
  const char* name;
  int states, flops;  // flops: of a weight, without weight decay
};

Rule rule_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return {"sgd", 0, 2};
    case Optimizer::momentum:
      return {"momentum", 1, 4};
    case Optimizer::adagrad:
      return {"adagrad", 1, 7};
    case Optimizer::adadelta:
      return {"adadelta", 2, 16};
    case Optimizer::rmsprop:
      return {"rmsprop", 1, 9};
    case Optimizer::adam:
      return {"adam", 2, 14};
  }
  return {};
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
