#include "scheduler/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <ostream>
#include <sstream>

#include "absl/status/status.h"
#include "scheduler/cli/cli_client.h"
#include "scheduler/cli/cli_commands.h"
#include "scheduler/cli/cli_complete.h"
#include "scheduler/cli/cli_help.h"
#include "scheduler/cli/cli_lists.h"
#include "scheduler/cli/cli_man.h"
#include "scheduler/cli/cli_mcp.h"
#include "scheduler/cli/cli_validate.h"
#include "scheduler/cli/kueue/kueue_export.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/terminal.h"
#include "scheduler/server/config.h"
#include "scheduler/server/serve.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr std::size_t kHelpIndent = 30;  // where CLI11 begins descriptions

int RefuseUse(std::ostream& err, const absl::Status& status) {
  err << "tranche: " << std::string(status.message()) << '\n';
  return kExitUsage;
}

absl::Status SetServerFlags(const ServeFlags& flags, ServeConfig& config) {
  if (flags.listen) {
    if (const absl::Status read = ReadListen(*flags.listen, config); !read.ok()) return read;
  }
  if (flags.tls_listen) {
    if (const absl::Status read = ReadTlsListen(*flags.tls_listen, config); !read.ok()) return read;
  }
  if ((flags.tls_cert || flags.tls_key) && !config.tls) config.tls.emplace();
  if (flags.tls_cert) config.tls->certificate_file = *flags.tls_cert;
  if (flags.tls_key) config.tls->key_file = *flags.tls_key;
  if (flags.scheduler_name) return ReadSchedulerName(*flags.scheduler_name, config);
  return absl::OkStatus();
}

absl::StatusOr<ServeConfig> Configure(const ServeFlags& flags) {
  ServeConfig config;
  if (flags.config_file) {
    if (const absl::Status read = ApplyConfigFile(*flags.config_file, config); !read.ok()) {
      return read;
    }
  }
  if (const absl::Status read = SetServerFlags(flags, config); !read.ok()) return read;
  if (flags.cluster) {
    config.cluster =
        *flags.cluster == "embedded" ? ClusterKind::kEmbedded : ClusterKind::kKubernetes;
  }
  if (!flags.objects.empty()) config.objects = flags.objects;
  if (flags.kubeconfig) config.kubeconfig = *flags.kubeconfig;
  if (flags.clock) config.manual_clock = *flags.clock == "manual";
  if (flags.log_level) config.log_level = *flags.log_level;
  if (flags.ledger) config.ledger = *flags.ledger;
  if (flags.accept_rollback) config.ledger_accept_rollback = true;
  if (const absl::Status checked = CheckConfig(config); !checked.ok()) return checked;
  return config;
}

int PrintSchedulerConfig(const SchedulerConfigOptions& options, std::ostream& out,
                         std::ostream& err) {
  const absl::StatusOr<std::string> text = MakeSchedulerConfig(options);
  if (!text.ok()) return RefuseUse(err, text.status());
  out << *text;
  return 0;
}

int RunServe(const ServeFlags& flags, std::ostream& err) {
  const absl::StatusOr<ServeConfig> config = Configure(flags);
  return config.ok() ? Serve(*config, err) : RefuseUse(err, config.status());
}

int RunLedger(Commands& commands, std::ostream& out, std::ostream& err) {
  if (commands.ledger_command == "verify") {
    const bool json = commands.format == "json";
    if (!commands.statement_file) return LedgerVerify(commands.ledger.path, json, out, err);
    return LedgerProve(commands.ledger.path, *commands.statement_file, json, out, err);
  }
  if (commands.ledger_command == "report" && commands.ledger.path.empty()) {
    const absl::StatusOr<std::string> query = LedgerQueryOf(commands.ledger);
    if (!query.ok()) return RefuseUse(err, query.status());
    commands.client.server = commands.servers["report"];
    return ShowLedgerReport(commands.client, *query, out, err);
  }
  if (commands.ledger_command == "report") {
    if (commands.client.output != "table" && commands.client.output != "json") {
      return RefuseUse(err, absl::InvalidArgumentError(
                                fmt::format("-o: expected table or json of a file, found {}",
                                            wire::Quoted(commands.client.output))));
    }
    return LedgerReport({commands.ledger, commands.client.output == "json"}, out, err);
  }
  if (commands.ledger_command == "bill") {
    commands.client.server = commands.servers["bill"];
    return LedgerBill({commands.ledger, commands.bill_by, commands.hash_key}, commands.client, out,
                      err);
  }
  if (commands.ledger_command == "statement") {
    commands.client.server = commands.servers["statement"];
    return LedgerStatement({{commands.ledger, commands.bill_by}, commands.month}, commands.client,
                           out, err);
  }
  if (commands.ledger_command == "held") {
    commands.client.server = commands.servers["held"];
    return LedgerHeld({commands.ledger.path, commands.at, commands.ledger.leaf}, commands.client,
                      out, err);
  }
  if (commands.ledger_command == "repair-clock") {
    return LedgerRepairClock(commands.ledger.path, out, err);
  }
  const bool json = commands.export_format == "json";
  return LedgerExport({commands.ledger, json ? ExportFormat::kJson : ExportFormat::kCsv,
                       commands.export_past, commands.hash_key},
                      out, err);
}

