#include "scheduler/cli/cli_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Validators.hpp>

#include "scheduler/api/pages.h"
#include "scheduler/cli/cli_complete.h"
#include "scheduler/cli/cli_help.h"
#include "scheduler/cli/cli_ledger.h"
#include "scheduler/cli/output/output_format.h"
#include "topology/machine/gpu_set.h"

namespace tranche {
namespace {

// What help puts together.
constexpr const char* kSeeGroup = "See what is there";
constexpr const char* kWhyGroup = "Find out why";
constexpr const char* kFileGroup = "Read files, without a server";
constexpr const char* kRunGroup = "Run it";
constexpr const char* kShellGroup = "Help and shells";

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

CLI::App* AddCommand(CLI::App& app, const char* group, const char* name, const char* what,
                     const std::vector<Example>& examples) {
  CLI::App* const command = app.add_subcommand(name, what);
  command->group(group);
  if (!examples.empty()) AddExamples(*command, app.get_name(), examples);
  return command;
}

void AddServe(CLI::App& app, ServeFlags& flags) {
  CLI::App* const serve =
      AddCommand(app, kRunGroup, "serve", "answer kube-scheduler, the page and people",
                 {{"serve --objects cluster.yaml", "a cluster in this process, to try things"}});
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
  File(add("--token-file", server.token_file, "the bearer token the server asks for (pages.auth)"))
      ->envname("TRANCHE_TOKEN_FILE");
  File(add("--ca-file", server.ca_file,
           "CA of an https server; without it: whom this machine trusts"))
      ->envname("TRANCHE_CA_FILE");
  File(add("--cert-file", server.cert_file, "client certificate for an https server"))
      ->envname("TRANCHE_CERT_FILE");
  File(add("--key-file", server.key_file, "its private key"))->envname("TRANCHE_KEY_FILE");
  add("--tls-server-name", server.tls_server_name,
      "name that the certificate of an https server has to carry; without it: that of the URL")
      ->type_name("NAME")
      ->envname("TRANCHE_TLS_SERVER_NAME");
  add("--token-from", server.token_from,
      "show a server that asks for a token one of this service account, made for ten minutes: for "
      "users whose kubeconfig has a client certificate")
      ->type_name("NAMESPACE/ACCOUNT")
      ->envname("TRANCHE_TOKEN_FROM");
  add("--token-audience", server.token_audience,
      "what such a token is for (pages.audiences of the server); without it: the API server")
      ->type_name("AUDIENCE")
      ->envname("TRANCHE_TOKEN_AUDIENCE");
  File(add("--kubeconfig", server.kubeconfig,
           "go through the API server of this file (KUBECONFIG, ~/.kube/config); with --server: "
           "show that server its user's token"));
  add("--context", server.context, "likewise of this context")->type_name("NAME");
  add("--service", server.service,
      fmt::format("the Service behind the API server, [:PORT] may follow ({})", kDefaultService))
      ->type_name("NAMESPACE/NAME")
      ->envname("TRANCHE_SERVICE");
}

void AddServerOptions(CLI::App& command, Commands& commands) {
  ServerFlags& server = commands.servers[command.get_name()];
  server.by_kubectl = commands.by_kubectl;
  AddServer(command, server);
}

// What commands have that print one answer.
void AddClientOptions(CLI::App& command, Commands& commands) {
  command.add_option("-o,--output", commands.client.output, "how the answer is written")
      ->type_name(kAnswerFormats)
      ->capture_default_str();
  AddServerOptions(command, commands);
}

// What commands have that print a list. `of_namespaces`: of objects that are in one.
void AddListOptions(CLI::App& command, Commands& commands, const char* name, bool of_namespaces) {
  ClientOptions& client = commands.client;
  command.add_option("name", client.names, "these alone; without any: all")->type_name(name);
  command.add_option("-o,--output", client.output, "how the list is written")
      ->type_name(kListFormats)
      ->capture_default_str();
  command
      .add_option("--sort-by", client.sort_by,
                  "a column's title, or a path as .name; -COLUMN: the other way round")
      ->type_name("COLUMN");
  command.add_flag("-w,--watch", client.watch, "go on: tell what changes, until it is stopped");
  if (of_namespaces) {
    command
        .add_option("-n,--namespace", client.ns,
                    "of this namespace (that of the kubeconfig's context, or all)")
        ->type_name("NAMESPACE");
    command.add_flag("-A,--all-namespaces", client.all_namespaces, "of all namespaces");
    command
        .add_option(
            "-l,--selector", client.selector,
            "pods with these labels alone, as of kubectl: team=a,tier in (gold,silver),!old")
        ->type_name("LABELS");
  }
  AddServerOptions(command, commands);
}

void AddLists(CLI::App& app, Commands& commands) {
  AddListOptions(
      *AddCommand(app, kSeeGroup, "nodes", "the nodes and what is free on them",
                  {{"nodes --sort-by free", "the fullest first"},
                   {"nodes gpu-1 -o yaml", "one with everything that is known of it"},
                   {"nodes -o custom-columns=NODE:.name,FREE:.gpus[*].freeMilli", "own columns"}}),
      commands, "NODE", /*of_namespaces=*/false);
  AddListOptions(*AddCommand(app, kSeeGroup, "pods", "the pods that hold GPUs or wait for them",
                             {{"pods -n team-a -o wide", "of a namespace, with their devices"},
                              {"pods -A --sort-by=-gpus", "who holds most first"}}),
                 commands, "POD", /*of_namespaces=*/true);
  AddListOptions(*AddCommand(app, kSeeGroup, "queue", "the pods that wait, and why",
                             {{"queue -A", "who waits longest first"},
                              {"queue --watch", "tells of each that comes and goes"}}),
                 commands, "POD", /*of_namespaces=*/true);
  AddListOptions(
      *AddCommand(app, kSeeGroup, "gangs", "pods that start all or none, and what they wait for",
                  {{"gangs -A --sort-by=-waits", "who waits longest first"},
                   {"gangs run-7 -o wide", "one, with its nodes"}}),
      commands, "GANG", /*of_namespaces=*/true);
  AddListOptions(
      *AddCommand(app, kSeeGroup, "events", "what happened lately to pods and reclaims",
                  {{"events run-7 -n team-a", "of one pod: placed, running, evicted, ended"},
                   {"events -A --watch", "tells of each as it happens"}}),
      commands, "POD", /*of_namespaces=*/true);
  AddListOptions(
      *AddCommand(app, kSeeGroup, "quota", "what teams may use, use, borrow and wait for",
                  {{"quota team-a -o wide", "of one team, with its fair share"},
                   {"quota --sort-by=-pending", "who waits for most first"}}),
      commands, "QUOTA", /*of_namespaces=*/false);
  AddListOptions(*AddCommand(app, kSeeGroup, "reclaims",
                             "for whom pods are evicted, by which rule, how far it is",
                             {{"reclaims --watch", "tells of each as it goes on"},
                              {"reclaims -o wide", "with the pods that leave"}}),
                 commands, "RECLAIM", /*of_namespaces=*/false);
}

void AddClient(CLI::App& app, Commands& commands) {
  AddLists(app, commands);
  CLI::App* const top = AddCommand(app, kSeeGroup, "top", "GPU use by model, and why pods wait",
                                   {{"top --advise", "and what could be better"}});
  top->add_flag("--advise", commands.advise,
                "how to divide the fleet, which MIG layouts to change, which pods to restart");
  top->add_flag("--once", commands.once,
                "print it; on a terminal it stays and is told anew every two seconds otherwise");
  AddClientOptions(*top, commands);
  CLI::App* const explain =
      AddCommand(app, kWhyGroup, "explain", "why a pod runs where it runs, or waits",
                 {{"explain team-a/train", "the nodes' answers by reason, with numbers"},
                  {"explain team-a/train --rank", "its place among those that wait, term by term"},
                  {"explain train -n team-a -o json", "the same for programs"}});
  explain->add_option("pod", commands.pod, "the pod; its name alone with --namespace")
      ->required()
      ->type_name("NAMESPACE/POD");
  CLI::Option* const each_node = explain->add_flag("--each-node", commands.each_node,
                                                   "a line for each node, not for each reason");
  explain
      ->add_flag("--rank", commands.rank,
                 "where a waiting pod stands, by which terms, and who is right before and after it")
      ->excludes(each_node);
  explain->add_option("-n,--namespace", commands.client.ns, "namespace of the pod")
      ->type_name("NAMESPACE");
  AddClientOptions(*explain, commands);
  CLI::App* const what_if = AddCommand(
      app, kWhyGroup, "whatif", "where pods would go, one after another; changes nothing",
      {{"whatif -f job.yaml", "would it run, and who would leave for it?"},
       {"whatif -f - < job.yaml", "the same from standard input"}});
  File(what_if->add_option("-f,--file", commands.what_if_file,
                           "YAML or JSON with Pods, Jobs, JobSets, ...; - is standard input"))
      ->required();
  AddClientOptions(*what_if, commands);
  CLI::App* const plan = AddCommand(
      app, kWhyGroup, "plan", "what edits of quotas and nodes would do at once; changes nothing",
      {{"plan -f quotas.yaml", "who would start, be evicted, become borrowed, wait?"},
       {"plan -f edits.yaml -o json", "the same for programs"}});
  File(plan->add_option("-f,--file", commands.edits_file,
                        "YAML or JSON with GPUQuotas, GPUBudgets, GPUClasses, GPUPolicies, Nodes "
                        "and a list `delete` of kinds and names; - is standard input"))
      ->required();
  AddClientOptions(*plan, commands);
  AddClientOptions(*AddCommand(app, kWhyGroup, "audit",
                               "the server's books against themselves and the cluster", {}),
                   commands);
  AddServerOptions(
      *AddCommand(app, kWhyGroup, "mcp",
                  "answer a language model on standard input (MCP); changes nothing",
                  {{"mcp --server https://gpus.example.com", "as the command of an MCP client"}}),
      commands);
}

void AddValidate(CLI::App& app, Commands& commands) {
  CLI::App* const validate =
      AddCommand(app, kFileGroup, "validate",
                 "check custom resources in files as the server would, without one",
                 {{"validate -f quotas.yaml", "says of each object what is wrong with it"}});
  File(validate->add_option("-f,--file", commands.validate_files,
                            "YAML or JSON; - is standard input"))
      ->required()
      ->take_all();
  AddOutput(*validate, commands.format);
}

void AddExport(CLI::App& app, Commands& commands) {
  CLI::App* const command =
      AddCommand(app, kFileGroup, "export", "quotas and pools as objects of another project",
                 {{"export kueue -f quotas.yaml",
                   "ClusterQueues, Cohorts, flavors and LocalQueues of Kueue"}});
  command->require_subcommand(1);
  File(command->add_subcommand("kueue", "of Kueue, which then admits what Tranche places")
           ->add_option("-f,--file", commands.export_files,
                        "YAML or JSON with GPUQuotas, GPUPools, Nodes, Namespaces; - is stdin"))
      ->required()
      ->take_all();
}

void AddSpan(CLI::App& command, LedgerSpan& span, const char* from, const char* to) {
  const std::string form = "RFC 3339, or a date (UTC)";
  command.add_option("--from", span.from, form + "; default " + from)->type_name("TIME");
  command.add_option("--to", span.to, form + ", exclusive; default " + to)->type_name("TIME");
}

void AddLedgerSpan(CLI::App& command, LedgerSpan& span) {
  AddSpan(command, span, "the first entry", "the last");
  command.add_option("--leaf", span.leaf, "of one team only")->type_name("QUOTA");
}

void AddLedger(CLI::App& app, Commands& commands) {
  CLI::App* const ledger = AddCommand(
      app, kFileGroup, "ledger", "read a ledger file, or mend its clock",
      {{"ledger report --from 2026-11-01", "GPU-hours since then, of the server's ledger"},
       {"ledger bill --from 2026-11-01 --by team", "what teams' use costs since then"},
       {"ledger statement --month 2026-10", "what October cost, to be proven later"},
       {"ledger held --at 2026-11-27T03:00:00Z", "who had which GPUs that night"}});
  ledger->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, bool of_file = false) {
    CLI::App* const command = ledger->add_subcommand(name, what);
    File(command->add_option("--ledger", commands.ledger.path, "the file"))->required(of_file);
    command->callback([&commands, name] { commands.ledger_command = name; });
    return command;
  };
  CLI::App* const verify = add("verify", "check every entry, sum and hash", /*of_file=*/true);
  AddOutput(*verify, commands.format);
  File(verify->add_option("--statement", commands.statement_file, "prove what statement wrote"));
  CLI::App* const report = add("report", "GPU-hours by team and model, of a file or the server");
  AddLedgerSpan(*report, commands.ledger);
  AddClientOptions(*report, commands);
  CLI::App* const bill =
      add("bill", "what use costs, and the rest of the fleet; without --ledger the server's");
  AddSpan(*bill, commands.ledger, "the first of the month", "the last");
  bill->add_option("-o,--output", commands.client.output, "how the bill is written")
      ->type_name(kBillFormats)
      ->capture_default_str();
  CLI::App* const statement =
      add("statement", "what a month cost, for verify; without --ledger by the server's");
  AddSpan(*statement, commands.ledger, "the first of its month", "the end of the last month");
  statement->add_option("--month", commands.month, "in place of both")->type_name("YYYY-MM");
  for (CLI::App* const command : {bill, statement}) {
    CLI::Option* const by = command->add_option("--by", commands.bill_by, "what a row is of");
    by->type_name(kBillBy)->capture_default_str();
    AddServerOptions(*command, commands);
  }
  CLI::App* const held = add("held", "who had GPUs at a moment, of a file or the server");
  held->add_option("--at", commands.at, "RFC 3339, or a date; without it: now")->type_name("TIME");
  held->add_option("--leaf", commands.ledger.leaf, "of one team only")->type_name("QUOTA");
  AddClientOptions(*held, commands);
  CLI::App* const to_file = add("export", "who used which devices when", /*of_file=*/true);
  AddLedgerSpan(*to_file, commands.ledger);
  OneOf(to_file->add_option("-o,--output", commands.export_format, "how the rows are written"),
        {"csv", "json"})
      ->capture_default_str();
  to_file->add_flag("--past", commands.export_past,
                    "what happened (pods, nodes, edits) in place of it, as lines of JSON");
  for (CLI::App* const command : {bill, to_file}) {
    File(command->add_option("--hash-key", commands.hash_key,
                             "hash names of people's work by the key in this file"));
  }
  add("repair-clock", "take back what a wrong clock has written; no server may have the file",
      /*of_file=*/true);
}

void AddReplay(CLI::App& app, Commands& commands) {
  CLI::App* const command = AddCommand(
      app, kFileGroup, "replay",
      "live the past again that a ledger file tells of: as it was, and with edits",
      {{"replay --ledger ledger.db --since 7d --with edits.yaml", "had the quotas been others"},
       {"replay --ledger ledger.db --strategy Spread -o json", "had nodes been chosen otherwise"}});
  replay::ReplayOptions& replay = commands.replay;
  File(command->add_option("--ledger", replay.path, "the file"))->required();
  command->add_option("--since", replay.since, "how long ago it begins, or when (RFC 3339)")
      ->type_name("SPAN|TIME")
      ->capture_default_str();
  command->add_option("--until", replay.until, "RFC 3339; default the newest moment")
      ->type_name("TIME");
  File(command->add_option("--with", commands.edits_file,
                           "YAML or JSON as of `plan`: objects that would have been in force, and "
                           "what would not have been there; - is standard input"));
  OneOf(command->add_option("--strategy", replay.strategy, "how nodes would have been chosen"),
        {"Fragmentation", "BestFit", "Spread"});
  AddOutput(*command, commands.format);
}

void AddTopology(CLI::App& app, Commands& commands) {
  CLI::App* const topology = AddCommand(
      app, kFileGroup, "topology", "a machine's GPUs and links, from the text of nvidia-smi", {});
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
      AddCommand(app, kRunGroup, "probe", "write what a GPU node knows into its annotations", {});
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
  CLI::App* const reserve =
      AddCommand(app, kRunGroup, "reserve",
                 "inside a pod that holds a GPU for others: say which, or hold it", {});
  reserve->add_flag("--hold", options.hold, "do nothing until SIGTERM");
  File(reserve->add_option("--message-file", options.message_file, "where the GPU is written"))
      ->capture_default_str();
}

void AddSchedulerConfig(CLI::App& app, SchedulerConfigOptions& options) {
  CLI::App* const command =
      AddCommand(app, kRunGroup, "scheduler-config",
                 "print the KubeSchedulerConfiguration that wires kube-scheduler to us", {});
  command->add_option("--server", options.server, "URL as kube-scheduler reaches it")
      ->type_name("URL")
      ->capture_default_str();
  command->add_option("--scheduler-name", options.scheduler_name, "spec.schedulerName of the pods")
      ->type_name("NAME")
      ->capture_default_str();
  File(command->add_option("--kubeconfig", options.kubeconfig, "kubeconfig of kube-scheduler"))
      ->capture_default_str();
  command
      ->add_option("--nodes", options.nodes,
                   "nodes of the cluster: above 1000 kube-scheduler looks at a sample of them")
      ->type_name("COUNT")
      ->check(CLI::Range(1, kMostClusterNodes));
  command->add_flag("--all-pods,!--no-all-pods", options.all_pods,
                    "be asked about every pod (default); --no-all-pods: only about pods that name "
                    "an NVIDIA resource");
  File(command->add_option("--ca-file", options.ca_file, "CA of an https server"));
  File(command->add_option("--cert-file", options.cert_file,
                           "client certificate of kube-scheduler"));
  File(command->add_option("--key-file", options.key_file, "client key of kube-scheduler"));
}

void AddShellHelp(CLI::App& app, Commands& commands) {
  CLI::App* const completion = AddCommand(
      app, kShellGroup, "completion", "print the script that completes command lines in a shell",
      {{"completion bash > ~/.local/share/bash-completion/completions/tranche",
        "from the next shell on"}});
  OneOf(
      completion->add_option("shell", commands.shell,
                             "kubectl: for kubectl's own completion, as kubectl_complete-tranche"),
      CompletionShells())
      ->required();
  CLI::App* const version =
      AddCommand(app, kShellGroup, "version", "the versions of this program and of the server", {});
  version->add_flag("--client", commands.client_only, "of this program alone");
  AddClientOptions(*version, commands);
  AddCommand(app, kShellGroup, "man", "print the manual page, for man -l", {});
  AddServerOptions(*AddCommand(app, kShellGroup, kOptionsCommand,
                               "how the commands that ask a server reach it", {}),
                   commands);
  CLI::App* const help = AddCommand(app, kShellGroup, "help", "help for a command",
                                    {{"help ledger report", "flags of a command below a command"}});
  help->add_option("command", commands.help_of, "the command")->type_name("COMMAND");
}

}  // namespace

std::unique_ptr<CLI::App> MakeApp(const std::string& name, Commands& commands) {
  auto app = std::make_unique<CLI::App>("GPU scheduling for Kubernetes", name);
  app->set_version_flag("--version", std::string("tranche ") + Version());
  app->require_subcommand(1);
  SetHelpLayout(*app);
  app->footer(fmt::format("{0} COMMAND --help tells more of a command.", name));
  AddClient(*app, commands);
  AddValidate(*app, commands);
  AddExport(*app, commands);
  AddLedger(*app, commands);
  AddReplay(*app, commands);
  AddTopology(*app, commands);
  AddServe(*app, commands.serve);
  AddSchedulerConfig(*app, commands.scheduler_config);
  AddProbe(*app, commands.probe);
  AddReserve(*app, commands.reserve);
  AddShellHelp(*app, commands);
  return app;
}

}  // namespace tranche
