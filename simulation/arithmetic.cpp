// Stands in for kernels/all_reduce/mpi/reduce.cpp.
#include "simulation/arithmetic.hpp"

#include <smpi/smpi.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/all_reduce/mpi/reduce.hpp"

namespace stepladder {
namespace simulation {
namespace {

constexpr double host_speed = 1e9;  // of every platform that scripts/simulate.py writes

Arithmetic from_environment() {
  const char* text = std::getenv("SIMULATED_ARITHMETIC");
  if (text == nullptr) return {};
  std::vector<CostCurve::Point> add, copy;
  std::vector<CostCurve::Point>* points = nullptr;
  bool computes = false;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':');
    if (word == "compute")
      computes = true;
    else if (word == "add")
      points = &add;
    else if (word == "copy")
      points = &copy;
    else if (points == nullptr || colon == std::string::npos)
      throw std::invalid_argument("SIMULATED_ARITHMETIC: unexpected '" + word + "'");
    else
      points->push_back({std::stod(word.substr(0, colon)), std::stod(word.substr(colon + 1))});
  }
  return {computes, CostCurve(std::move(add)), CostCurve(std::move(copy))};
}

const Arithmetic values = from_environment();

double bytes_of(std::int64_t count) { return static_cast<double>(count) * sizeof(float); }

}  // namespace

const Arithmetic& arithmetic() { return values; }

void spend(double seconds) {
  if (seconds > 0) smpi_execute_flops(seconds * host_speed);
}

}  // namespace simulation

namespace all_reduce {

using simulation::arithmetic;

void add(const float* a, const float* b, float* sum, std::int64_t count) {
  if (arithmetic().computes)
    std::transform(a, a + count, b, sum, [](float x, float y) { return x + y; });
  if (count > 0) simulation::spend(arithmetic().add(simulation::bytes_of(count)));
}

// A pass over one array; it costs what a copy does.
void divide(float* values, std::int64_t count, float divisor) {
  if (arithmetic().computes)
    std::transform(values, values + count, values, [divisor](float x) { return x / divisor; });
  if (count > 0) simulation::spend(arithmetic().copy(simulation::bytes_of(count)));
}

void copy(const float* from, float* to, std::int64_t count) {
  if (from == to) return;
  if (arithmetic().computes) std::copy_n(from, count, to);
  if (count > 0) simulation::spend(arithmetic().copy(simulation::bytes_of(count)));
}

}  // namespace all_reduce
}  // namespace stepladder
