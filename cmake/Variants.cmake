# Finds the kernels. A variant is a file anywhere below kernels/<primitive>/ with a line
#     const Registration registration{info, ...};
# Adding a variant changes no list. The file decides how it is built:
#   .isa = build_isa           once per ISA of STEPLADDER_ISAS, with the flags of that ISA;
#                              simd.cpp for all ISAS, so that a ladder shows what a width buys
#   includes a missing library not built; a stub registers its VariantInfo with the reason
#   kernels/<primitive>/lattice/
#                              as build_isa, without auto-vectorization; registers all corners
#                              (kernels/common/lattice.hpp)
#   *.cl                       the text of OpenCL kernels, embedded in the program
#   *.cu                       built by nvcc; without CUDA, a stub
#   STEPLADDER_FUZZ            a stub: the readers need only the names of the variants
#   otherwise                  built once for the baseline ISA, without auto-vectorization,
#                              so that a rung gains only what its source shows
#   .technique = Technique::serial
#                              also once per ISA of STEPLADDER_ISAS, vectorized by the compiler, as
#                              <name>_o3_<isa>, and with the pragmas of the file as
#                              <name>_omp_simd_<isa> (kernels/common/by_compiler.hpp)

set(isa_neon_flags "")
set(isa_sse42_flags -msse4.2)
set(isa_avx2_flags -mavx2 -mfma -mf16c)
# GCC 12 warns of its own AVX-512 headers, which read registers that they leave undefined on
# purpose.
set(isa_avx512_flags -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd -mavx2 -mfma
                     -mprefer-vector-width=512 -Wno-maybe-uninitialized -Wno-uninitialized)

set(STEPLADDER_ISAS native CACHE STRING
  "ISAs that kernels are built for: native (the widest of this CPU), all, or names as sse42;avx2")
set(STEPLADDER_PRIMITIVES "" CACHE STRING "Primitives whose rungs are built; by default all")
set(STEPLADDER_IS_X86 ON)
set(all_isas sse42 avx2 avx512)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(STEPLADDER_IS_X86 OFF)
  set(all_isas neon)
endif()
set(built_isas ${STEPLADDER_ISAS})
if(STEPLADDER_ISAS STREQUAL "all" OR all_isas STREQUAL "neon")
  set(built_isas ${all_isas})
elseif(STEPLADDER_ISAS STREQUAL "native")
  file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  string(REGEX REPLACE "^flags[ \t]*:(.*)" "\\1 " cpu_flags "${cpu_flags}")
  set(built_isas sse42)
  if(cpu_flags MATCHES " avx2 " AND cpu_flags MATCHES " fma ")
    set(built_isas avx2)
    if(cpu_flags MATCHES " avx512f " AND cpu_flags MATCHES " avx512bw " AND
       cpu_flags MATCHES " avx512dq " AND cpu_flags MATCHES " avx512cd " AND
       cpu_flags MATCHES " avx512vl ")
      set(built_isas avx512)
    endif()
  endif()
endif()
foreach(isa IN LISTS built_isas)
  if(NOT isa IN_LIST all_isas)
    message(FATAL_ERROR "STEPLADDER_ISAS: ${isa}: expected native, all or some of ${all_isas}")
  endif()
endforeach()

# Included file | variable that is true if the library was found | reason if it was not.
set(onednn_headers "kernels/[a-z_/]*onednn[a-z_]*.hpp")
set(opencl_headers "kernels/[a-z_/]*opencl/plan.hpp")
set(of_x86 "STEPLADDER_IS_X86|its instructions are of x86-64 alone")
set(of_streaming "STEPLADDER_IS_X86|AArch64 has non-temporal stores of pairs alone, as a hint")
set(of_opencl "STEPLADDER_HAVE_OPENCL|built without OpenCL (Debian: ocl-icd-opencl-dev)")
set(needs
  "immintrin.h|${of_x86}"
  "kernels/common/cpu/narrow/[a-z_]*.hpp|${of_x86}"
  "kernels/low_precision/cpu/[a-z_]*.hpp|${of_x86}"
  "kernels/matmul/cpu/packed/quantized_product.hpp|${of_x86}"
  "kernels/matmul/cpu/packed/rounded_product.hpp|${of_x86}"
  "kernels/convolution/cpu/direct_amx/[a-z_]*.hpp|${of_x86}"
  "kernels/common/mpi.hpp|STEPLADDER_HAVE_MPI|built without MPI (Debian: libopenmpi-dev)"
  "${onednn_headers}|STEPLADDER_HAVE_ONEDNN|built without oneDNN (Debian: libdnnl-dev)"
  "zstd.h|STEPLADDER_HAVE_ZSTD|built without zstd (Debian: libzstd-dev)"
  "fftw3.h|STEPLADDER_HAVE_FFTW|built without FFTW (Debian: libfftw3-dev)"
  "kernels/[a-z_]*/cpu/[a-z_/]*streaming.cpp|${of_streaming}"
  "kernels/sgd_update/lattice/lattice.cpp|${of_streaming}"
  "${opencl_headers}|${of_opencl}"
  "kernels/[a-z_]*/opencl/item_tile.hpp|${of_opencl}"
  "clblast_c.h|STEPLADDER_HAVE_CLBLAST|built without CLBlast (Debian: libclblast-dev)"
  "cublas_v2.h|STEPLADDER_HAVE_CUBLAS|built without cuBLAS (NVIDIA: libcublas-dev-13-0)"
  "cudnn.h|STEPLADDER_HAVE_CUDNN|built without cuDNN (NVIDIA: cudnn9-cuda-13)"
  "nccl.h|STEPLADDER_HAVE_NCCL|built without NCCL (NVIDIA: libnccl-dev)"
  "\\.cu$|STEPLADDER_HAVE_CUDA|${STEPLADDER_WHY_NO_CUDA}")

