#include "bench/help.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <sstream>

#include "harness/adapters/primitives.hpp"

namespace stepladder {
namespace {

constexpr std::size_t help_columns = 100, name_columns = 30;

using Examples = std::vector<const char*>;
const std::map<std::string, Examples>& examples() {
  static const std::map<std::string, Examples> all = {
      {"list", {"stepladder list matmul"}},
      {"machine", {"stepladder machine", "stepladder machine --json"}},
      {"verify",
       {"stepladder verify matmul convolution --random 2000",
        "stepladder verify matmul --variant 'packed*' --shape 1x1x16777215"}},
      {"bench",
       {"stepladder bench matmul --variant 'packed*' --suite squares --threads 1,2",
        "stepladder bench matmul --shape 100x300x500",
        "stepladder bench matmul --plugin ./libmine.so --blas /opt/lib/libfast.so",
        "mpirun -np 2 build/stepladder bench all_reduce"}},
      {"attribute", {"stepladder attribute matmul --threads 2"}},
      {"new", {"stepladder new matmul my_idea --from simd"}},
      {"try", {"stepladder try packed --primitive matmul --shape 64x512x784"}},
      {"step",
       {"stepladder step --network mnist_cnn --use simd --use best --threads 1,2",
        "stepladder step --network mnist_cnn --trace step.json"}},
      {"infer",
       {"stepladder infer --network mnist_cnn --batch 1,8,64 --use best,vendor --threads 1,2",
        "stepladder infer --network mnist_cnn --weights checkpoints --requests 1000",
        "mpirun -np 2 build/stepladder infer --network mlp --threads 1"}},
      {"train",
       {"stepladder train --network mnist_cnn --epochs 2",
        "mpirun -np 2 build/stepladder train --network mnist_cnn --mode synchronous"}},
      {"plan", {"stepladder plan --network mnist_cnn --ranks 4"}},
      {"tune", {"stepladder tune --network mnist_cnn --out tuned.csv"}},
      {"compare", {"stepladder compare results/local/monday results/local/tuesday"}}};
  return all;
}

// Lines that break between words.
std::string wrapped(const std::string& text, std::size_t columns) {
  std::string lines, line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > columns) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(name_columns); }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    if (const std::size_t none = text.find("=[]"); none != std::string::npos) text.erase(none, 3);
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), help_columns - name_columns);
  }
};

// The options of a command that have names.
std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  std::vector<const CLI::Option*> all;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) all.push_back(option);
  return all;
}

bool takes_file(const CLI::Option& option) {
  for (const char* name : {"out", "suite-file", "plugin", "blas", "record", "trace", "tuned",
                           "network", "data", "checkpoint", "cost-model", "weights", "export"})
    if (option.get_lnames().front() == name) return true;
  return false;
}

std::string words_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : named_options(app))
    words += " --" + option->get_lnames().front();
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional() && option->get_single_name().starts_with("primitive"))
      for (const PrimitiveType* type : primitives()) words += std::string(" ") + type->name();
  return words;
}

// Of troff: backslashes and hyphens, and lines that begin with a dot or a quote.
std::string escaped(const std::string& text) {
  std::string all;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (all.empty() || all.back() == '\n')) all += "\\&";
    if (c == '\\')
      all += "\\e";
    else if (c == '-')
      all += "\\-";
    else
      all += c;
  }
  return all;
}

}  // namespace

void set_up_help(CLI::App& program) {
  program.formatter(std::make_shared<HelpFormatter>());
  program.option_defaults()->always_capture_default();
}

void add_examples(CLI::App& program) {
  for (CLI::App* command : program.get_subcommands({})) {
    const auto found = examples().find(command->get_name());
    if (found == examples().end()) continue;
    std::string text = command->get_footer();
    text += text.empty() ? "Examples:" : "\n\nExamples:";
    for (const char* example : found->second) text += std::string("\n  ") + example;
    command->footer(text);
  }
}

std::string bash_completion(const CLI::App& program) {
  std::string names, cases;
  for (const CLI::App* command : program.get_subcommands({})) {
    names += " " + command->get_name();
    std::string files;
    for (const CLI::Option* option : named_options(*command))
      if (takes_file(*option))
        files += (files.empty() ? "--" : "|--") + option->get_lnames().front();
    cases += fmt::format("    {})\n      words='{}'\n", command->get_name(), words_of(*command));
    if (!files.empty()) cases += fmt::format("      files='{}'\n", files);
    cases += "      ;;\n";
  }
  return fmt::format(R"(# bash completion of stepladder, written by `stepladder completion bash`
_stepladder() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words='' files=''
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words='{}'; fi
  if [ -n "$files" ] && [[ $before =~ ^($files)$ ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}
complete -F _stepladder stepladder
)",
                     cases, names);
}

std::string zsh_completion(const CLI::App& program) {
  return "#compdef stepladder\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash_completion(program);
}

std::string man_page(const CLI::App& program) {
  std::string text = ".TH STEPLADDER 1\n.SH NAME\nstepladder \\- " +
                     escaped("what each parallel technique buys in deep learning") +
                     "\n.SH SYNOPSIS\n.B stepladder\nCOMMAND [OPTIONS]\n.SH DESCRIPTION\n" +
                     escaped(program.get_description()) + "\n.SH COMMANDS\n";
  for (const CLI::App* command : program.get_subcommands({})) {
    text +=
        ".SS " + escaped(command->get_name()) + "\n" + escaped(command->get_description()) + "\n";
    for (const CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_size() == 0 ? "" : " " + option->get_type_name();
      text += ".TP\n.B " + escaped(option->get_name(option->get_positional()) + type) + "\n" +
              escaped(option->get_description()) + "\n";
    }
    if (!command->get_footer().empty())
      text += ".PP\n.nf\n" + escaped(command->get_footer()) + "\n.fi\n";
  }
  return text + ".SH EXIT STATUS\n0 success, 1 failure, 2 wrong usage, 4 nothing was verified\n";
}

}  // namespace stepladder
