// What messages, copies and additions cost on the ranks of a run: the terms of the cost model
// (Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH,
// 2005). A message of n bytes takes alpha + n beta seconds and an addition of n bytes n gamma. MPI
// changes its protocol with the length and memory has caches, so alpha, beta and gamma are measured
// at many lengths, and a curve interpolates between them.
#pragma once

#include <vector>

namespace stepladder {

// Seconds as a function of bytes: linear between the points, and beyond them.
class CostCurve {
 public:
  struct Point {
    double bytes, seconds;
  };
  CostCurve() = default;
  explicit CostCurve(std::vector<Point> points);  // in increasing order of bytes, two or more
  // seconds(n) = alpha + n beta
  static CostCurve line(double alpha, double beta);

  double operator()(double bytes) const;  // 0 without points
  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
};

// The cost of n bytes between ranks of one node, or of different nodes.
struct LinkCosts {
  CostCurve send;   // one rank sends n bytes to another; the others are idle
  CostCurve shift;  // every rank sends n bytes to the next one and receives n from the previous one
  CostCurve swap;   // every rank exchanges n bytes with the rank p/2 away, both ways at once
};

struct Links {
  LinkCosts within, between;  // `between` is empty if all ranks share a node
  CostCurve add;              // every rank adds two vectors of n bytes at the same time: n gamma
  CostCurve copy;             // every rank copies n bytes at the same time
  // Every rank copies at the rate of the memory: in huge pages, past the caches where it is faster.
  CostCurve stream;
  // Every rank of a node copies n bytes to shared memory and then those of another rank from there;
  // they come from the other core's cache.
  CostCurve handoff;
  // Seconds for a byte of fp32 that every rank rounds to bf16 in its caches: the unit of codes,
  // which are bound by arithmetic, so that they take about the same time per byte in the caches and
  // beyond them. The factors of the rungs were fitted to times of two ranks on Zen 4.
  double code = 0;
};

// One all-reduce on measured links: what a variant's cost function computes its prediction from.
struct CommunicationCost {
  double p;  // ranks
  double n;  // bytes of the vector
  double g;  // ranks of a node; p if there is one node
  const Links& l;

  bool one_node() const { return g >= p; }
  // For algorithms that treat all ranks alike: the slower kind of link decides.
  const LinkCosts& flat() const {
    return one_node() || l.between.send.empty() ? l.within : l.between;
  }
};

}  // namespace stepladder
