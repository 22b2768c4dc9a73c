#include "kernels/average_pool/average_pool.hpp"

#include "kernels/common/pooling.hpp"

namespace stepladder::average_pool {

void AveragePool::require(const Problem& problem, const VariantInfo& info) {
  require_layout(problem.layout, info);
}

const char* name_of(Count count) {
  return count == Count::include_padding ? "include_padding" : "exclude_padding";
}

std::string direction(const Problem& p) {
  return p.direction == Direction::forward ? "forward" : "backward";
}

std::string shape(const Problem& p) {
  return pooling_shape(p) + (p.count == Count::exclude_padding ? " exclude_padding" : "");
}

double flops(const Problem& p) {
  const double positions = static_cast<double>(p.window_h) * static_cast<double>(p.window_w);
  return static_cast<double>(unpadded(p).y_count()) *
         (p.direction == Direction::forward ? positions : positions + 1);
}

double bytes_read(const Problem& problem) {
  const Problem p = unpadded(problem);
  return 4.0 * static_cast<double>(p.direction == Direction::forward ? p.x_count() : p.y_count());
}

double bytes_written(const Problem& problem) {
  const Problem p = unpadded(problem);
  return 4.0 * static_cast<double>(p.direction == Direction::forward ? p.y_count() : p.x_count());
}

void validate(const Problem& p) { validate_pooling(p); }

}  // namespace stepladder::average_pool
