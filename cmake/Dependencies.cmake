# Libraries. A missing required one stops the configuration and names its Debian package; a missing
# optional one sets STEPLADDER_HAVE_<LIBRARY> to OFF and costs only the variants that include it.
# Libraries in a prefix folder are found with -DCMAKE_PREFIX_PATH=DIR.

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
# Headers only: the CMake package of xsimd in Debian requires xtl, which is not used here.
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
  message(FATAL_ERROR "Not found:\n${missing}`make setup` installs them; or name a prefix folder "
                      "that holds them with -DCMAKE_PREFIX_PATH=DIR.")
endif()

add_library(stepladder_dependencies INTERFACE)
target_link_libraries(stepladder_dependencies INTERFACE
  OpenMP::OpenMP_CXX Threads::Threads ZLIB::ZLIB fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json
  benchmark::benchmark ${HWLOC_LIBRARY} ${CMAKE_DL_LIBS})
target_include_directories(stepladder_dependencies SYSTEM INTERFACE
  ${HWLOC_INCLUDE_DIR} ${XSIMD_INCLUDE_DIR})

# Only the C interface of MPI is used; MPI_SKIP_MPICXX excludes the removed C++ bindings.
find_package(MPI QUIET COMPONENTS C)
set(STEPLADDER_HAVE_MPI ${MPI_C_FOUND})
if(STEPLADDER_HAVE_MPI)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${MPI_C_INCLUDE_DIRS})
  target_link_libraries(stepladder_dependencies INTERFACE ${MPI_C_LIBRARIES})
  target_compile_definitions(stepladder_dependencies INTERFACE
    STEPLADDER_HAVE_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endif()

# `make bench` installs the newest vendor libraries of the Python registry there.
set(STEPLADDER_LIBRARIES newest CACHE STRING
    "Vendor libraries: newest (those in .libraries first) or system")
set(newest "")
if(STEPLADDER_LIBRARIES STREQUAL "newest" AND EXISTS ${CMAKE_SOURCE_DIR}/.libraries/lib)
  set(newest ${CMAKE_SOURCE_DIR}/.libraries)
  target_link_options(stepladder_dependencies INTERFACE LINKER:-rpath,${newest}/lib)  # to open MKL
endif()

# By header and library: the CMake package of oneDNN in Debian requires OpenCL.
unset(DNNL_INCLUDE_DIR CACHE)
unset(DNNL_LIBRARY CACHE)
find_path(DNNL_INCLUDE_DIR dnnl.hpp HINTS ${newest}/include)
find_library(DNNL_LIBRARY dnnl HINTS ${newest}/lib)
set(STEPLADDER_HAVE_ONEDNN OFF)
if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
  set(STEPLADDER_HAVE_ONEDNN ON)
  target_link_libraries(stepladder_dependencies INTERFACE ${DNNL_LIBRARY})
  target_compile_definitions(stepladder_dependencies INTERFACE STEPLADDER_HAVE_ONEDNN)
endif()

find_path(ZSTD_INCLUDE_DIR zstd.h)
find_library(ZSTD_LIBRARY zstd)
set(STEPLADDER_HAVE_ZSTD OFF)
if(ZSTD_INCLUDE_DIR AND ZSTD_LIBRARY)
  set(STEPLADDER_HAVE_ZSTD ON)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${ZSTD_INCLUDE_DIR})
  target_link_libraries(stepladder_dependencies INTERFACE ${ZSTD_LIBRARY})
endif()

# The header alone: the library is opened at run time (kernels/common/shared_library.hpp).
find_path(FFTW_INCLUDE_DIR fftw3.h)
set(STEPLADDER_HAVE_FFTW OFF)
if(FFTW_INCLUDE_DIR)
  set(STEPLADDER_HAVE_FFTW ON)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${FFTW_INCLUDE_DIR})
endif()

# The loader of OpenCL is small; it opens the platforms of the machine when it is first asked for
# them. CLBlast is opened at run time.
find_path(OPENCL_INCLUDE_DIR CL/cl.h)
find_library(OPENCL_LIBRARY OpenCL)
find_path(CLBLAST_INCLUDE_DIR clblast_c.h)
set(STEPLADDER_HAVE_OPENCL OFF)
set(STEPLADDER_HAVE_CLBLAST OFF)
if(OPENCL_INCLUDE_DIR AND OPENCL_LIBRARY)
  set(STEPLADDER_HAVE_OPENCL ON)
  target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${OPENCL_INCLUDE_DIR})
  target_link_libraries(stepladder_dependencies INTERFACE ${OPENCL_LIBRARY})
  target_compile_definitions(stepladder_dependencies INTERFACE
    STEPLADDER_HAVE_OPENCL CL_TARGET_OPENCL_VERSION=120)
  if(CLBLAST_INCLUDE_DIR)
    set(STEPLADDER_HAVE_CLBLAST ON)
    target_include_directories(stepladder_dependencies SYSTEM INTERFACE ${CLBLAST_INCLUDE_DIR})
  endif()
