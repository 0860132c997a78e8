#include "scheduler/cli/cli_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include "scheduler/api/pages.h"
#include "scheduler/cli/cli_complete.h"
#include "topology/machine/gpu_set.h"

namespace tranche {
namespace {

CLI::Option* OneOf(CLI::Option* option, const std::vector<std::string>& words) {
  // CLI11 would say the words a second time.
  option->check(CLI::IsMember(words).description(""));
  return option->type_name(fmt::format("{}", fmt::join(words, "|")));
}

CLI::Option* File(CLI::Option* option) { return option->type_name(kFileType); }

void AddOutput(CLI::App& command, std::string& format) {
  OneOf(command.add_option("-o,--output", format, "how the answer is written"), {"table", "json"})
      ->capture_default_str();
}

void AddServe(CLI::App& app, ServeFlags& flags) {
  CLI::App* const serve = app.add_subcommand("serve", "answer kube-scheduler, the page and people");
  File(serve->add_option("--config", flags.config_file,
                         "YAML file with settings; flags win over it"));
  serve->add_option("--listen", flags.listen, "address (127.0.0.1:8080)")->type_name("HOST:PORT");
  serve
      ->add_option("--tls-listen", flags.tls_listen,
                   "address for TLS (0.0.0.0:8443 where a certificate is given)")
      ->type_name("HOST:PORT");
  File(serve->add_option("--tls-cert", flags.tls_cert,
                         "PEM file with the server's certificate chain"));
  File(serve->add_option("--tls-key", flags.tls_key, "PEM file with its private key"));
  serve
      ->add_option("--scheduler-name", flags.scheduler_name,
                   "spec.schedulerName the admission webhook gives GPU pods (gpu-scheduler)")
      ->type_name("NAME");
  OneOf(serve->add_option("--cluster", flags.cluster,
                          "in this process (the default), or the API server's"),
        {"embedded", "kubernetes"});
  File(serve->add_option("--objects", flags.objects,
                         "YAML or JSON with Kubernetes objects for the embedded cluster; may be "
                         "given several times"))
      ->take_all();
  File(serve->add_option("--kubeconfig", flags.kubeconfig,
                         "how to reach the API server; without it: from inside the cluster"));
  OneOf(serve->add_option("--clock", flags.clock,
                          "the machine's (the default), or moved by hand in the embedded cluster"),
        {"system", "manual"});
  File(serve->add_option("--ledger", flags.ledger,
                         "SQLite file that meters GPU-hours; made when it does not exist"));
  serve->add_flag("--ledger-accept-rollback", flags.accept_rollback,
                  "take up a ledger file that is older than the last one seen");
  OneOf(serve->add_option("--log-level", flags.log_level, "what is logged (info)"),
        {"trace", "debug", "info", "warn", "error", "off"});
}

void AddServer(CLI::App& command, ServerFlags& server) {
  const auto add = [&command](const char* name, std::string& value, const std::string& what) {
    return command.add_option(name, value, what)->group(kServerGroup);
  };
  add("--server", server.server,
      server.by_kubectl ? "ask the server at this URL instead of through the API server"
                        : fmt::format("URL of a running tranche serve ({})", kDefaultServer))
      ->type_name("URL")
      ->envname("TRANCHE_SERVER");
  File(add("--token-file", server.token_file,
           "the bearer token the server asks for (pages.tokenFile)"))
      ->envname("TRANCHE_TOKEN_FILE");
  File(add("--ca-file", server.ca_file,
           "CA of an https server; without it: whom this machine trusts"))
      ->envname("TRANCHE_CA_FILE");
  File(
      command.add_option("--cert-file", server.cert_file, "client certificate for an https server"))
      ->envname("TRANCHE_CERT_FILE");
  File(add("--key-file", server.key_file, "its private key"))->envname("TRANCHE_KEY_FILE");
  File(add("--kubeconfig", server.kubeconfig,
           "go through the API server of this file (KUBECONFIG, ~/.kube/config)"));
  add("--context", server.context, "go through the API server of this context")->type_name("NAME");
  add("--service", server.service,
      fmt::format("the Service behind the API server, [:PORT] may follow ({})", kDefaultService))
      ->type_name("NAMESPACE/NAME")
      ->envname("TRANCHE_SERVICE");
}

void AddClientOptions(CLI::App& command, Commands& commands) {
  AddOutput(command, commands.format);
  ServerFlags& server = commands.servers[command.get_name()];
  server.by_kubectl = commands.by_kubectl;
  AddServer(command, server);
}

void AddClient(CLI::App& app, Commands& commands) {
  AddClientOptions(*app.add_subcommand("nodes", "the nodes and what is free on them"), commands);
  AddClientOptions(*app.add_subcommand("quota", "what teams may use, use, borrow and wait for"),
                   commands);
  AddClientOptions(
      *app.add_subcommand("reclaims", "for whom pods are evicted, by which rule, how far it is"),
      commands);
  AddClientOptions(
      *app.add_subcommand("audit", "the server's books against themselves and the cluster"),
      commands);
  CLI::App* const top = app.add_subcommand("top", "GPU use by model, and why pods wait");
  top->add_flag("--advise", commands.advise,
                "how to divide the fleet, which MIG layouts to change, which pods to restart");
  AddClientOptions(*top, commands);
  CLI::App* const explain = app.add_subcommand("explain", "why a pod runs where it runs, or waits");
  explain->add_option("pod", commands.pod, "the pod; its name alone with --namespace")
      ->required()
      ->type_name("NAMESPACE/POD");
  explain->add_option("-n,--namespace", commands.pod_namespace, "namespace of the pod")
      ->type_name("NAMESPACE");
  AddClientOptions(*explain, commands);
  CLI::App* const what_if =
      app.add_subcommand("whatif", "where pods would go, one after another; changes nothing");
  File(what_if->add_option("-f,--file", commands.what_if_file,
                           "YAML or JSON with Pods, Jobs, JobSets, ..."))
      ->required();
  AddClientOptions(*what_if, commands);
}

void AddValidate(CLI::App& app, Commands& commands) {
  CLI::App* const validate = app.add_subcommand(
      "validate", "check custom resources in files as the server would, without one");
  File(validate->add_option("-f,--file", commands.validate_files, "YAML or JSON"))
      ->required()
      ->take_all();
  AddOutput(*validate, commands.format);
}

void AddLedgerSpan(CLI::App& command, LedgerSpan& span) {
  command.add_option("--from", span.from, "RFC 3339, or a date (UTC); default the first entry")
      ->type_name("TIME");
  command.add_option("--to", span.to, "RFC 3339, or a date (UTC), exclusive; default the last")
      ->type_name("TIME");
  command.add_option("--leaf", span.leaf, "of one team only")->type_name("QUOTA");
}

void AddLedger(CLI::App& app, Commands& commands) {
  CLI::App* const ledger = app.add_subcommand("ledger", "read a ledger file, or mend its clock");
  ledger->require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* const command = ledger->add_subcommand(name, what);
    File(command->add_option("--ledger", commands.ledger.path, "the file"))->required();
    command->callback([&commands, name] { commands.ledger_command = name; });
    return command;
  };
  AddOutput(*add("verify", "check every entry, sum and hash"), commands.format);
  CLI::App* const report = add("report", "GPU-hours by team and GPU model");
  AddLedgerSpan(*report, commands.ledger);
  AddOutput(*report, commands.format);
  CLI::App* const to_file = add("export", "who used what, when, on which devices");
  AddLedgerSpan(*to_file, commands.ledger);
  OneOf(to_file->add_option("-o,--output", commands.export_format, "how the rows are written"),
        {"csv", "json"})
      ->capture_default_str();
  add("repair-clock", "take back what a wrong clock has written; no server may have the file");
}

void AddTopology(CLI::App& app, Commands& commands) {
  CLI::App* const topology =
      app.add_subcommand("topology", "a machine's GPUs and links, from the text of nvidia-smi");
  topology->require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* const command = topology->add_subcommand(name, what);
    File(command->add_option("file", commands.topology.file,
                             "output of `nvidia-smi topo -m`; - is standard input"))
        ->required();
    command->callback([&commands, name] { commands.topology_command = name; });
    return command;
  };
  AddOutput(*add("show", "draw the machine"), commands.format);
  CLI::App* const best = add("best", "the best sets of GPUs to give to one pod");
  best->add_option("--gpus", commands.topology.gpus, "size of the set; may be given several times")
      ->type_name("N")
      ->allow_extra_args(/*value=*/false)
      ->check(CLI::Range(1, kMaxMachineGpus).description(""));
  best->add_option("--free", commands.topology.free, "numbers of the free GPUs; default all")
      ->type_name("N,N")
      ->delimiter(',')
      ->allow_extra_args(/*value=*/false)
      ->check(CLI::Range(0, kMaxMachineGpus - 1).description(""));
  best->add_option("-n", commands.topology.most, "sets of each size")
      ->type_name("N")
      ->check(CLI::Range(1, 100).description(""))
      ->capture_default_str();
  AddOutput(*best, commands.format);
}

