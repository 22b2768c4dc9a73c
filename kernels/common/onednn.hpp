// oneDNN's two ways to describe a primitive, as one: version 2 wraps what is asked for in a `desc`,
// version 3 takes it directly. The variants are built with whichever version is installed.
#pragma once

#include <dnnl.hpp>

namespace stepladder {

// What a Primitive is made from; `wanted` as the primitive_desc of version 3 lists it.
template <class Primitive, class... Wanted>
typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                            const dnnl::primitive_attr& attributes,
                                            const Wanted&... wanted) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, wanted..., attributes};
#else
  return {typename Primitive::desc(wanted...), attributes, engine};
#endif
}

// The same for the backward primitives, which ask for the forward one as a hint.
template <class Primitive, class Forward, class... Wanted>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine,
                                                     const dnnl::primitive_attr& attributes,
                                                     const Forward& forward,
                                                     const Wanted&... wanted) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, wanted..., forward, attributes};
#else
  return {typename Primitive::desc(wanted...), attributes, engine, forward};
#endif
}

// A function of each element as a post-op; version 2 scales it, by 1 here.
inline void append_eltwise(dnnl::post_ops& after, dnnl::algorithm function) {
#if DNNL_VERSION_MAJOR >= 3
  after.append_eltwise(function, 0.0F, 0.0F);
#else
  after.append_eltwise(1.0F, function, 0.0F, 0.0F);
#endif
}

// Pooling has a dilation since version 2.5; version 3 knows no other form.
#if DNNL_VERSION_MAJOR >= 3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
#else
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
#endif

}  // namespace stepladder
