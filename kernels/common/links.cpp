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

// Weighted least squares: each residual is divided by the measured seconds.
Line fit_line(const CostCurve& curve) {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const CostCurve::Point& point : curve.points()) {
    if (point.seconds <= 0) continue;
    const double weight = 1 / (point.seconds * point.seconds);
    w += weight;
    x += weight * point.bytes;
    y += weight * point.seconds;
    xx += weight * point.bytes * point.bytes;
    xy += weight * point.bytes * point.seconds;
  }
  const double determinant = w * xx - x * x;
  if (determinant <= 0) return {w > 0 ? y / w : 0, 0};
  return {(y * xx - x * xy) / determinant, (w * xy - x * y) / determinant};
}

}  // namespace stepladder
