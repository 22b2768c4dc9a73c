// stepladder new: the file of a new rung, copied from that of another.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <memory>
#include <regex>

#include "bench/commands.hpp"
#include "harness/adapters/primitives.hpp"
#include "harness/io/file.hpp"
#include "harness/io/nearest.hpp"

namespace stepladder {
namespace {

struct NewOptions {
  std::string primitive, name, from;
};

std::string text_of(const std::filesystem::path& file) {
  const std::vector<std::uint8_t> bytes = read_bytes(file);
  return {bytes.begin(), bytes.end()};
}

// The file that registers the rung.
std::filesystem::path file_of(const std::string& primitive, const std::string& rung) {
  const std::string registration = fmt::format(".name = \"{}\"", rung);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_directory() / "kernels" / primitive))
    if (entry.path().extension() == ".cpp" &&
        text_of(entry.path()).find(registration) != std::string::npos)
      return entry.path();
  throw std::runtime_error(
      fmt::format("no .cpp file below kernels/{} registers {}", primitive, rung));
}

// The comment in front of the first line of code says what to do.
std::string with_instructions(const std::string& text, const NewOptions& options) {
  std::size_t code = 0;
  while (text.compare(code, 2, "//") == 0) code = text.find('\n', code) + 1;
  return fmt::format(
             "// {0}: say here what is new, and what gain is expected of it, and why. It began\n"
             "// as a copy of `{2}`.\n"
             "//\n"
             "// kernels/{1}/{1}.hpp has the contract: the problem, the shapes and layouts of the\n"
             "// operands. A plan is made once for a problem, allocates there, and throws\n"
             "// Unsupported for problems that it cannot compute. run() is timed, reads all\n"
             "// operands anew in every call, and allocates nothing.\n",
             options.name, options.primitive, options.from) +
         text.substr(code);
}

// my_idea: MyIdea
std::string class_name(const std::string& rung) {
  std::string name;
  bool is_first = true;
  for (const char letter : rung) {
    if (letter != '_')
      name +=
          is_first ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    is_first = letter == '_';
  }
  return name;
}

// What tells the copy from its source: fields of VariantInfo, and the name of its class.
std::string renamed(std::string text, const NewOptions& options) {
  std::smatch found;
  if (const std::string source = text;
      std::regex_search(source, found, std::regex(R"(\nclass (\w+) )")))
    text = std::regex_replace(text, std::regex(fmt::format(R"(\b{}\b)", found[1].str())),
                              class_name(options.name));
  const std::string name = fmt::format("    .name = \"{}\",", options.name),
                    builds_on = fmt::format("    .builds_on = \"{}\",", options.from);
  const std::regex own_name(fmt::format(R"re( *\.name = "{}",)re", options.from));
  const std::regex adds(R"re( *\.adds =(\s*"([^"\\]|\\.)*")+,)re");
  const std::regex below(R"re( *\.builds_on = "\w*",\n)re");
  text = std::regex_replace(text, below, "");
  text = std::regex_replace(text, own_name, name);
  text = std::regex_replace(
      text, adds,
      builds_on + "\n    .adds = \"what it adds to " + options.from + ", in one sentence\",");
  constexpr const char* others = "  // or another of kernels/common/variant.hpp";
  if (text.find(".idea = ") == std::string::npos)
    return std::regex_replace(text, std::regex(R"re(( *\.adds = [^\n]*\n))re"),
                              fmt::format("$1    .idea = Idea::loop_order,{}\n", others));
  return std::regex_replace(text, std::regex(R"re(( *\.idea = Idea::\w+,)\n)re"),
                            fmt::format("$1{}\n", others));
}

int run(const NewOptions& options) {
  const PrimitiveType& type = primitive(options.primitive);
  std::vector<std::string> rungs;
  for (const Variant& variant : type.variants()) {
    if (variant.info->name == options.name)
      throw std::runtime_error(
          fmt::format("{} has a rung {} already", options.primitive, options.name));
    if (variant.info->place == Place::cpu) rungs.emplace_back(variant.info->name);
  }
  if (std::find(rungs.begin(), rungs.end(), options.from) == rungs.end())
    throw UnknownName("rung of " + options.primitive, options.from, rungs);
  const std::filesystem::path from = file_of(options.primitive, options.from),
                              to = from.parent_path() / (options.name + ".cpp");
  if (exists(to)) throw std::runtime_error(to.string() + " is there already");
  replace_file(to, renamed(with_instructions(text_of(from), options), options));
  fmt::print("{}\nChange it, then: make try VARIANT={} PRIMITIVE={}\n",
             relative(to, source_directory()).string(), options.name, options.primitive);
  return 0;
}

}  // namespace

Command new_command(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("new", "Write the file of a new rung, as a copy of another");
  auto options = std::make_shared<NewOptions>();
  app->add_option("primitive", options->primitive, "Primitive")->required();
  app->add_option("name", options->name, "Name of the new rung")
      ->required()
      ->check([](const std::string& name) {
        static const std::regex words("[a-z][a-z0-9_]*");
        return std::regex_match(name, words)
                   ? std::string()
                   : "expected lower-case letters, digits and _, not '" + name + "'";
      });
  app->add_option("--from", options->from, "The rung to begin with, which it builds on")
      ->required();
  return {app, [options] { return run(*options); }};
}

}  // namespace stepladder
