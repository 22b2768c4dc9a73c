// The subcommands of the program; each is defined in the file of its name.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace stepladder {

struct Command {
  CLI::App* app;             // its options fill what run() reads
  std::function<int()> run;  // exit status: 0 success, 1 failure, 2 wrong usage, nothing_verified
};

constexpr int nothing_verified = 4;

Command list_command(CLI::App& program);
Command machine_command(CLI::App& program);
Command verify_command(CLI::App& program);
Command bench_command(CLI::App& program);
Command attribute_command(CLI::App& program);
Command new_command(CLI::App& program);
Command try_command(CLI::App& program);
Command step_command(CLI::App& program);
Command infer_command(CLI::App& program);
Command train_command(CLI::App& program);
Command modes_command(CLI::App& program);
Command plan_command(CLI::App& program);
Command tune_command(CLI::App& program);
Command predict_command(CLI::App& program);
Command compare_command(CLI::App& program);
Command completion_command(CLI::App& program);

const std::string& command_line();  // as the user typed it, quoted for a shell

}  // namespace stepladder
