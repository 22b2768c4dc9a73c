// The texts that explain the command line: --help, examples, completion, the man page. All are made
// from the registered options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace stepladder {

// Before subcommands are added: --help has lines of 100 columns and names default values.
void set_up_help(CLI::App& program);
// After they are added.
void add_examples(CLI::App& program);

std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string man_page(const CLI::App& program);

}  // namespace stepladder