# Writes a stub, build/missing/<source>.cpp, that registers the VariantInfo of the file with the
# reason. Those of a primitive are compiled together.
function(write_stub source text primitive why result)
  string(REGEX MATCH "constexpr VariantInfo info{[^}]*};" info "${text}")
  set(stub ${CMAKE_BINARY_DIR}/missing/${source}.cpp)
  string(MAKE_C_IDENTIFIER ${source} unique)
  file(CONFIGURE OUTPUT ${stub} @ONLY CONTENT
"// Stub for ${source}, which is not built.
#include \"kernels/${primitive}/${primitive}.hpp\"
namespace stepladder::${primitive} {
namespace @unique@ {
namespace {
@info@
const Registration registration{info, \"@why@\"};
}  // namespace
}  // namespace @unique@
}  // namespace stepladder::${primitive}
")
  set_source_files_properties(${stub} PROPERTIES UNITY_GROUP missing_${primitive})
  set(${result} ${stub} PARENT_SCOPE)
endfunction()

# Writes build/embedded/<source>.hpp, in which the text of an OpenCL kernel file is a constant:
# kernels/matmul/opencl/opencl_naive.cl is stepladder::matmul::opencl_naive_cl.
function(embed source)
  file(READ ${source} text)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^kernels/([^/]+)/.*" "\\1" primitive ${source})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/embedded/${source}.hpp @ONLY CONTENT
"// Written by CMake from @source@.
#pragma once
namespace stepladder::@primitive@ {
inline constexpr char @name@_cl[] = R\"cl(@text@)cl\";
}
")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endfunction()

# Writes build/by_compiler/<folder>/<source>, which registers a serial rung as the compiler
# vectorizes it: folder o3 without OpenMP, or omp_simd. See kernels/common/by_compiler.hpp.
function(write_by_compiler source primitive folder has_pragmas result)
  set(wrapper ${CMAKE_BINARY_DIR}/by_compiler/${folder}/${source})
  file(CONFIGURE OUTPUT ${wrapper} @ONLY CONTENT
"// @source@, vectorized by the compiler.
#include \"kernels/common/by_compiler.hpp\"
#include \"kernels/@primitive@/@primitive@.hpp\"
namespace stepladder::@primitive@ {
using ByCompiler = stepladder::ByCompiler<Registration, @has_pragmas@>;
}
#define Registration ByCompiler
#include \"@source@\"
")
  set(${result} ${wrapper} PARENT_SCOPE)
endfunction()

function(add_kernels)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    kernels/*.cpp
    kernels/*.cu)
  file(GLOB_RECURSE opencl_sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} kernels/*.cl)
  foreach(source IN LISTS opencl_sources)
    embed(${source})
  endforeach()
  # What is built whatever the primitives: contracts, what the probe of links between ranks and
  # plugins use, and what sgd_update uses over ranks.
  set(always "common/|[a-z_]+/[a-z_]+[.]cpp|matmul/(vendor/blas_library|cpu/separate_epilogue)[.]")
  string(APPEND always "|all_reduce/mpi/(huge_pages|reduce|window|compressed/narrow_floats"
    "|shared_window/flags)[.]")
  if(sgd_update IN_LIST STEPLADDER_PRIMITIVES)
    string(APPEND always "|all_reduce/mpi/")
  endif()
  set(baseline "")
  set(per_isa "")
  set(by_compiler "")
  set(serial_variant "constexpr VariantInfo info{[^}]*\\.technique = Technique::serial[^}]*};")
  set(cuda "")
  set(cuda_variants "")
  foreach(source IN LISTS sources)
    file(READ ${source} text)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    get_filename_component(variant ${source} NAME_WE)
    string(REGEX REPLACE "^kernels/([^/]+)/.*" "\\1" primitive ${source})

    set(is_variant OFF)
    if(text MATCHES "const Registration registration{")
      set(is_variant ON)
      if(NOT text MATCHES "constexpr VariantInfo info{[^}]*\\.name = \"([a-z0-9_]+)\"[^}]*};")
        message(FATAL_ERROR "${source}: expected "
                            "`constexpr VariantInfo info{.name = \"${variant}\", …};` "
                            "without braces inside")
      endif()
      if(NOT CMAKE_MATCH_1 STREQUAL variant)
        message(FATAL_ERROR "${source}: registers the name \"${CMAKE_MATCH_1}\"; a variant is "
                            "called after its file, \"${variant}\"")
      endif()
    endif()

    if(STEPLADDER_PRIMITIVES AND NOT primitive IN_LIST STEPLADDER_PRIMITIVES
       AND (is_variant OR NOT source MATCHES "^kernels/(${always})"))
      continue()
    endif()

    set(kind baseline)
    if(source MATCHES "\\.cu$")
      set(kind cuda)
      if(is_variant)
        string(APPEND cuda_variants "${source}\n")
      endif()
    elseif(is_variant AND text MATCHES "constexpr VariantInfo info{[^}]*\\.isa = build_isa[^}]*};")
      set(kind per_isa)
    elseif(source MATCHES "^kernels/[^/]+/lattice/")
      set(kind per_isa)
    endif()

    set(why "")
    if(STEPLADDER_FUZZ AND is_variant)
      set(why "left out of the fuzz targets")
    elseif(STEPLADDER_FUZZ AND source MATCHES "^kernels/[^/]+/([^/]+/[^/]+|lattice)/")
      set(why "helps a rung of several files")
    endif()
    foreach(need IN LISTS needs)
      string(REPLACE "|" ";" need "${need}")
      list(GET need 0 pattern)
      list(GET need 1 have)
      if((text MATCHES "#include [<\"]${pattern}[>\"]" OR source MATCHES "${pattern}")
         AND NOT ${have})
        list(GET need 2 why)
      endif()
    endforeach()

    if(why AND is_variant)
      if(kind STREQUAL "per_isa")  # a stub is built once
        set(kind baseline)
      endif()
      write_stub(${source} "${text}" ${primitive} "${why}" source)
      list(APPEND ${kind} ${source})
    elseif(why)
      # a helper of variants that are not built
    else()
      list(APPEND ${kind} ${source})
      if(source MATCHES "^kernels/${primitive}/(${primitive}|reference)\\.cpp$"
         AND NOT primitive STREQUAL "all_reduce")  # which the simulation compiles otherwise
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP contracts)
      endif()
      if((is_variant AND kind STREQUAL "baseline") OR source MATCHES "/lattice/")
        set(plain "-fno-tree-vectorize;-fno-tree-slp-vectorize")
        set(without_pragmas "-fno-openmp;-Wno-unknown-pragmas")
        if(text MATCHES "${serial_variant}")
          write_by_compiler(${source} ${primitive} o3 false vectorized)
          set_source_files_properties(${vectorized} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                                      COMPILE_OPTIONS "${without_pragmas}")
          list(APPEND by_compiler ${vectorized})
          if(text MATCHES "#pragma omp simd")
            # GCC obeys the pragma in spite of the other options. Without OpenMP it cannot use the
            # precompiled header.
            string(APPEND plain ";${without_pragmas}")
            set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
            write_by_compiler(${source} ${primitive} omp_simd true vectorized)
            list(APPEND by_compiler ${vectorized})
          endif()
        endif()
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${plain}")
      endif()
    endif()
  endforeach()

  # Narrow ISAs come first on the link line. Code of the project has a namespace per ISA; this order
  # is for inline functions of the standard library, of which the linker keeps the first copy.
  set(objects "")
  set(isas any ${all_isas})
  set(at_all_widths ${per_isa})
  list(FILTER at_all_widths INCLUDE REGEX "/simd\\.cpp$")
  if(STEPLADDER_FUZZ)  # stubs alone, each built once
    set(isas any)
  endif()
  foreach(isa IN LISTS isas)
    set(vectors "")
    set(of_isa ${baseline})
    if(isa IN_LIST built_isas)
      set(of_isa ${per_isa} ${by_compiler})
    elseif(NOT isa STREQUAL "any")
      set(of_isa ${at_all_widths})
    endif()
    if(NOT of_isa)  # a primitive without simd.cpp
      continue()
    endif()
    add_library(stepladder_kernels_${isa} OBJECT ${of_isa})
    set_target_properties(stepladder_kernels_${isa} PROPERTIES UNITY_BUILD ${STEPLADDER_UNITY}
      UNITY_BUILD_MODE GROUP)  # of files that are not measured
    # A loop takes up to 1.7 times as long where its code begins elsewhere in a line of 64 bytes,
    # which changes with every other function without these options.
    target_compile_options(stepladder_kernels_${isa} PRIVATE -falign-functions=64 -falign-loops=64)
    if(NOT isa STREQUAL "any")
      target_compile_options(stepladder_kernels_${isa} PRIVATE ${isa_${isa}_flags})
      target_compile_definitions(stepladder_kernels_${isa} PRIVATE STEPLADDER_ISA=${isa})
      if(STEPLADDER_SANITIZE MATCHES address)
        # Marking the scope of every vector takes more than half of the compiler's time.
        target_compile_options(stepladder_kernels_${isa} PRIVATE
                               -fno-sanitize-address-use-after-scope)
      endif()
      set(vectors <xsimd/xsimd.hpp>)
    endif()
    list(LENGTH of_isa files)
    if(files GREATER 3)
      target_precompile_headers(stepladder_kernels_${isa} PRIVATE
        <algorithm>
        <memory>
        <string>
        <vector>
        ${vectors})
    endif()
    target_include_directories(stepladder_kernels_${isa} PUBLIC ${CMAKE_SOURCE_DIR})
    target_include_directories(stepladder_kernels_${isa} PRIVATE ${CMAKE_BINARY_DIR}/embedded)
    target_link_libraries(stepladder_kernels_${isa} PUBLIC stepladder_dependencies)
    list(APPEND objects $<TARGET_OBJECTS:stepladder_kernels_${isa}>)
  endforeach()

  if(NOT cuda)  # a primitive without CUDA rungs
    set(cuda ${CMAKE_BINARY_DIR}/missing/cuda.cpp)
    file(CONFIGURE OUTPUT ${cuda} CONTENT "")
  endif()
  add_library(stepladder_kernels_cuda OBJECT ${cuda})
  set_target_properties(stepladder_kernels_cuda PROPERTIES UNITY_BUILD ${STEPLADDER_UNITY}
    UNITY_BUILD_MODE GROUP)
  target_include_directories(stepladder_kernels_cuda PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(stepladder_kernels_cuda PUBLIC stepladder_dependencies)

  # What tells a CUDA rung that was verified on a device from one that was changed since.
  set(digests ${CMAKE_BINARY_DIR}/source_digests)
  file(CONFIGURE OUTPUT ${digests}.txt CONTENT "${cuda_variants}" @ONLY)
  set(script ${CMAKE_SOURCE_DIR}/cmake/source_digests.cmake)
  add_custom_command(
    OUTPUT ${digests}.cpp
    DEPFILE ${digests}.cpp.d
    DEPENDS ${digests}.txt ${script}
    VERBATIM
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DSOURCES=${digests}.txt
            -DOUTPUT=${digests}.cpp -P ${script})
  add_custom_target(stepladder_source_digests DEPENDS ${digests}.cpp)

  # All but the .cu files, for the test that compiles those by itself; and all.
  add_library(stepladder_kernels_cpu INTERFACE)
  target_sources(stepladder_kernels_cpu INTERFACE ${objects})
  target_include_directories(stepladder_kernels_cpu INTERFACE ${CMAKE_SOURCE_DIR})
  target_link_libraries(stepladder_kernels_cpu INTERFACE stepladder_dependencies)
  add_library(stepladder_kernels INTERFACE)
  target_sources(stepladder_kernels INTERFACE $<TARGET_OBJECTS:stepladder_kernels_cuda>)
  target_link_libraries(stepladder_kernels INTERFACE stepladder_kernels_cpu)
  if(STEPLADDER_HAVE_CUDA)  # for the link alone: turning CUDA on recompiles no C++ file
    target_link_libraries(stepladder_kernels INTERFACE $<LINK_ONLY:CUDA::cudart_static>)
  endif()
endfunction()

add_kernels()
