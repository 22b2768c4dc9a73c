// Order statistics of repeated timings, which a few slow repetitions do not move.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace stepladder {

struct Summary {
  int count = 0;
  double median = 0;
  // 95 % confidence interval of the median. Of one visit: from order statistics; below six values,
  // the extremes.
  double ci_low = 0, ci_high = 0;
  double min = 0;
  double spread() const { return median > 0 ? (ci_high - ci_low) / median : 0; }
};

Summary summarize(std::vector<double> values);  // not empty
double median(std::vector<double> values);      // not empty

// The least of the values that `percent` of them do not exceed (nearest rank). `sorted`: ascending,
// not empty; 0 < percent <= 100.
double percentile(std::span<const double> sorted, double percent);

// Median and confidence interval of numerator[i] / denominator[i], over the i that both have.
Summary paired_ratio(std::span<const double> numerator, std::span<const double> denominator);

// What rows that are disturbed alike say of the spread between visits: a standard deviation of
// logarithms, and the visits that it counts for.
struct UsualSpread {
  double deviation = 0;
  int degrees = 6;
};

// Of a row in several visits: at least as wide as what the spread between its visits gives.
// `visits` are the positive times of each, none empty. Two or three visits tell little about their
// own spread s: it is drawn towards the usual one, as if that came from d0 = `degrees` more visits,
//   s'^2 = (d0 usual^2 + (v - 1) s^2) / (d0 + v - 1)
// of logarithms, with Student's t of d0 + v - 1 degrees of freedom (Smyth 2004, moderated t). One
// visit has no such part: its interval is of that visit.
Summary summarize_visits(const std::vector<std::vector<double>>& visits, const UsualSpread& usual);

// The usual spread, from every two visits of each row. Rows of one primitive on one number of
// threads and ranks form a group: neighbours disturb what waits for two cores or for a message much
// more than what runs on one. The 93rd percentile of a group counts, because a few rows differ much
// more than the others, and of its visits the one that differs most from those before it, since the
// machine may be slower in one of them. With it the next visit is outside for 8 to 10 % of the rows
// of five published runs. A group without a visit of 20 rows has the spread of all groups together;
// 0 when there is none.
//
// The deviation counts for six visits where rows differ independently. A change of the clock moves
// all rows of a group alike, and n of them tell no more than n / (1 + (n - 1) rho), where the
// median difference, beyond what chance gives, is the share rho of the variance (Kish's design
// effect). Fewer than 20 rows do not tell a share: they count for six.
class VisitDifferences {
 public:
  // `difference` of the logarithms of the medians of two visits of a row, of which `visit` is the
  // later.
  void add(const std::string& group, std::size_t visit, double difference);
  UsualSpread usual(const std::string& group) const;

 private:
  std::map<std::string, std::map<std::size_t, std::vector<double>>> differences_;
};

double standard_deviation(const std::vector<double>& values);  // 0 below two values

// P(|t| > x) of Student's t with `degrees` >= 1 degrees of freedom, and the x > 0 for which it is
// p.
double student_p(double x, int degrees);
double student_critical(double p, int degrees);

}  // namespace stepladder
