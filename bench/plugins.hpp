// Rungs from shared objects: of the user's own functions (plugin.h), or any library with
// cblas_sgemm.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace stepladder {

// Registers --plugin FILE (libmine.so: the rung `mine`) and --blas FILE (libfast.so: `blas_fast`),
// both repeatable. They add their rungs when they are parsed, before the command looks at variants.
// `arguments` receives them as they are repeated in another command line.
void add_plugin_options(CLI::App& app, std::string& arguments);

}  // namespace stepladder
