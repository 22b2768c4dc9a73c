// stepladder: what each parallel technique buys in deep learning.
#include <fmt/format.h>

#include <cstdio>

#include "bench/commands.hpp"
#include "bench/help.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"
#include "harness/io/shell.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/measure.hpp"
#include "harness/ranks/mpi_session.hpp"
#include "harness/results/run.hpp"
#include "harness/verify/verify.hpp"

namespace stepladder {
namespace {

std::string typed;  // set once, before any command runs

constexpr int wrong_usage = 2, lost_device = 3, was_interrupted = 130;

// The other ranks must not wait for this one.
void end_unless_shared(const std::exception& error) {
  const MpiSession& mpi = mpi_session();
  if (mpi.ranks() > 1 && !mpi.all_threw(error)) mpi.abort(error.what());
}

// An empty value would mean that the option was not given.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& text : option->results())
      if (text.empty() && option->get_expected_min() > 0)
        throw CLI::ValidationError(option->get_name(), "expected a value, not ''");
}

int dispatch(int count, char** arguments) {
  CLI::App program{
      "What each parallel technique buys in deep learning: kernels verified, timed and chained "
      "into a training step.",
      "stepladder"};
  set_up_help(program);
  program.require_subcommand(1);
  program.set_version_flag("--version", "stepladder 0.1.0");
  const std::vector<Command> commands = {
      list_command(program),    machine_command(program),   verify_command(program),
      bench_command(program),   attribute_command(program), new_command(program),
      try_command(program),
#ifndef STEPLADDER_SOME_PRIMITIVES  // some have no networks
      step_command(program),    infer_command(program),     train_command(program),
      modes_command(program),   plan_command(program),      tune_command(program),
      predict_command(program),
#endif
      compare_command(program), completion_command(program)};
  add_examples(program);
  try {
    const Command* chosen = mpi_session().agree([&]() -> const Command* {
      // CLI11 would not suggest the nearest subcommands.
      if (count > 1 && arguments[1][0] != '-') {
        std::vector<std::string> names;
        bool known = false;
        for (const Command& command : commands) {
          names.push_back(command.app->get_name());
          known = known || names.back() == arguments[1];
        }
        if (!known) throw UnknownName(in_this_build("subcommand"), arguments[1], names);
      }
      program.parse(count, arguments);  // which looks at files
      for (const Command& command : commands)
        if (command.app->parsed()) {
          refuse_empty_values(*command.app);
          return &command;
        }
      return nullptr;
    });
    return chosen != nullptr ? chosen->run() : wrong_usage;
  } catch (const CLI::ParseError& error) {
    end_unless_shared(error);
    if (mpi_session().rank() != 0) return error.get_exit_code() == 0 ? 0 : wrong_usage;
    return program.exit(error) == 0 ? 0 : wrong_usage;
  }
}

template <class Error>
bool is(const std::exception& error) {
  return dynamic_cast<const Error*>(&error) != nullptr;
}

}  // namespace

const std::string& command_line() { return typed; }

}  // namespace stepladder

int main(int count, char** arguments) {
  using namespace stepladder;
  if (!MpiSession::launched_by_mpirun()) pin_threads(arguments);
  for (int i = 0; i < count; ++i) typed += (i > 0 ? " " : "") + shell_quoted(arguments[i]);
  int status = 1;
  try {
    stop_on_signals();
    if (MpiSession::launched_by_mpirun()) mpi_session().start();
    mpi_session().require_same("command line", {typed.substr(typed.find(' ') + 1)});
    status = dispatch(count, arguments);
    if (status == 0) flush_output();
  } catch (const Interrupted&) {  // on every rank
    if (mpi_session().rank() == 0)
      fmt::print(stderr, "stepladder: interrupted; finished results are on disk\n");
    status = was_interrupted;
  } catch (const std::exception& error) {
    const std::string what = std::ferror(stdout) == 0
                                 ? error.what()
                                 : fmt::format("the output cannot be written: {}", error.what());
    if (std::ferror(stdout) != 0 && mpi_session().ranks() > 1) mpi_session().abort(what);
    end_unless_shared(error);
    if (mpi_session().rank() == 0) fmt::print(stderr, "stepladder: {}\n", what);
    status = is<UnknownName>(error) || is<RanksDisagree>(error) ? wrong_usage
             : is<DeviceLost>(error)                            ? lost_device
                                                                : 1;
  }
  return status;
}
