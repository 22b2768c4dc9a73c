// stepladder completion: scripts that complete its command line in a shell, and the man page.
#include <fmt/format.h>

#include <memory>

#include "bench/commands.hpp"
#include "bench/help.hpp"

namespace stepladder {

Command completion_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "completion", "Print the completion of its command line for a shell, or the man page");
  auto kind = std::make_shared<std::string>();
  app->add_option("kind", *kind, "bash, zsh or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "man"}));
  return {app, [kind, &program] {
            fmt::print("{}", *kind == "bash"  ? bash_completion(program)
                             : *kind == "zsh" ? zsh_completion(program)
                                              : man_page(program));
            return 0;
          }};
}

}  // namespace stepladder
