// What a variant says of itself, and how it joins the registry.
//
// A variant is one file. It includes its primitive's contract, describes itself in a VariantInfo and
// registers a factory:
//
//     constexpr VariantInfo info{.name = "serial_ikj", .technique = Technique::serial, …};
//     const Registration<Matmul> registration{info, plan_of<multiply>};
//
// Nothing else knows its name: the build globs the folder and the harness asks the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/common/isa.hpp"

namespace stepladder {

enum class Technique { serial, simd, openmp, pthread, mpi, cuda, vendor };
enum class Place {
  cpu,
  cuda
};  // the memory that the operands live in and the clock that times them

// A literal type: a file built for AVX-512 must be able to register on a machine without it, so
// registration may copy pointers and nothing more.
struct VariantInfo {
  const char* name;  // the file's name; a file built per ISA gets "_avx2" and so on appended
  Technique technique;
  const char* builds_on = "";  // name of the rung below; empty at the foot of the ladder
  const char* adds;            // the one idea, in a sentence
  const char* precision = "fp32";
  const char* layouts =
      "";              // those it takes besides the primitive's plain one: convolution's "nhwc"
  Isa isa = Isa::any;  // build_isa in a file that is built per ISA
  Place place = Place::cpu;
  bool threaded = false;      // uses Resources::threads
  bool prepacked = false;     // prepare() must follow every change of the weights
  bool epilogue = false;      // matmul, max_pool: takes problems with an epilogue too
  double bound_factor = 1.0;  // declared accuracy bound, in units of the primitive's fp32 bound
  // The bound of every element is bound_factor · 2^-24 · the largest magnitude: for methods whose sums
  // mix neighbouring elements and cancel them again. A bound that grew with the number of terms, as
  // that of fp32 does, times such a factor, would let wrong sums of thousands of terms pass.
  bool normwise = false;
  double operand_error =
      0.0;  // relative error of a product from rounding its factors to a narrower
            // format, which the bound allows besides; 2^-9 + 2^-20 for TF32
};

struct Resources {
  int threads = 1;
  const void* communicator = nullptr;  // MPI_Comm*; see kernels/common/mpi.hpp
};

// A factory throws this when the problem is outside the variant's domain; what() completes the
// sentence "unavailable: …".
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No problem can be planned on this machine, as when a library that is opened at run time is missing.
class NotHere : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// One variant made ready for one problem. run() allocates nothing and is all that is timed;
// prepare() is what must be repeated whenever the weights change, and is timed apart.
template <class Operands>
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void prepare(const Operands&) {}
  virtual void run(const Operands&) = 0;
};

template <class Primitive>
using PlanOf = Plan<typename Primitive::Operands>;

template <class Primitive>
using Factory = std::unique_ptr<PlanOf<Primitive>> (*)(const typename Primitive::Problem&,
                                                       const Resources&);

namespace detail {

using AnyFunction = void (*)();

struct Entry {
  const VariantInfo* info;
  AnyFunction factory;      // a Factory<Primitive>; null when the variant was not built
  const char* why_missing;  // why it was not built; null when it was
};

// Out of line, so that nothing of it is compiled for an ISA the machine may lack.
void add(const char* primitive, const Entry& entry);
std::span<const Entry> entries(const char* primitive);  // in ladder order

}  // namespace detail

// The plan of a registered variant. Throws Unsupported when the problem is outside the variant's
// domain, be it by its own word or by what its VariantInfo leaves out.
template <class Primitive>
std::unique_ptr<PlanOf<Primitive>> plan_variant(const detail::Entry& entry,
                                                const typename Primitive::Problem& problem,
                                                const Resources& resources) {
  if constexpr (requires { Primitive::require(problem, *entry.info); })
    Primitive::require(problem, *entry.info);
  return reinterpret_cast<Factory<Primitive>>(entry.factory)(problem, resources);
}

template <class Primitive>
class Registration {
 public:
  Registration(const VariantInfo& info, Factory<Primitive> factory) {
    detail::add(Primitive::name, {&info, reinterpret_cast<detail::AnyFunction>(factory), nullptr});
  }
  // For a variant whose library or compiler the build did not find; `why` names what to install.
  Registration(const VariantInfo& info, const char* why) {
    detail::add(Primitive::name, {&info, nullptr, why});
  }
};

// A plan for variants that keep nothing between runs: Function(problem, operands) or, when
// threaded, Function(problem, operands, threads).
template <class Problem, class Operands, auto Function>
class FunctionPlan final : public Plan<Operands> {
 public:
  FunctionPlan(const Problem& problem, int threads) : problem_(problem), threads_(threads) {}
  void run(const Operands& operands) override {
    if constexpr (std::is_invocable_v<decltype(Function), const Problem&, const Operands&, int>)
      Function(problem_, operands, threads_);
    else
      Function(problem_, operands);
  }

 private:
  Problem problem_;
  int threads_;
};

namespace detail {
template <auto Function>
struct PlanOfFunction;
template <class Problem, class Operands, class... Threads,
          void (*Function)(const Problem&, const Operands&, Threads...)>
struct PlanOfFunction<Function> {
  static std::unique_ptr<Plan<Operands>> make(const Problem& problem, const Resources& resources) {
    return std::make_unique<FunctionPlan<Problem, Operands, Function>>(problem, resources.threads);
  }
};
}  // namespace detail

template <auto Function>
inline constexpr auto plan_of = &detail::PlanOfFunction<Function>::make;

// A plan class whose constructor takes (problem, resources).
template <class Primitive, class PlanClass>
std::unique_ptr<PlanOf<Primitive>> make_plan(const typename Primitive::Problem& problem,
                                             const Resources& resources) {
  return std::make_unique<PlanClass>(problem, resources);
}

const char* name_of(Technique technique);
std::string full_name(const VariantInfo& info);  // "simd" built for AVX2 is "simd_avx2"

}  // namespace stepladder
