// One interface to oneDNN 2 and 3. Version 2 wraps the parameters of a primitive in a `desc`,
// version 3 takes them directly. The variants are built with the version that is installed.
#pragma once

#include <cstdlib>
#include <cstring>
#include <dnnl.hpp>
#include <string>

namespace stepladder {

// Version of the library that the program has opened and the kernel that it chose, for the remark
// of a row: "oneDNN 3.2.0 brgemm:avx512_core".
inline std::string onednn_remark(const dnnl::primitive& primitive) {
  const dnnl_version_t* version = dnnl_version();
  const char* kernel = "";
  dnnl_primitive_desc_query(primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &kernel);
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + " " + kernel;
}

// Keeps oneDNN 2 from AMX, before any primitive is made, unless the user has set a limit. There 2.6
// ends with illegal instructions (bf16 products of 65 x 33 x 63, int8 ones of 82 x 355 x 10623) and
// computes some convolutions of bf16 wrongly; 3.2 passes the same random problems.
inline const bool onednn_2_is_kept_from_amx =
    dnnl_version()->major < 3 && std::getenv("ONEDNN_MAX_CPU_ISA") == nullptr &&
    std::getenv("DNNL_MAX_CPU_ISA") == nullptr &&
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;

// Memory of oneDNN that begins with zeros. The convolutions of bf16 in oneDNN 3.2 need it: they
// leave elements of dw unwritten that meet nothing but padding, and on AMX they read scratch memory
// before they write it.
inline dnnl::memory zeroed_memory(const dnnl::memory::desc& desc, const dnnl::engine& engine) {
  dnnl::memory memory(desc, engine);
  if (void* data = memory.get_data_handle()) std::memset(data, 0, desc.get_size());
  return memory;
}

// One operand in the caller's layout and format, and in those of the primitive; the same memory if
// they are equal.
struct ReorderedMemory {
  dnnl::memory plain, chosen;
  dnnl::reorder reorder;
  bool same = true;

  void set(const dnnl::memory::desc& plain_desc, const dnnl::memory::desc& chosen_desc,
           const dnnl::engine& engine, bool is_result = false) {
    plain = dnnl::memory(plain_desc, engine, nullptr);
    same = plain_desc == chosen_desc;
    chosen = same ? plain : zeroed_memory(chosen_desc, engine);
    if (!same) reorder = is_result ? dnnl::reorder(chosen, plain) : dnnl::reorder(plain, chosen);
  }
  void reorder_before(dnnl::stream& stream) {
    if (!same) reorder.execute(stream, plain, chosen);
  }
  void reorder_after(dnnl::stream& stream) {
    if (!same) reorder.execute(stream, chosen, plain);
  }
};

// The primitive_desc of a Primitive; `parameters` in the order of version 3.
template <class Primitive, class... Parameters>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attributes,
                                            const Parameters&... parameters) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, parameters..., attributes};
#else
  return {typename Primitive::desc(parameters...), attributes, engine};
#endif
}

// Describes backward primitives, which take the forward primitive_desc as a hint.
template <class Primitive, class Forward, class... Parameters>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attributes,
                                                     const Forward& forward,
                                                     const Parameters&... parameters) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, parameters..., forward, attributes};
#else
  return {typename Primitive::desc(parameters...), attributes, engine, forward};
#endif
}

// The same operand in the layout that a primitive prefers.
inline dnnl::memory::desc in_any_layout(const dnnl::memory::desc& operand) {
  constexpr auto any = dnnl::memory::format_tag::any;
#if DNNL_VERSION_MAJOR >= 3
  return {operand.get_dims(), operand.get_data_type(), any};
#else
  return {operand.dims(), operand.data_type(), any};
#endif
}

// Appends an elementwise post-op; version 2 scales it, by 1 here.
inline void append_eltwise(dnnl::post_ops& after, dnnl::algorithm function) {
#if DNNL_VERSION_MAJOR >= 3
  after.append_eltwise(function, 0.0F, 0.0F);
#else
  after.append_eltwise(1.0F, function, 0.0F, 0.0F);
#endif
}

// The primitives with dilation, which version 2.5 introduced and version 3 made the only ones.
#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
#endif

}  // namespace stepladder
