// The primitives as the harness knows them: how a line of a suite, or a random draw, becomes a Case.
// One file in harness/primitives/ for each; none of them names a variant.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/problem/case.hpp"
#include "harness/io/csv.hpp"
#include "harness/problem/random.hpp"

namespace stepladder {

class PrimitiveType {
 public:
  virtual ~PrimitiveType() = default;
  virtual const char* name() const = 0;
  virtual std::vector<std::string> suite_columns() const = 0;  // besides suite, name and source
  virtual std::vector<std::string> optional_columns() const { return {}; }
  // The problems of one line: one for each optimizer or operation where these are not columns.
  // `ranks` is the number of MPI ranks. Throws std::runtime_error naming the line.
  virtual std::vector<std::unique_ptr<Case>> cases(const CsvRow& row, int ranks) const = 0;
  // A small problem with odd sizes, tails and edges; every direction comes up.
  virtual std::unique_ptr<Case> random_case(Random& random, int ranks) const = 0;
  virtual bool needs_ranks() const { return false; }
  virtual bool has_suites() const { return true; }

  std::vector<Variant> variants() const;  // in ladder order; unavailable ones included
};

// Why the variant can run no problem of the primitive here: why_unavailable, or what its factory says,
// which opens the library that the variant stands for; empty when it can.
std::string why_not_here(const PrimitiveType& primitive, const Variant& variant);

// In the order of a training step: matmul, convolution, max_pool, sgd_update, all_reduce, layers.
std::span<const PrimitiveType* const> primitives();
const PrimitiveType& primitive(std::string_view name);  // throws UnknownName

// Variants whose full or family name matches one of the globs (`*`, `?`; separated by commas), in
// ladder order. Without a glob: for each family built per ISA the widest this machine has, and for
// technique simd every width. Throws UnknownName when a glob matches nothing.
std::vector<Variant> select_variants(const PrimitiveType& primitive, const std::string& globs);

}  // namespace stepladder
