#include "kernels/all_reduce/all_reduce.hpp"

namespace stepladder::all_reduce {

std::string direction(const Problem& p) { return p.operation == Operation::sum ? "sum" : "mean"; }
std::string shape(const Problem& p) { return std::to_string(p.count); }
double flops(const Problem& p) { return static_cast<double>(p.count) * (p.ranks - 1); }
double bytes_read(const Problem& p) { return 4.0 * static_cast<double>(p.count); }
double bytes_written(const Problem& p) { return 4.0 * static_cast<double>(p.count); }
double bus_bytes(const Problem& p) {
  return 4.0 * static_cast<double>(p.count) * 2.0 * (p.ranks - 1) / p.ranks;
}

}  // namespace stepladder::all_reduce