void AddProbe(CLI::App& app, ProbeOptions& options) {
  CLI::App* const probe =
      app.add_subcommand("probe", "write what a GPU node knows into its annotations");
  probe->add_option("--node", options.node, "name of this node")
      ->type_name("NAME")
      ->envname("NODE_NAME");
  probe->add_option("--interval", options.interval, "time between looks, 1s to 1h")
      ->type_name("TIME")
      ->capture_default_str();
  probe->add_flag("--once", options.once, "look once and end");
  probe->add_flag("--print", options.print, "print instead of writing to the cluster");
  File(probe->add_option("--nvml", options.sources.nvml, "NVIDIA's management library"))
      ->capture_default_str();
  File(probe->add_option("--nvidia-smi", options.sources.nvidia_smi, "the program nvidia-smi"))
      ->capture_default_str();
  File(probe->add_option("--podresources", options.sources.pod_resources, "the kubelet's socket"))
      ->capture_default_str();
  File(probe->add_option("--kubeconfig", options.kubeconfig,
                         "how to reach the API server; without it: from inside the cluster"));
}

void AddReserve(CLI::App& app, ReserveOptions& options) {
  CLI::App* const reserve = app.add_subcommand(
      "reserve", "inside a pod that holds a GPU for others: say which, or hold it");
  reserve->add_flag("--hold", options.hold, "do nothing until SIGTERM");
  File(reserve->add_option("--message-file", options.message_file, "where the GPU is written"))
      ->capture_default_str();
}

