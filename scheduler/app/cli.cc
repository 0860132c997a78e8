#include "scheduler/app/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>

#include "absl/status/status.h"
#include "scheduler/app/cli_client.h"
#include "scheduler/app/cli_ledger.h"
#include "scheduler/app/cli_probe.h"
#include "scheduler/app/cli_reserve.h"
#include "scheduler/app/cli_topology.h"
#include "scheduler/app/cli_validate.h"
#include "scheduler/app/config.h"
#include "scheduler/app/pages.h"
#include "scheduler/app/scheduler_config.h"
#include "scheduler/app/serve.h"
#include "scheduler/wire/json.h"
#include "topology/machine/gpu_set.h"

namespace tranche::app {
namespace {

constexpr int kUsage = 2;

// What the flags said; unset ones leave the configuration file's word standing.
struct ServeFlags {
  std::optional<std::string> config_file;
  std::optional<std::string> listen;
  std::optional<std::string> tls_listen;
  std::optional<std::string> tls_cert;
  std::optional<std::string> tls_key;
  std::optional<std::string> scheduler_name;
  std::optional<std::string> cluster;
  std::vector<std::string> objects;
  std::optional<std::string> kubeconfig;
  std::optional<std::string> clock;
  std::optional<std::string> log_level;
  std::optional<std::string> ledger;
  bool accept_rollback = false;
};

struct Commands {
  ServeFlags serve;
  ClientOptions client;
  std::string format = "table";
  bool advise = false;
  std::string pod;
  std::string what_if_file;
  std::vector<std::string> validate_files;
  std::string ledger_command;
  LedgerSpan ledger;
  std::string export_format = "csv";
  std::string topology_command;
  BestSetsOptions topology;
  ProbeOptions probe;
  ReserveOptions reserve;
  SchedulerConfigOptions scheduler_config;
};

int Fail(std::ostream& err, const absl::Status& status) {
  err << "tranche: " << std::string(status.message()) << '\n';
  return kUsage;
}

void AddServe(CLI::App& app, ServeFlags& flags) {
  CLI::App* const serve = app.add_subcommand("serve", "answer kube-scheduler, the page and people");
  serve->add_option("--config", flags.config_file, "YAML file with settings; flags win over it");
  serve->add_option("--listen", flags.listen, "HOST:PORT (127.0.0.1:8080)");
  serve->add_option("--tls-listen", flags.tls_listen,
                    "HOST:PORT for TLS (0.0.0.0:8443 where a certificate is given)");
  serve->add_option("--tls-cert", flags.tls_cert, "PEM file with the server's certificate chain");
  serve->add_option("--tls-key", flags.tls_key, "PEM file with its private key");
  serve->add_option("--scheduler-name", flags.scheduler_name,
                    "spec.schedulerName the admission webhook gives GPU pods (gpu-scheduler)");
  serve->add_option("--cluster", flags.cluster, "embedded (in this process) or kubernetes")
      ->check(CLI::IsMember({"embedded", "kubernetes"}));
  serve
      ->add_option("--objects", flags.objects,
                   "YAML or JSON file with Kubernetes objects for the embedded cluster; may be "
                   "given several times")
      ->take_all();
  serve->add_option("--kubeconfig", flags.kubeconfig,
                    "how to reach the API server; without it: from inside the cluster");
  serve->add_option("--clock", flags.clock, "system, or manual with the embedded cluster")
      ->check(CLI::IsMember({"system", "manual"}));
  serve->add_option("--ledger", flags.ledger,
                    "SQLite file that meters GPU-hours; made when it does not exist");
  serve->add_flag("--ledger-accept-rollback", flags.accept_rollback,
                  "take up a ledger file that is older than the last one seen");
  serve->add_option("--log-level", flags.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
}

void AddClientOptions(CLI::App& command, Commands& commands) {
  command.add_option("--server", commands.client.server, "URL of a running tranche serve")
      ->capture_default_str();
  command.add_option("-o,--output", commands.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

void AddClient(CLI::App& app, Commands& commands) {
  AddClientOptions(*app.add_subcommand("nodes", "the nodes and what is free on them"), commands);
  AddClientOptions(*app.add_subcommand("quota", "what teams may use, use, borrow and wait for"),
                   commands);
  AddClientOptions(
      *app.add_subcommand("reclaims", "for whom pods are evicted, by which rule, how far it is"),
      commands);
  CLI::App* const top = app.add_subcommand("top", "GPU use by model, and why pods wait");
  top->add_flag("--advise", commands.advise,
                "how to divide the fleet, which MIG layouts to change, which pods to restart");
  AddClientOptions(*top, commands);
  CLI::App* const explain = app.add_subcommand("explain", "why a pod runs where it runs, or waits");
  explain->add_option("pod", commands.pod, "NAMESPACE/POD")->required();
  AddClientOptions(*explain, commands);
  CLI::App* const what_if =
      app.add_subcommand("whatif", "where pods would go, one after another; changes nothing");
  what_if->add_option("-f,--file", commands.what_if_file, "YAML or JSON file with Pods")
      ->required();
  AddClientOptions(*what_if, commands);
}

void AddValidate(CLI::App& app, Commands& commands) {
  CLI::App* const validate = app.add_subcommand(
      "validate", "check custom resources in files as the server would, without one");
  validate->add_option("-f,--file", commands.validate_files, "YAML or JSON file")
      ->required()
      ->take_all();
  validate->add_option("-o,--output", commands.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

void AddLedgerSpan(CLI::App& command, LedgerSpan& span) {
  command.add_option("--from", span.from, "RFC 3339 time or date (UTC); default the first entry");
  command.add_option("--to", span.to, "RFC 3339 time or date (UTC), exclusive; default the last");
  command.add_option("--leaf", span.leaf, "of one leaf only");
}

void AddLedger(CLI::App& app, Commands& commands) {
  CLI::App* const ledger = app.add_subcommand("ledger", "read a ledger file");
  ledger->require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* const command = ledger->add_subcommand(name, what);
    command->add_option("--ledger", commands.ledger.path, "the file")->required();
    command->callback([&commands, name] { commands.ledger_command = name; });
    return command;
  };
  add("verify", "check every entry, sum and hash");
  CLI::App* const report = add("report", "GPU-hours by leaf and GPU model");
  AddLedgerSpan(*report, commands.ledger);
  report->add_option("-o,--output", commands.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  CLI::App* const to_file = add("export", "who used what, when, on which devices");
  AddLedgerSpan(*to_file, commands.ledger);
  to_file->add_option("-o,--output", commands.export_format, "csv or json")
      ->check(CLI::IsMember({"csv", "json"}))
      ->capture_default_str();
}

void AddTopology(CLI::App& app, Commands& commands) {
  CLI::App* const topology =
      app.add_subcommand("topology", "a machine's GPUs and links, from the text of nvidia-smi");
  topology->require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* const command = topology->add_subcommand(name, what);
    command
        ->add_option("file", commands.topology.file,
                     "output of `nvidia-smi topo -m`; - is standard input")
        ->required();
    command->callback([&commands, name] { commands.topology_command = name; });
    return command;
  };
  add("show", "draw the machine");
  CLI::App* const best = add("best", "the best sets of GPUs to give to one pod");
  best->add_option("--gpus", commands.topology.gpus, "size of the set; may be given several times")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMaxMachineGpus));
  best->add_option("--free", commands.topology.free, "numbers of the free GPUs; default all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::NonNegativeNumber);
  best->add_option("-n", commands.topology.most, "sets of each size")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  best->add_option("-o,--output", commands.format, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

void AddProbe(CLI::App& app, ProbeOptions& options) {
  CLI::App* const probe =
      app.add_subcommand("probe", "write what a GPU node knows into its annotations");
  probe->add_option("--node", options.node, "name of this node")->envname("NODE_NAME");
  probe->add_option("--interval", options.interval, "time between looks, 1s to 1h")
      ->capture_default_str();
  probe->add_flag("--once", options.once, "look once and end");
  probe->add_flag("--print", options.print, "print instead of writing to the cluster");
  probe->add_option("--nvml", options.sources.nvml, "NVIDIA's management library")
      ->capture_default_str();
  probe->add_option("--nvidia-smi", options.sources.nvidia_smi, "the program nvidia-smi")
      ->capture_default_str();
  probe->add_option("--podresources", options.sources.pod_resources, "the kubelet's socket")
      ->capture_default_str();
  probe->add_option("--kubeconfig", options.kubeconfig,
                    "how to reach the API server; without it: from inside the cluster");
}

void AddReserve(CLI::App& app, ReserveOptions& options) {
  CLI::App* const reserve = app.add_subcommand(
      "reserve", "inside a pod that holds a GPU for others: say which, or hold it");
  reserve->add_flag("--hold", options.hold, "do nothing until SIGTERM");
  reserve->add_option("--message-file", options.message_file, "where the GPU is written")
      ->capture_default_str();
}

void AddSchedulerConfig(CLI::App& app, SchedulerConfigOptions& options) {
  CLI::App* const command = app.add_subcommand(
      "scheduler-config", "print the KubeSchedulerConfiguration that wires kube-scheduler to us");
  command->add_option("--server", options.server, "URL as kube-scheduler reaches it")
      ->capture_default_str();
  command->add_option("--scheduler-name", options.scheduler_name, "spec.schedulerName of the pods")
      ->capture_default_str();
  command->add_option("--kubeconfig", options.kubeconfig, "kubeconfig of kube-scheduler")
      ->capture_default_str();
  command->add_flag("--all-pods,!--no-all-pods", options.all_pods,
                    "be asked about every pod (default); --no-all-pods: only about pods that name "
                    "an NVIDIA resource");
  command->add_option("--ca-file", options.ca_file, "CA of an https server");
  command->add_option("--cert-file", options.cert_file, "client certificate of kube-scheduler");
  command->add_option("--key-file", options.key_file, "client key of kube-scheduler");
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
  config.ledger_accept_rollback = flags.accept_rollback;
  if (const absl::Status checked = CheckConfig(config); !checked.ok()) return checked;
  return config;
}

int PrintSchedulerConfig(const SchedulerConfigOptions& options, std::ostream& out,
                         std::ostream& err) {
  const absl::StatusOr<std::string> text = MakeSchedulerConfig(options);
  if (!text.ok()) return Fail(err, text.status());
  out << *text;
  return 0;
}

int RunServe(const ServeFlags& flags, std::ostream& err) {
  const absl::StatusOr<ServeConfig> config = Configure(flags);
  return config.ok() ? Serve(*config, err) : Fail(err, config.status());
}

int RunLedger(const Commands& commands, std::ostream& out, std::ostream& err) {
  if (commands.ledger_command == "verify") return LedgerVerify(commands.ledger.path, out, err);
  if (commands.ledger_command == "report") {
    return LedgerReport({commands.ledger, commands.format == "json"}, out, err);
  }
  const bool json = commands.export_format == "json";
  return LedgerExport({commands.ledger, json ? ExportFormat::kJson : ExportFormat::kCsv}, out, err);
}

int RunTopology(Commands& commands, std::ostream& out, std::ostream& err) {
  commands.topology.json = commands.format == "json";
  return commands.topology_command == "show" ? ShowTopology(commands.topology.file, out, err)
                                             : ShowBestSets(commands.topology, out, err);
}

int Run(const std::string& command, Commands& commands, std::ostream& out, std::ostream& err) {
  commands.client.json = commands.format == "json";
  if (command == "serve") return RunServe(commands.serve, err);
  if (command == "probe") return RunProbe(commands.probe, out, err);
  if (command == "reserve") return RunReserve(commands.reserve, err);
  if (command == "nodes") return ShowNodes(commands.client, out, err);
  if (command == "top") return ShowTop(commands.client, commands.advise, out, err);
  if (command == "quota") return ShowQuota(commands.client, out, err);
  if (command == "reclaims") return ShowReclaims(commands.client, out, err);
  if (command == "ledger") return RunLedger(commands, out, err);
  if (command == "topology") return RunTopology(commands, out, err);
  if (command == "validate") {
    return ValidateFiles(commands.validate_files, commands.client.json, out, err);
  }
  if (command == "explain") return ExplainPod(commands.client, commands.pod, out, err);
  if (command == "whatif") return AskWhatIf(commands.client, commands.what_if_file, out, err);
  return PrintSchedulerConfig(commands.scheduler_config, out, err);
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err) {
  CLI::App app("GPU scheduling for Kubernetes", "tranche");
  app.set_version_flag("--version", std::string("tranche ") + Version());
  app.require_subcommand(1);
  Commands commands;
  AddServe(app, commands.serve);
  AddClient(app, commands);
  AddValidate(app, commands);
  AddLedger(app, commands);
  AddTopology(app, commands);
  AddProbe(app, commands.probe);
  AddReserve(app, commands.reserve);
  AddSchedulerConfig(app, commands.scheduler_config);
  // CLI11 would only say that a command is missing.
  const auto is_first = [&arguments](const CLI::App* command) {
    return command->get_name() == arguments[0];
  };
  if (!arguments.empty() && arguments[0].rfind('-', 0) != 0 &&
      app.get_subcommands(is_first).empty()) {
    return Fail(err, absl::InvalidArgumentError(fmt::format(
                         "expected a command (see --help), found {}", wire::Quoted(arguments[0]))));
  }
  try {
    // CLI11 takes the arguments from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, out, err);
    std::string line = error.what();
    std::replace(line.begin(), line.end(), '\n', ' ');
    err << "tranche: " << line << " (see --help)\n";
    return kUsage;
  }
  return Run(app.get_subcommands().front()->get_name(), commands, out, err);
}

}  // namespace tranche::app
