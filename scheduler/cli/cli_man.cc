#include "scheduler/cli/cli_man.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "scheduler/api/pages.h"
#include "scheduler/cli/cli_commands.h"
#include "scheduler/cli/cli_help.h"

namespace tranche {
namespace {

using Commands = std::vector<const CLI::App*>;

Commands CommandsOf(const CLI::App& app) {
  return app.get_subcommands(std::function<bool(const CLI::App*)>());
}

// Text as it is to be printed: nothing in it is a request or escape to roff.
std::string Plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && out.empty()) {
      out += fmt::format("\\&{}", c);
    } else {
      out += c;
    }
  }
  return out;
}

// Begins with a capital, unless its first word is a name.
std::string Sentence(std::string text) {
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz'");
  if (end != 0 && (end == std::string::npos || text[end] == ' ' || text[end] == ',')) {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

std::string Bold(std::string_view text) { return fmt::format("\\fB{}\\fR", Plain(text)); }
std::string Italic(std::string_view text) { return fmt::format("\\fI{}\\fR", Plain(text)); }

// FILE, or bold words between bars.
std::string Value(const std::string& type) {
  std::string out;
  if (type.find('|') == std::string::npos) return Italic(type);
  for (const std::string& word : WordsOf(type)) out += (out.empty() ? "" : "|") + Bold(word);
  return out;
}

// "-o, --output table|json"
std::string Tag(const CLI::Option& option) {
  if (option.get_positional()) return Value(option.get_type_name());
  std::string tag;
  const auto add = [&tag](const std::string& spelling) {
    tag += (tag.empty() ? "" : ", ") + Bold(spelling);
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (TakesValue(option)) tag += " " + Value(option.get_type_name());
  return tag;
}

void AddOption(const CLI::Option& option, std::string& out) {
  out += fmt::format(".TP\n{}\n{}", Tag(option), Plain(Sentence(option.get_description())));
  std::string more;
  const auto add = [&more](const std::string& text) { more += (more.empty() ? "" : "; ") + text; };
  if (option.get_required() && !option.get_positional()) add("required");
  if (!option.get_default_str().empty()) add("default " + Plain(option.get_default_str()));
  if (!option.get_envname().empty()) add("environment " + Bold(option.get_envname()));
  out += more.empty() ? ".\n" : fmt::format(" ({}).\n", more);
}

std::string UsageOf(const CLI::App& command, const std::string& path) {
  std::string usage = Bold(path);
  bool optional = false;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) continue;
    if (option->get_required()) {
      usage += " " + Bold(option->get_snames().empty() ? "--" + option->get_lnames().front()
                                                       : "-" + option->get_snames().front());
      usage += " " + Value(option->get_type_name()) + (MayRepeat(*option) ? " ..." : "");
    } else {
      optional = true;
    }
  }
  if (optional) usage += " [" + Italic("option") + " ...]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string value = Value(option->get_type_name()) + (MayRepeat(*option) ? " ..." : "");
    usage += option->get_required() ? " " + value : " [" + value + "]";
  }
  return usage;
}

void AddCommand(const CLI::App& command, const std::string& path, std::string& out) {
  const Commands below = CommandsOf(command);
  if (!below.empty()) {
    for (const CLI::App* one : below) AddCommand(*one, path + " " + one->get_name(), out);
    return;
  }
  out += fmt::format(".SS {}\n{}\n.PP\n{}.\n", Plain(path.substr(path.rfind("tranche ") + 8)),
                     UsageOf(command, path), Plain(Sentence(command.get_description())));
  bool asks_server = false;
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    if (option->get_group() == kServerGroup) {
      asks_server = true;
    } else {
      AddOption(*option, out);
    }
  }
  if (asks_server) out += ".PP\nWhich server it asks: see SERVER OPTIONS.\n";
}

// The first command that asks a server; they all have the same options for it.
void AddServerOptions(const CLI::App& app, std::string& out) {
  for (const CLI::App* command : CommandsOf(app)) {
    const auto options = command->get_options(
        [](const CLI::Option* option) { return option->get_group() == kServerGroup; });
    for (const CLI::Option* option : options) AddOption(*option, out);
    if (!options.empty()) return;
  }
}

