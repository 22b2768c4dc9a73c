#include "kernels/common/links.hpp"

#include <algorithm>
#include <utility>

namespace stepladder {

CostCurve::CostCurve(std::vector<Point> points) : points_(std::move(points)) {}

CostCurve CostCurve::line(double alpha, double beta) {
  return CostCurve({{0, alpha}, {1e9, alpha + 1e9 * beta}});
}

double CostCurve::operator()(double bytes) const {
  if (points_.empty()) return 0;
  if (points_.size() == 1 || bytes <= points_.front().bytes) return points_.front().seconds;
  auto above = std::find_if(points_.begin() + 1, points_.end() - 1,
                            [&](const Point& point) { return point.bytes >= bytes; });
  const Point &a = *(above - 1), &b = *above;
  return a.seconds + (bytes - a.bytes) * (b.seconds - a.seconds) / (b.bytes - a.bytes);
}

}  // namespace stepladder
