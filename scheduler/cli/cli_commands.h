// Every command and flag there is, as one table: the parser reads a command line by it, and help,
// shell completion (cli_complete.h) and the manual page (cli_man.h) are written from it.
//
// The type name of an option or positional says what its value is: FILE, words between bars
// ("table|json") for one of these, with "..." behind one that goes on; anything else for a text
// that cannot be completed.
#pragma once

#include <CLI/App.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/cli/cli_ask.h"
#include "scheduler/cli/cli_ledger.h"
#include "scheduler/cli/cli_probe.h"
#include "scheduler/cli/cli_reserve.h"
#include "scheduler/cli/cli_topology.h"
#include "scheduler/cli/replay/replay.h"
#include "scheduler/cli/scheduler_config.h"

namespace tranche {

inline constexpr const char* kFileType = "FILE";
// Group of the options that every command that asks a server has.
inline constexpr const char* kServerGroup = "How to reach the server";
// The command whose help tells of them for all.
inline constexpr const char* kOptionsCommand = "options";

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
  // By command: CLI11 reads the environment for commands that were not called too, and would
  // overwrite what a flag has said in a place they share.
  std::map<std::string, ServerFlags> servers;
  bool by_kubectl = false;
  std::string format = "table";  // of commands that need no server
  bool advise = false;
  bool once = false;
  std::string pod;
  bool each_node = false;
  bool rank = false;
  bool client_only = false;
  std::string what_if_file;
  std::string edits_file;
  std::vector<std::string> validate_files;
  std::vector<std::string> export_files;
  std::optional<std::string> statement_file;
  std::optional<std::string> month;
  std::optional<std::string> at;
  std::string ledger_command;
  replay::ReplayOptions replay;
  LedgerSpan ledger;
  std::string bill_by = "team";
  std::string export_format = "csv";
  bool export_past = false;
  std::optional<std::string> hash_key;
  std::string topology_command;
  BestSetsOptions topology;
  ProbeOptions probe;
  ReserveOptions reserve;
  SchedulerConfigOptions scheduler_config;
  std::string shell;
  std::vector<std::string> help_of;
};

// `name`: how the program is called, "tranche" or "kubectl tranche". Parsing fills `commands`,
// which must live as long.
std::unique_ptr<CLI::App> MakeApp(const std::string& name, Commands& commands);

inline bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
inline bool MayRepeat(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

}  // namespace tranche
