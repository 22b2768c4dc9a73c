// The lattice of a primitive: one templated source, in kernels/<primitive>/lattice/, with a switch
// for each technique. Every combination is a variant, named after the switches that are on:
// lattice, lattice_vectors, lattice_vectors_tile. `stepladder attribute` measures all in turns, and
// so tells what a technique brings whatever was there before. The variants of a lattice are no
// rungs: PrimitiveType::variants() omits them.
#pragma once

#include <span>
#include <utility>

#include "kernels/common/variant.hpp"

namespace stepladder {

struct Switch {
  const char* name;  // a word, such as "tile"
  Idea idea;
};

struct Lattice {
  const char* below;                 // the rung whose loops it has where nothing is on
  std::span<const Switch> switches;  // the last one is threads; switch i is bit i of a corner
};

namespace detail {
// Registers the corner, and the same with threads. Not inline, as add().
void add_corner(const char* primitive, const Lattice& lattice, unsigned corner, AnyFunction factory,
                Isa isa);
}  // namespace detail

inline namespace STEPLADDER_ISA {

// Corner<bits> is the plan class of a combination of all switches but the last; it uses
// Resources::threads threads. `lattice` lives as long as the program.
template <class Primitive, template <unsigned> class Corner, unsigned... corners>
bool register_corners(const Lattice& lattice, std::integer_sequence<unsigned, corners...>) {
  (detail::add_corner(Primitive::name, lattice, corners,
                      reinterpret_cast<detail::AnyFunction>(&make_plan<Primitive, Corner<corners>>),
                      build_isa),
   ...);
  return true;
}

}  // namespace STEPLADDER_ISA
}  // namespace stepladder
