#include "scheduler/cli/cli_help.h"

#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "scheduler/cli/cli_commands.h"
#include "scheduler/cli/output/suggestion.h"

namespace tranche {
namespace {

bool HasServerOptions(const CLI::App& app) {
  const auto options = app.get_options(
      [](const CLI::Option* option) { return option->get_group() == kServerGroup; });
  return !options.empty();
}

class HelpLayout : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string out = make_description(app) + make_usage(app, std::move(name));
    out += make_positionals(app) + OptionGroups(*app) + make_subcommands(app, mode);
    if (const std::string footer = make_footer(app); !footer.empty()) out += '\n' + footer;
    return out;
  }

 private:
  std::string OptionGroups(const CLI::App& app) const {
    std::string out;
    const bool with_server = app.get_name() == kOptionsCommand;
    for (const std::string& group : app.get_groups()) {
      if (group.empty() || (group == kServerGroup && !with_server)) continue;
      const auto options = app.get_options([&group](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional();
      });
      if (!options.empty()) out += make_group(group, /*is_positional=*/false, options);
    }
    if (!with_server && HasServerOptions(app)) {
      const CLI::App* program = &app;
      while (program->get_parent() != nullptr) program = program->get_parent();
      out += fmt::format("\n{}: see {} {}\n", kServerGroup, program->get_name(), kOptionsCommand);
    }
    return out;
  }
};

std::vector<const CLI::App*> CommandsBelow(const CLI::App& app) {
  return app.get_subcommands(std::function<bool(const CLI::App*)>());
}

std::vector<std::string> SpellingsOf(const CLI::App& app) {
  std::vector<std::string> spellings;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) spellings.push_back("--" + name);
  }
  return spellings;
}

}  // namespace

void SetHelpLayout(CLI::App& app) { app.formatter(std::make_shared<HelpLayout>()); }

void AddExamples(CLI::App& command, const std::string& program,
                 const std::vector<Example>& examples) {
  std::string text = "Examples:";
  for (const Example& example : examples) {
    text += fmt::format("\n  # {}\n  {} {}", example.what, program, example.line);
  }
  command.footer(text);
}

std::string SuggestionFor(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument.starts_with("--")) {
      const std::string flag = argument.substr(0, argument.find('='));
      const std::vector<std::string> known = SpellingsOf(*at);
      if (std::find(known.begin(), known.end(), flag) == known.end()) {
        return DidYouMean(flag, known);
      }
    }
    const std::vector<const CLI::App*> commands = CommandsBelow(*at);
    if (argument.starts_with('-') || commands.empty()) continue;
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const auto found = std::find(names.begin(), names.end(), argument);
    if (found == names.end()) return DidYouMean(argument, names);
    at = commands[static_cast<std::size_t>(found - names.begin())];
  }
  return "";
}

std::vector<std::string> WordsOf(const std::string& type_name) {
  if (type_name.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  for (std::size_t start = 0; start <= type_name.size();) {
    const std::size_t end = std::min(type_name.find('|', start), type_name.size());
    std::string& word = words.emplace_back(type_name.substr(start, end - start));
    if (word.ends_with("...")) word.resize(word.size() - 3);
    start = end + 1;
  }
  return words;
}

}  // namespace tranche
