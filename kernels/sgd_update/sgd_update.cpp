#include "kernels/sgd_update/sgd_update.hpp"

#include <fmt/format.h>

namespace stepladder::sgd_update {

const char* name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::momentum:
      return "momentum";
    case Optimizer::adagrad:
      return "adagrad";
    case Optimizer::adadelta:
      return "adadelta";
    case Optimizer::rmsprop:
      return "rmsprop";
    case Optimizer::adam:
      return "adam";
  }
  return "";
}

int states(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
    case Optimizer::adagrad:
    case Optimizer::rmsprop:
      return 1;
    case Optimizer::adadelta:
    case Optimizer::adam:
      return 2;
  }
  return 0;
}

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
  const double per_weight = [&] {
    switch (p.optimizer) {
      case Optimizer::sgd:
        return 2;
      case Optimizer::momentum:
        return 4;
      case Optimizer::adagrad:
        return 7;
      case Optimizer::rmsprop:
        return 9;
      case Optimizer::adadelta:
        return 16;
      case Optimizer::adam:
        return 14;
    }
    return 0;
  }();
  return static_cast<double>(p.count) * (per_weight + (p.weight_decay != 0 ? 2 : 0));
}

double bytes_read(const Problem& p) {
  return 4.0 * static_cast<double>(p.count) * (2 + states(p.optimizer));
}

double bytes_written(const Problem& p) {
  return 4.0 * static_cast<double>(p.count) * (1 + states(p.optimizer));
}

}  // namespace stepladder::sgd_update