void CollectEnvironment(const CLI::App& app, std::map<std::string, std::string>& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_envname().empty()) out[option->get_envname()] = option->get_lnames().front();
  }
  for (const CLI::App* command : CommandsOf(app)) CollectEnvironment(*command, out);
}

constexpr const char* kDescription = R"(.SH DESCRIPTION
Tranche is a GPU scheduler extender for Kubernetes: kube\-scheduler asks it to filter, rank and bind
pods that want whole GPUs, fractions of GPUs or MIG slices.
It holds every team to its GPU quota and GPU\-hour budget, takes lent capacity back, and tells why a
pod waits.
.PP
.B serve
is the server.
.BR nodes ", " pods ", " queue ", " quota ", " reclaims ", " audit ,
.BR top ", " explain ", " plan " and " whatif
ask one that runs: by its URL
.RB ( \-\-server ),
or through the API server of a kubeconfig
.RB ( \-\-kubeconfig ", " \-\-context ", " \-\-service ),
for which who asks needs
.B get
on the subresource
.B services/proxy
of the Service, and
.B create
for
.BR plan " and " whatif .
Called as
.BR "kubectl tranche" ,
through a program or link of the name kubectl\-tranche in PATH, the latter is what happens without
.BR \-\-server .
The other commands need no server.
)";

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
A no: the pod does not fit or is not known; the ledger, the books or an object are not as they
should be.
.TP
.B 2
A mistake in the command line, the configuration or a file, or the server cannot be asked.
The error is one line on standard error: what was expected, what was found, and where.
.SH EXAMPLES
.TP
.B tranche explain team\-language/pretrain\-next
Why this pod waits: every node's answer, with numbers.
.TP
.B tranche nodes \-\-sort\-by free \-o wide
The fullest nodes first, with all columns.
.TP
.B tranche quota \-o json | jq \(aq.quotas[].name\(aq
The answer of the server as it is.
.TP
.B tranche nodes \-\-server https://tranche.example \-\-token\-file token
A server that asks for a token.
.TP
.B kubectl tranche top \-\-context prod
The same through the API server of a context.
.TP
.B source <(tranche completion bash)
Completes command lines in this shell.
.SH SEE ALSO
.BR kubectl (1),
.BR nvidia\-smi (1)
)";

}  // namespace

std::string ManualPage(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string out = fmt::format(
      ".TH TRANCHE 1 \"\" \"Tranche {}\" \"User Commands\"\n.SH NAME\n"
      "tranche \\- {}\n.SH SYNOPSIS\n{} {} [{} ...]\n.br\n{} {}|{}\n{}",
      Plain(Version()), Plain(app.get_description()), Bold(name), Italic("command"),
      Italic("option"), Bold(name), Bold("--help"), Bold("--version"), kDescription);
  out += fmt::format(".SH OPTIONS\n.TP\n{}, {}\nHelp; after a command, that of the command.\n",
                     Bold("-h"), Bold("--help"));
  for (const CLI::Option* option : app.get_options()) {
    if (option != app.get_help_ptr()) AddOption(*option, out);
  }
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : CommandsOf(app)) {
    AddCommand(*command, name + " " + command->get_name(), out);
  }
  out += ".SH SERVER OPTIONS\n";
  AddServerOptions(app, out);
  out += ".SH ENVIRONMENT\n";
  std::map<std::string, std::string> environment;
  CollectEnvironment(app, environment);
  for (const auto& [variable, flag] : environment) {
    out += fmt::format(".TP\n{}\nStands for {} where that is not given.\n", Bold(variable),
                       Bold("--" + flag));
  }
  out += fmt::format(
      ".TP\n{}\nThe kubeconfig, where {} is not given.\n.TP\n{}\nNot empty: no colours."
      "\n",
      Bold("KUBECONFIG"), Bold("--kubeconfig"), Bold("NO_COLOR"));
  return out + kEnd;
}

}  // namespace tranche
