// One object per primitive; each is defined in the file of its name.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "harness/problem/primitives.hpp"

namespace stepladder {

const PrimitiveType& matmul_type();
const PrimitiveType& convolution_type();
const PrimitiveType& max_pool_type();
const PrimitiveType& sgd_update_type();
const PrimitiveType& all_reduce_type();
const PrimitiveType& layers_type();

// Refuses an operand that no memory could hold, before its size overflows.
inline void expect_countable(const CsvRow& row, const char* operand,
                             std::initializer_list<std::int64_t> sizes) {
  double elements = 1;
  for (const std::int64_t size : sizes) elements *= static_cast<double>(size);
  if (elements > 0x1p48)
    row.fail(fmt::format("{} has {:.3g} elements; expected 2.8e14 at most", operand, elements));
}

// A Case for a problem of which the caller has the type. Each primitive's file defines its own.
template <class Primitive>
std::unique_ptr<Case> make_case(const typename Primitive::Problem& problem, std::string suite,
                                std::string name);

// Memory that a plan reads, or writes.
struct Access {
  const std::byte* from;
  std::size_t bytes;
  bool writes;
};

// By the roles of the operands, which proof holds every variant to: it changes no input, and what is no
// operand of the problem is not there. Each primitive's file defines its own.
template <class Primitive>
std::vector<Access> accesses(const typename Primitive::Problem& problem,
                             const typename Primitive::Operands& operands);

// The cost and names that every contract states, as a row needs them.
template <class Problem>
ProblemInfo describe(const char* primitive, const char* layout, const Problem& problem,
                     std::string suite, std::string name) {
  return {.primitive = primitive,
          .direction = direction(problem),
          .suite = std::move(suite),
          .name = std::move(name),
          .shape = shape(problem),
          .layout = layout,
          .flops = flops(problem),
          .bytes_read = bytes_read(problem),
          .bytes_written = bytes_written(problem)};
}

}  // namespace stepladder