endif()

# Only the CUDA runtime is linked, statically, so that the program starts without an NVIDIA driver.
# cuBLAS, cuDNN and NCCL are opened at run time (kernels/common/shared_library.hpp): the build needs
# their headers, and the run path leads to their libraries.
#
# STEPLADDER_CUDA: AUTO builds the .cu files where an NVIDIA GPU is present, for that GPU; ON builds
# them on any machine; OFF never does. STEPLADDER_CUDA_ARCHITECTURES overrides the architectures.
set(STEPLADDER_HAVE_CUDA OFF)
set(STEPLADDER_HAVE_CUBLAS OFF)
set(STEPLADDER_HAVE_CUDNN OFF)
set(STEPLADDER_HAVE_NCCL OFF)
set(STEPLADDER_WHY_NO_CUDA "built without CUDA (nvcc 13.0 or newer was not found)")

set(cuda_wanted ${STEPLADDER_CUDA})
set(gpu_architectures "")
if(cuda_wanted STREQUAL "AUTO")
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                  OUTPUT_VARIABLE text RESULT_VARIABLE status ERROR_QUIET)
  if(status EQUAL 0)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" gpu_architectures "${text}")
    string(REPLACE "." "" gpu_architectures "${gpu_architectures}")
    list(REMOVE_DUPLICATES gpu_architectures)
    list(TRANSFORM gpu_architectures REPLACE "^90$" "90a")  # wgmma and the TMA are in 90a alone
  endif()
  if(NOT gpu_architectures)
    set(STEPLADDER_WHY_NO_CUDA
        "built without CUDA (no NVIDIA GPU was found, CUDA=ON builds it anyway)")
    set(cuda_wanted OFF)
  endif()
elseif(NOT cuda_wanted)
  set(STEPLADDER_WHY_NO_CUDA "built without CUDA (CUDA=OFF)")
endif()
if(cuda_wanted AND STEPLADDER_SANITIZE)
  set(STEPLADDER_WHY_NO_CUDA "built without CUDA (sanitizers do not run with it)")
  set(cuda_wanted OFF)
endif()

if(cuda_wanted)
  include(CheckLanguage)
  check_language(CUDA)
  set(nvcc_version 0)
  if(CMAKE_CUDA_COMPILER)
    # Before CMake tries the compiler: an older nvcc may not know the architectures.
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE text ERROR_QUIET)
    if(text MATCHES "release ([0-9]+\\.[0-9]+)")
      set(nvcc_version ${CMAKE_MATCH_1})
    endif()
  endif()
  if(nvcc_version VERSION_LESS 13.0)
    if(CMAKE_CUDA_COMPILER)
      string(CONCAT problem "${CMAKE_CUDA_COMPILER} is version ${nvcc_version}; "
                            "the CUDA rungs need 13.0 or newer")
    else()
      set(problem "nvcc was not found; the CUDA rungs need version 13.0 or newer")
    endif()
    if(STEPLADDER_CUDA STREQUAL "AUTO")
      message(WARNING "${problem} and are left out")
    else()
      message(FATAL_ERROR "CUDA=ON: ${problem}")
    endif()
    set(cuda_wanted OFF)
  endif()
endif()

if(cuda_wanted)
  if(STEPLADDER_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES ${STEPLADDER_CUDA_ARCHITECTURES})
  elseif(gpu_architectures)
    set(CMAKE_CUDA_ARCHITECTURES ${gpu_architectures})
  else()
    set(CMAKE_CUDA_ARCHITECTURES 75 80 90a)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 does not know the option of nvcc.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
  if(STEPLADDER_WERROR)
    add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>
                        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>)
    list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER sh ${CMAKE_SOURCE_DIR}/cmake/nvcc_checked.sh)
  endif()
  find_package(CUDAToolkit REQUIRED)
  set(STEPLADDER_HAVE_CUDA ON)
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

foreach(what MPI ONEDNN ZSTD FFTW OPENCL CLBLAST CUDA CUBLAS CUDNN NCCL)
  message(STATUS "stepladder: ${what} ${STEPLADDER_HAVE_${what}}")
endforeach()