void AddSchedulerConfig(CLI::App& app, SchedulerConfigOptions& options) {
  CLI::App* const command = app.add_subcommand(
      "scheduler-config", "print the KubeSchedulerConfiguration that wires kube-scheduler to us");
  command->add_option("--server", options.server, "URL as kube-scheduler reaches it")
      ->type_name("URL")
      ->capture_default_str();
  command->add_option("--scheduler-name", options.scheduler_name, "spec.schedulerName of the pods")
      ->type_name("NAME")
      ->capture_default_str();
  File(command->add_option("--kubeconfig", options.kubeconfig, "kubeconfig of kube-scheduler"))
      ->capture_default_str();
  command->add_flag("--all-pods,!--no-all-pods", options.all_pods,
                    "be asked about every pod (default); --no-all-pods: only about pods that name "
                    "an NVIDIA resource");
  File(command->add_option("--ca-file", options.ca_file, "CA of an https server"));
  File(command->add_option("--cert-file", options.cert_file,
                           "client certificate of kube-scheduler"));
  File(command->add_option("--key-file", options.key_file, "client key of kube-scheduler"));
}

void AddShellHelp(CLI::App& app, Commands& commands) {
  CLI::App* const completion =
      app.add_subcommand("completion", "print the script that completes command lines in a shell");
  OneOf(
      completion->add_option("shell", commands.shell,
                             "kubectl: for kubectl's own completion, as kubectl_complete-tranche"),
      CompletionShells())
      ->required();
  app.add_subcommand("man", "print the manual page, for man -l");
}

}  // namespace

std::unique_ptr<CLI::App> MakeApp(const std::string& name, Commands& commands) {
  auto app = std::make_unique<CLI::App>("GPU scheduling for Kubernetes", name);
  app->set_version_flag("--version", std::string("tranche ") + Version());
  app->require_subcommand(1);
  AddServe(*app, commands.serve);
  AddClient(*app, commands);
  AddValidate(*app, commands);
  AddLedger(*app, commands);
  AddTopology(*app, commands);
  AddProbe(*app, commands.probe);
  AddReserve(*app, commands.reserve);
  AddSchedulerConfig(*app, commands.scheduler_config);
  AddShellHelp(*app, commands);
  return app;
}

std::vector<std::string> WordsOf(const std::string& type_name) {
  if (type_name.find('|') == std::string::npos) return {};
  std::vector<std::string> words;
  for (std::size_t start = 0; start <= type_name.size();) {
    const std::size_t end = std::min(type_name.find('|', start), type_name.size());
    words.push_back(type_name.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

}  // namespace tranche
