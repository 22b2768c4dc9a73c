// oneDNN's matmul primitive with B in the layout that it prefers, reordered once by prepare().
#include <unordered_map>

#include "kernels/common/cpu/openmp_threads.hpp"
#include "kernels/common/onednn.hpp"
#include "kernels/matmul/matmul.hpp"

namespace stepladder::matmul {
namespace {

using dnnl::memory;

class OneDnnPrepacked final : public Plan {
 public:
  OneDnnPrepacked(const Problem& p, const Resources& resources) : threads_(resources.threads) {
    const OpenMpThreads scope(threads_);
    const auto f32 = memory::data_type::f32;
    const memory::desc a({p.m, p.k}, f32,
                         p.transpose_a ? memory::dims{1, p.m} : memory::dims{p.k, 1});
    const memory::desc b({p.k, p.n}, f32,
                         p.transpose_b ? memory::dims{1, p.k} : memory::dims{p.n, 1});
    const memory::desc any({p.k, p.n}, f32, memory::format_tag::any);
    const memory::desc c({p.m, p.n}, f32, memory::dims{p.n, 1});
    const auto described = describe<dnnl::matmul>(engine_, {}, a, any, c);
    multiply_ = dnnl::matmul(described);
    a_ = memory(a, engine_, nullptr);
    b_ = memory(b, engine_, nullptr);
    c_ = memory(c, engine_, nullptr);
    packed_ = memory(described.weights_desc(), engine_);
    pack_ = dnnl::reorder(b_, packed_);
    arguments_ = {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DST, c_}};
  }

  void prepare(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    b_.set_data_handle(const_cast<float*>(o.b));
    pack_.execute(stream_, b_, packed_);
    stream_.wait();
  }

  void run(const Operands& o) override {
    const OpenMpThreads scope(threads_);
    a_.set_data_handle(const_cast<float*>(o.a));
    c_.set_data_handle(o.c);
    multiply_.execute(stream_, arguments_);
    stream_.wait();
  }

  std::string remark() const override { return onednn_remark(multiply_); }

 private:
  int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  memory a_, b_, c_, packed_;
  dnnl::reorder pack_;
  dnnl::matmul multiply_;
  std::unordered_map<int, memory> arguments_;
};

constexpr VariantInfo info{
    .name = "onednn_prepacked",
    .technique = Technique::vendor,
    .adds = "oneDNN's matmul primitive, B prepacked",
    .threaded = true,
    .prepacked = true,
};

const Registration registration{info, make_plan<Matmul, OneDnnPrepacked>};

}  // namespace
}  // namespace stepladder::matmul
