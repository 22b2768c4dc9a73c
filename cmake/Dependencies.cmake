# What the build stands on. Required things stop the configuration with the Debian package's name;
# optional ones are remembered as STEPLADDER_HAVE_… and cost only the variants that include them.
# All of it may come from a prefix folder: -DCMAKE_PREFIX_PATH=DIR.

set(missing "")
macro(require package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    string(APPEND missing "  ${package} (Debian: ${debian})\n")
  endif()
endmacro()

require(OpenMP g++ COMPONENTS CXX)
require(Threads libc6-dev)
require(ZLIB zlib1g-dev)
require(fmt libfmt-dev CONFIG)
require(CLI11 libcli11-dev CONFIG)
require(nlohmann_json nlohmann-json3-dev CONFIG)
require(benchmark libbenchmark-dev CONFIG)
require(GTest libgtest-dev)
# Headers alone: the CMake package of Debian's xsimd asks for xtl, which is not used here.
find_path(XSIMD_INCLUDE_DIR xsimd/xsimd.hpp)
if(NOT XSIMD_INCLUDE_DIR)
  string(APPEND missing "  xsimd (Debian: libxsimd-dev)\n")
endif()
find_path(HWLOC_INCLUDE_DIR hwloc.h)
find_library(HWLOC_LIBRARY hwloc)
if(NOT HWLOC_INCLUDE_DIR OR NOT HWLOC_LIBRARY)
  string(APPEND missing "  hwloc (Debian: libhwloc-dev)\n")
endif()
if(missing)
  message(FATAL_ERROR "Not found:\n${missing}`make setup` installs them; or name a prefix folder that "
                      "holds them with -DCMAKE_PREFIX_PATH=DIR.")
endif()

add_library(stepladder_dependencies INTERFACE)
target_link_libraries(stepladder_dependencies INTERFACE
  OpenMP::OpenMP_CXX Threads::Threads ZLIB::ZLIB fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json
  benchmark::benchmark ${HWLOC_LIBRARY} ${CMAKE_DL_LIBS})
target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${HWLOC_INCLUDE_DIR} ${XSIMD_INCLUDE_DIR})

# The C interface of MPI is all that is used; MPI_SKIP_MPICXX keeps out the removed C++ one.
find_package(MPI QUIET COMPONENTS C)
set(STEPLADDER_HAVE_MPI ${MPI_C_FOUND})
if(STEPLADDER_HAVE_MPI)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
  target_link_libraries(stepladder_dependencies INTERFACE ${MPI_C_LIBRARIES})
  target_compile_definitions(stepladder_dependencies INTERFACE
    STEPLADDER_HAVE_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endif()

# By header and library: the CMake package of Debian's oneDNN asks for OpenCL, which is not used here.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
set(STEPLADDER_HAVE_ONEDNN OFF)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  set(STEPLADDER_HAVE_ONEDNN ON)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
  target_link_libraries(stepladder_dependencies INTERFACE ${DNNL_LIBRARY})
  target_compile_definitions(stepladder_dependencies INTERFACE STEPLADDER_HAVE_ONEDNN)
endif()

# Of CUDA only the runtime is linked, statically: a machine without an NVIDIA driver starts the program
# as fast as ever. cuBLAS, cuDNN and NCCL are opened when a first plan asks for them (see
# kernels/common/shared_library.hpp): the build needs their headers, the run their libraries, which
# the run path leads to.
include(CheckLanguage)
check_language(CUDA)
set(STEPLADDER_HAVE_CUDA OFF)
set(STEPLADDER_HAVE_CUBLAS OFF)
set(STEPLADDER_HAVE_CUDNN OFF)
set(STEPLADDER_HAVE_NCCL OFF)
set(STEPLADDER_NVCC_VERSION 0)
if(CMAKE_CUDA_COMPILER)
  # Before CMake tries it: an older nvcc may not know the architectures.
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(STEPLADDER_NVCC_VERSION ${CMAKE_MATCH_1})
  endif()
  if(STEPLADDER_NVCC_VERSION VERSION_LESS 13.0)
    message(WARNING "${CMAKE_CUDA_COMPILER} is version ${STEPLADDER_NVCC_VERSION}; the CUDA rungs need 13.0 or newer "
                    "and are left out")
  endif()
endif()
if(STEPLADDER_NVCC_VERSION VERSION_GREATER_EQUAL 13.0 AND NOT STEPLADDER_SANITIZE)
  set(CMAKE_CUDA_ARCHITECTURES ${STEPLADDER_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  if(STEPLADDER_WERROR)
    add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>
                        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>)
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(STEPLADDER_HAVE_CUDA ON)
  target_link_libraries(stepladder_dependencies INTERFACE CUDA::cudart_static)
  foreach(library CUBLAS CUDNN NCCL)
    string(TOLOWER ${library} name)
    find_path(${library}_INCLUDE_DIR NAMES ${name}_v2.h ${name}.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(${library}_LIBRARY ${name} HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(${library}_INCLUDE_DIR)
      set(STEPLADDER_HAVE_${library} ON)
      target_include_directories(stepladder_dependencies SYSTEM INTERFACE
                                 $<$<COMPILE_LANGUAGE:CUDA>:${${library}_INCLUDE_DIR}>)
    endif()
    if(${library}_LIBRARY)
      get_filename_component(folder ${${library}_LIBRARY} DIRECTORY)
      target_link_options(stepladder_dependencies INTERFACE LINKER:-rpath,${folder})
    endif()
  endforeach()
endif()

foreach(what MPI ONEDNN CUDA CUBLAS CUDNN NCCL)
  message(STATUS "stepladder: ${what} ${STEPLADDER_HAVE_${what}}")
endforeach()
