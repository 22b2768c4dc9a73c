// What the plans of oneDNN share: a primitive with its arguments, and the number of threads that
// oneDNN uses while a plan makes primitives and runs them.
#pragma once

#include <string>
#include <unordered_map>

#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/common/onednn.hpp"
#include "kernels/common/variant.hpp"

namespace stepladder {

template <class Operands>
class OneDnnPlan : public Plan<Operands> {
 public:
  std::string remark() const override { return onednn_remark(primitive_); }

 protected:
  explicit OneDnnPlan(const Resources& resources) : threads_(resources.threads) {}

  // Calls create(). Throws Unsupported(why) if oneDNN does not implement what it asks for.
  template <class Create>
  static void create_or_throw(const std::string& why, const Create& create) {
    try {
      create();
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      throw Unsupported(why);
    }
  }

  // Of an operand, which has no address yet.
  dnnl::memory memory_of(const dnnl::memory::desc& desc) const { return {desc, engine_, nullptr}; }

  void execute() { primitive_.execute(stream_, arguments_); }

  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace stepladder
