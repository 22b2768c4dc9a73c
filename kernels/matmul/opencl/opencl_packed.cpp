// opencl_tile on panels of op(A) and op(B), which kernels of their own copy first. Neighbouring
// work-groups share a panel of op(B), which stays in L2.
#include <fmt/format.h>

#include "kernels/common/integer_math.hpp"
#include "kernels/common/opencl/register_tile.cl.hpp"
#include "kernels/matmul/opencl/elements.cl.hpp"
#include "kernels/matmul/opencl/item_tile.cl.hpp"
#include "kernels/matmul/opencl/item_tile.hpp"
#include "kernels/matmul/opencl/opencl_packed.cl.hpp"

namespace stepladder::matmul {
namespace {

class OpenClPacked final : public Plan {
 public:
  OpenClPacked(const Problem& p, const Resources& resources)
      : p_(p),
        session_(session_for(p, resources.threads)),
        tile_(item_tile_for(session_)),
        row_panels_(ceil_div(static_cast<std::size_t>(p.m), tile_.elements().rows)),
        column_panels_(ceil_div(static_cast<std::size_t>(p.n), tile_.elements().columns)),
        pack_a_(kernel("pack_a")),
        pack_b_(kernel("pack_b")),
        multiply_(kernel("multiply")),
        a_(session_, opencl::float_bytes(p.m * p.k), opencl::Access::read),
        b_(session_, opencl::float_bytes(p.k * p.n), opencl::Access::read),
        c_(session_, opencl::float_bytes(p.m * p.n), opencl::Access::write),
        a_panels_(session_, panel_bytes(row_panels_ * tile_.elements().rows)),
        b_panels_(session_, panel_bytes(column_panels_ * tile_.elements().columns)) {}

  void run(const Operands& o) override {
    const auto m = static_cast<cl_int>(p_.m), n = static_cast<cl_int>(p_.n),
               k = static_cast<cl_int>(p_.k);
    const std::size_t chunks = ceil_div(static_cast<std::size_t>(p_.k), steps);
    pack_a_.set(m, k, a_.before_kernels(o.a), a_panels_.buffer());
    pack_a_.start({chunks, row_panels_}, {1, 1});
    pack_b_.set(k, n, b_.before_kernels(o.b), b_panels_.buffer());
    pack_b_.start({chunks, column_panels_}, {1, 1});
    multiply_.set(m, n, k, a_panels_.buffer(), b_panels_.buffer(), c_.before_kernels(o.c));
    multiply_.start({row_panels_, column_panels_}, {1, 1});
    c_.after_kernels(o.c);
    opencl::finish(session_);
  }

  std::string remark() const override { return tile_.name(); }

 private:
  static constexpr std::size_t steps = 256;  // along K, that a work-item packs

  opencl::Kernel kernel(const char* name) const {
    return {session_,
            std::string(common::register_tile_cl) + elements_cl + item_tile_cl + opencl_packed_cl,
            name, options_of(p_, fmt::format("{} -DSTEPS={}", tile_.options(), steps))};
  }
  std::size_t panel_bytes(std::size_t rows_or_columns) const {
    const auto count = static_cast<std::int64_t>(rows_or_columns);
    opencl::require_int_indices(count * p_.k);
    return opencl::float_bytes(count * p_.k);
  }

  Problem p_;
  const opencl::Session& session_;
  ItemTile tile_;
  std::size_t row_panels_, column_panels_;
  opencl::Kernel pack_a_, pack_b_, multiply_;
  opencl::Operand a_, b_, c_;
  opencl::Workspace a_panels_, b_panels_;
};

constexpr VariantInfo info{
    .name = "opencl_packed",
    .technique = Technique::opencl,
    .builds_on = "opencl_tile",
    .adds = "panels of both operands",
    .idea = Idea::packing,
    .place = Place::opencl,
    .threaded = true,
};

const Registration registration{info, make_plan<Matmul, OpenClPacked>};

}  // namespace
}  // namespace stepladder::matmul
