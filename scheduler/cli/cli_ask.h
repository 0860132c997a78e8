// Asking a running server, and printing what it says in one of the forms of -o.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/cli/cli_server.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/output_format.h"

namespace tranche {

// What the flags of a command that asks a server said.
struct ClientOptions {
  ServerFlags server;
  std::string output = "table";  // the words of output_format.h
  std::string sort_by;
  std::string ns;               // -n; empty: the kubeconfig's, if one is used, or all
  bool all_namespaces = false;  // -A
  std::string selector;         // -l, of pods' labels; empty: all
  bool watch = false;
  std::vector<std::string> names;        // objects by name; none: all
  std::chrono::milliseconds pace{2000};  // between two looks
};

// One line on `err`, whatever a server or file put into the text; returns `code`.
int Fail(std::ostream& err, int code, std::string text);
int Fail(std::ostream& err, const absl::Status& status);

struct Answer {
  std::string body;
  Json json;
};

// Asks and reads the answer; nullopt: `code` is set and the error is out. On entry `code` is the
// exit code that a 404 stands for.
std::optional<Answer> AskServer(const Server& server, std::string_view method,
                                std::string_view target, std::string_view body, std::ostream& err,
                                int& code);

// What an answer of another form than this version's means.
int FailOfForm(std::ostream& err, const Json::exception& error);

// Prints the answer for people; returns the exit code.
using PrintAnswer = std::function<int(const Json& answer, std::ostream& out)>;

// Prints an answer as kAnswerFormats has it, by `print` as a table; the exit code is that of
// `print`, and 2 for an answer of another form.
int ShowAnswer(const OutputFormat& format, const Answer& answer, std::ostream& out,
               std::ostream& err, const PrintAnswer& print);

// Reads -o, asks and prints. `missing`: what a 404 stands for.
int Show(const ClientOptions& options, std::string_view method, std::string_view target,
         std::string_view body, std::ostream& out, std::ostream& err, const PrintAnswer& print,
         int missing = kExitUsage);

// The namespace that a command is about: -n, else that of the kubeconfig's context; "" for all.
std::string NamespaceOf(const ClientOptions& options, const Server& server);

}  // namespace tranche
