// A vendor's library that is opened when the first plan asks for it. Linked, the large ones would
// delay every start of the program (cuBLAS and cuDNN by 0.1 s, from a cold disk by a second) and
// keep it from starting on a machine that lacks them.
#pragma once

#include <dlfcn.h>

#include <string>

#include "kernels/common/variant.hpp"

namespace stepladder {

class SharedLibrary {
 public:
  // Throws NotHere, with the loader's words, when the library is not found. It is never closed:
  // plans hold its functions.
  explicit SharedLibrary(const std::string& name)
      : name_(name), handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw NotHere(dlerror());
  }

  // Becomes a pointer to a function of whatever type it initialises:
  //     decltype(&::cublasCreate_v2) create = library["cublasCreate_v2"];
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  // Throws NotHere when the library has no such function.
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
