// A primitive as the harness sees it: how a line of a suite, or a random draw, becomes a Case, and
// which variants it has. harness/adapters implements it for each primitive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/io/csv.hpp"
#include "harness/problem/case.hpp"
#include "harness/problem/random.hpp"

namespace stepladder {

// A column of a suite file. `defaults` holds what --shape takes where it gives no value: one, or
// one for each of several problems (directions). Without defaults, --shape must give the value.
struct SuiteColumn {
  std::string name;
  std::vector<std::string> defaults{};
};

class PrimitiveType {
 public:
  virtual ~PrimitiveType() = default;
  virtual const char* name() const = 0;
  virtual std::vector<SuiteColumn> suite_columns() const = 0;  // besides suite, name and source
  virtual std::vector<std::string> optional_columns() const { return {}; }
  // The problems of one line: one for each optimizer or operation where these are not columns.
  // `ranks` is the number of MPI ranks. Throws std::runtime_error naming the line.
  virtual std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const = 0;
  // A small problem with odd sizes, tails and edges. Every direction is drawn.
  virtual std::unique_ptr<Case> random_case(Random& random, int ranks) const = 0;
  virtual bool needs_ranks() const { return false; }
  // Whether it has problems of several MPI ranks, besides those of one.
  virtual bool runs_over_ranks() const { return needs_ranks(); }

  std::vector<Variant> variants() const;  // in ladder order; unavailable ones included
  // The corners of its lattice, for each ISA; they are no rungs (kernels/common/lattice.hpp).
  std::vector<Variant> corners() const;
};

// Why this machine cannot run the variant at all: its why_unavailable, or the message of its
// factory, which opens the vendor's library. Empty when it can.
std::string why_not_here(const PrimitiveType& primitive, const Variant& variant);

// Its variants; and its corners if one of the globs begins with `lattice`.
std::vector<Variant> variants_for(const PrimitiveType& primitive, const std::string& globs);

// Variants whose full or family name matches one of the globs (`*`, `?`; separated by commas), in
// ladder order. Without a glob: of each family built per ISA the widest that this machine has, and
// every width of the variant `simd`. A glob that begins with `lattice` is of corners. Throws
// UnknownName when a glob matches nothing.
std::vector<Variant> select_variants(const PrimitiveType& primitive, const std::string& globs);

}  // namespace stepladder
