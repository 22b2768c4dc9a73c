// A problem of a primitive, given with its type, as the harness sees it. Each primitive's file in
// this folder specializes both templates.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "harness/problem/case.hpp"

namespace stepladder {

template <class Primitive>
std::unique_ptr<Case> make_case(const typename Primitive::Problem& problem, std::string suite,
                                std::string name);

// Memory that a plan reads or writes.
struct Access {
  const std::byte* from;
  std::size_t bytes;
  bool writes;
};

// The memory that every plan of the problem may access, from the roles of its operands.
// Verification checks that a variant changes no input and accesses nothing else.
template <class Primitive>
std::vector<Access> accesses(const typename Primitive::Problem& problem,
                             const typename Primitive::Operands& operands);

}  // namespace stepladder
