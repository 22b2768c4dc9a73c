// A vendor library that is opened by the first plan that needs it. If the large ones were linked,
// they would delay every start of the program (cuBLAS and cuDNN by 0.1 s, from a cold disk by a
// second), and the program would not start on a machine without them.
#pragma once

#include <dlfcn.h>

#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder {

// Flags of dlopen. MKL makes the functions of its parts global, those of BLAS and of FFTW: without
// RTLD_DEEPBIND, a library that is opened later calls MKL's wherever they have the name of its own.
// AddressSanitizer forbids the flag.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr int own_functions_first = RTLD_LOCAL;
#else
inline constexpr int own_functions_first = RTLD_LOCAL | RTLD_DEEPBIND;
#endif

class SharedLibrary {
 public:
  // Throws NotHere with the loader's message if the library is not found. It is never closed, since
  // plans keep pointers to its functions. `flags`: of dlopen, besides RTLD_NOW.
  explicit SharedLibrary(const std::string& name, int flags = RTLD_LOCAL)
      : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | flags)) {
    if (handle_ == nullptr) throw NotHere(dlerror());
  }

  // Converts to a pointer to function of any type:
  //     decltype(&::cublasCreate_v2) create = library["cublasCreate_v2"];
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  bool has(const char* function) const { return dlsym(handle_, function) != nullptr; }

  // Throws NotHere if the library has no such function.
  Symbol operator[](const char* function) const {
    void* address = dlsym(handle_, function);
    if (address == nullptr) throw NotHere(name_ + " has no function " + function);
    return {address};
  }

 private:
  std::string name_;
  void* handle_;
};

}  // namespace stepladder
