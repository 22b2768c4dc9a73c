// Variants and their registration.
//
// A variant is one file. It includes the contract of its primitive, describes itself in a
// VariantInfo and registers a factory:
//
//     constexpr VariantInfo info{.name = "serial_ikj", .technique = Technique::serial, …};
//     const Registration registration{info, plan_of<multiply>};
//
// No list names it: the build globs the folder, and the harness reads the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/common/isa.hpp"
#include "kernels/common/layout.hpp"

namespace stepladder {

enum class Technique { serial, simd, openmp, pthread, mpi, cuda, opencl, vendor };
// tf32, bf16, int8: operands are converted to it. all_reduce: messages are sent in fp16 or bf16.
enum class Precision { fp32, tf32, fp16, bf16, int8 };
// What a rung adds to the one below: gains are booked to it. Threads are also the blocks of a GPU.
enum class Idea {
  none,  // a first rung, or a library
  loop_order,
  cache_blocking,
  compiler,
  vectors,
  register_tile,
  packing,
  threads,
  processes,
  algorithm,
  layout,
  fusion,
  shared_memory,
  pipelining,
  compression,
  streaming_stores,
  prefetch,
  coalescing,
  tensor_cores,
  dot_products,
  matrix_unit
};
// Where the variant runs. Operands of cpu and opencl are in host memory, and the host's clock times
// them; those of cuda are in the device's memory, and its clock times them.
enum class Place { cpu, cuda, opencl };

struct Lattice;  // kernels/common/lattice.hpp

// A literal type: files built for AVX-512 are registered on machines without it too, so
// registration must only copy pointers.
struct VariantInfo {
  const char* name;  // the file name; builds for an ISA append "_avx2" etc. (full_name())
  Technique technique;
  const char* builds_on = "";  // name of the rung below; empty for the first rung
  const char* adds;            // the one idea, in a sentence
  Idea idea = Idea::none;
  Precision precision = Precision::fp32;
  Layout layout = Layout::nchw;  // convolution, pooling: of the operands
  bool nhwc = false;             // convolution: supports NHWC besides that layout
  Isa isa = Isa::any;            // build_isa in a file that is built for each ISA
  Place place = Place::cpu;
  bool by_compiler = false;  // a serial rung, vectorized by the compiler alone: by_compiler.hpp
  const Lattice* lattice = nullptr;  // of which it is a corner; null: a rung
  unsigned corner = 0;               // bit i: the lattice's switch i is on
  bool threaded = false;             // uses Resources::threads
  bool prepacked = false;            // prepare() must be called after every change of the weights
  bool epilogue = false;             // matmul, max_pool: supports problems with an epilogue
  bool triangle = false;             // matmul: supports problems of a lower triangle
  bool over_ranks = false;  // matmul, sgd_update: for problems of several ranks, and only for them
  bool grid = false;        // matmul over ranks: divided by a grid of ranks; otherwise by rows
  bool window = false;      // all_reduce: the vectors live in a window of MPI shared memory
  double bound_factor = 1.0;  // accuracy bound as a multiple of the primitive's fp32 bound
  // The bound of every element is bound_factor · 2^-24 · the largest magnitude. For methods such as
  // Winograd, whose transforms mix neighbouring elements and cancel them again. Their large factor
  // times an fp32 bound that grows with the number of terms would accept wrong long sums.
  bool normwise = false;
  bool chooses_algorithm = false;  // a library that may or may not use such a method
  // Relative error of a product whose operands are converted to a narrower format, added to the
  // bound; 2^-9 + 2^-20 for truncation to TF32. all_reduce: error of a sum whose partial sums are
  // converted, relative to the sum of the magnitudes.
  double operand_error = 0.0;
  // Error of a sum of k products of operands that are quantized with a step for many of them,
  // relative to k · max|a| · max|b|, added to the bound (kernels/common/cpu/narrow/quantize.hpp).
  double quantization_error = 0.0;

  // all_reduce, rungs that compress.
  double encoded_share = 1.0;  // length of an encoded vector, relative to fp32
  bool gathers = false;        // sends the vectors of all ranks instead of one sum in chunks
  // Above 0: a compressor C with error feedback. |v - C(v)|^2 <= (1 - contraction) |v|^2 for every
  // vector v, and the plan adds v - C(v) to the next input. Single results satisfy no bound; sums
  // of results do (harness/verify/feedback.hpp).
  double contraction = 0.0;
  int compressions = 1;  // 2: the sum of the compressed vectors is compressed again
};

struct Links;              // kernels/common/links.hpp
struct CommunicationCost;  // kernels/common/links.hpp

struct Resources {
  int threads = 1;
  const void* communicator = nullptr;  // MPI_Comm*; see kernels/common/mpi.hpp
  const Links* links = nullptr;        // measured between these ranks, or null
};

// Thrown by a factory if the variant does not support the problem; what() completes the sentence
// "unavailable: …".
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown if the variant supports no problem on this machine, for example because a library is
// missing.
class NotHere : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// A variant prepared for one problem. run() is timed and allocates nothing. prepare() does the work
// that depends on the weights, is called after each change of them and is timed separately.
template <class Operands>
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void prepare(const Operands&) {}
  virtual void run(const Operands&) = 0;
  // What a reader of the row should know, such as the rung that a plan chose; usually empty.
  virtual std::string remark() const { return {}; }
};

template <class Primitive>
using PlanOf = Plan<typename Primitive::Operands>;

template <class Primitive>
using Factory = std::unique_ptr<PlanOf<Primitive>> (*)(const typename Primitive::Problem&,
                                                       const Resources&);

namespace detail {

using AnyFunction = void (*)();
using CostFunction = double (*)(const CommunicationCost&);  // seconds

struct Entry {
  const VariantInfo* info;
  AnyFunction factory;          // a Factory<Primitive>; null if the variant was not built
  const char* why_missing;      // why it was not built; null if it was
  CostFunction cost = nullptr;  // the time that the cost model predicts, if it has one
};

// Not inline, so that it is never compiled for an ISA that the machine may lack.
void add(const char* primitive, const Entry& entry);
std::span<const Entry> entries(const char* primitive);  // in ladder order

}  // namespace detail

// The plan of a registered variant. Throws Unsupported if the variant or its VariantInfo excludes
// the problem.
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
  // `cost` predicts the time of one run from the measured links; for variants over MPI.
  Registration(const VariantInfo& info, Factory<Primitive> factory,
               detail::CostFunction cost = nullptr) {
    detail::add(Primitive::name,
                {&info, reinterpret_cast<detail::AnyFunction>(factory), nullptr, cost});
  }
  // For a variant whose library or compiler the build did not find; `why` says what to install.
  Registration(const VariantInfo& info, const char* why) {
    detail::add(Primitive::name, {&info, nullptr, why, nullptr});
  }
};

// A plan for variants without state between runs: Function(problem, operands), or Function(problem,
// operands, threads) if threaded.
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

std::string layouts_of(const VariantInfo& info);  // "NCHW", "NCHW and NHWC", "CHWN" and so on
// Throws Unsupported, naming the layouts of the variant, unless `layout` is one of them.
void require_layout(Layout layout, const VariantInfo& info);

const char* name_of(Technique technique);
const char* name_of(Place place);
const char* name_of(Precision precision);
const char* name_of(Idea idea);                  // such as "register tile"; empty: none
std::string full_name(const VariantInfo& info);  // "simd" built for AVX2 is "simd_avx2"

}  // namespace stepladder