int RunReplay(Commands& commands, std::ostream& out, std::ostream& err) {
  replay::ReplayOptions& options = commands.replay;
  options.json = commands.format == "json";
  if (!commands.edits_file.empty()) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(commands.edits_file);
    if (!manifest.ok()) return RefuseUse(err, manifest.status());
    absl::StatusOr<std::string> edits = EditsOf(*manifest);
    if (!edits.ok()) return RefuseUse(err, edits.status());
    options.edits = *std::move(edits);
  }
  return replay::Replay(options, out, err);
}

int RunTopology(Commands& commands, std::ostream& out, std::ostream& err) {
  commands.topology.json = commands.format == "json";
  return commands.topology_command == "show"
             ? ShowTopology(commands.topology.file, commands.topology.json, out, err)
             : ShowBestSets(commands.topology, out, err);
}

int Run(const CLI::App& app, Commands& commands, std::ostream& out, std::ostream& err) {
  const std::string command = app.get_subcommands().front()->get_name();
  commands.client.server = commands.servers[command];
  if (command == "serve") return RunServe(commands.serve, err);
  if (command == "probe") return RunProbe(commands.probe, out, err);
  if (command == "reserve") return RunReserve(commands.reserve, err);
  if (command == "nodes") return ShowNodes(commands.client, out, err);
  if (command == "pods") return ShowPods(commands.client, out, err);
  if (command == "queue") return ShowQueue(commands.client, out, err);
  if (command == "gangs") return ShowGangs(commands.client, out, err);
  if (command == "events") return ShowEvents(commands.client, out, err);
  if (command == "top") return ShowTop(commands.client, {commands.advise, commands.once}, out, err);
  if (command == "quota") return ShowQuota(commands.client, out, err);
  if (command == "audit") return ShowAudit(commands.client, out, err);
  if (command == "reclaims") return ShowReclaims(commands.client, out, err);
  if (command == "ledger") return RunLedger(commands, out, err);
  if (command == "replay") return RunReplay(commands, out, err);
  if (command == "topology") return RunTopology(commands, out, err);
  if (command == "validate") {
    return ValidateFiles(commands.validate_files, commands.format == "json", out, err);
  }
  if (command == "export") return ExportKueue(commands.export_files, out, err);
  if (command == "version") {
    return ShowVersions(commands.client, commands.client_only, out, err);
  }
  if (command == "completion") {
    out << CompletionScript(commands.shell);
    return 0;
  }
  if (command == "man") {
    out << ManualPage(app);
    return 0;
  }
  if (command == "explain") {
    const ExplainWhat what = commands.rank        ? ExplainWhat::kRank
                             : commands.each_node ? ExplainWhat::kEachNode
                                                  : ExplainWhat::kAnswers;
    return ExplainPod(commands.client, commands.pod, what, out, err);
  }
  if (command == "whatif") {
    return AskWhatIf(commands.client, ReadManifest(commands.what_if_file), out, err);
  }
  if (command == "plan") {
    return AskPlan(commands.client, ReadManifest(commands.edits_file), out, err);
  }
  if (command == "mcp") return AnswerModel(commands.client, std::cin, out, err);
  return PrintSchedulerConfig(commands.scheduler_config, out, err);
}

// `help COMMAND` is `COMMAND --help`, and what has nothing but options tells of them.
std::vector<std::string> WithHelp(const std::vector<std::string>& arguments) {
  std::vector<std::string> line = arguments;
  if (line.empty()) return line;
  if (line[0] == "help") line.erase(line.begin());
  if (line.size() < arguments.size() || (line.size() == 1 && line[0] == kOptionsCommand)) {
    line.emplace_back("--help");
  }
  return line;
}

}  // namespace

std::string ProgramName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return path == "kubectl-tranche" ? kKubectlName : "tranche";
}

int RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                   const std::string& name) {
  Commands commands;
  commands.by_kubectl = name == kKubectlName;
  const std::unique_ptr<CLI::App> app = MakeApp(name, commands);
  if (!arguments.empty() && arguments[0] == kCompleteCommand) {
    out << Complete(*app, {arguments.begin() + 1, arguments.end()});
    return 0;
  }
  // CLI11 would only say that a command is missing.
  const auto is_first = [&arguments](const CLI::App* command) {
    return command->get_name() == arguments[0];
  };
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      app->get_subcommands(is_first).empty()) {
    return RefuseUse(err, absl::InvalidArgumentError(fmt::format(
                              "expected a command (see {} --help), found {}{}", name,
                              wire::Quoted(arguments[0]), SuggestionFor(*app, arguments))));
  }
  const std::vector<std::string> line = WithHelp(arguments);
  try {
    // CLI11 takes the arguments from the back.
    app->parse(std::vector<std::string>(line.rbegin(), line.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream help;
      app->exit(error, help, err);
      out << WrappedLines(help.str(), kHelpIndent, TerminalOf(out).columns);
      return 0;
    }
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    err << fmt::format("tranche: {}{} (see --help)\n", text, SuggestionFor(*app, line));
    return kExitUsage;
  }
  return Run(*app, commands, out, err);
}

}  // namespace tranche
