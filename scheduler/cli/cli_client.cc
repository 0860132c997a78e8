#include "scheduler/cli/cli_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/api/pages.h"
#include "scheduler/cli/cli_advice.h"
#include "scheduler/cli/cli_reclaim.h"
#include "scheduler/cli/output/audit.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/rank.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/cli/screen/raw_terminal.h"
#include "scheduler/cli/screen/top_screen.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

struct ModelRow {
  int64_t nodes = 0, cards = 0, idle = 0, free_milli = 0, free_mib = 0, memory = 0;
};

std::string Percent(int64_t part, int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{}%", part * 100 / whole);
}

void PrintModels(const Json& nodes, std::ostream& out) {
  std::map<std::string, ModelRow> models;
  for (const Json& node : nodes) {
    if (node.at("gpus").empty()) continue;
    ModelRow& row = models[Text(node, "model")];
    ++row.nodes;
    for (const Json& gpu : node.at("gpus")) {
      ++row.cards;
      const int64_t milli = Whole(gpu, "freeMilli");
      const int64_t mib = Whole(gpu, "freeMiB");
      const int64_t memory = Whole(gpu, "memoryMiB");
      if (milli == 1000 && mib == memory) ++row.idle;
      row.free_milli += milli;
      row.free_mib += mib;
      row.memory += memory;
    }
  }
  Table table({"MODEL", "NODES", "GPUS", "IDLE", "COMPUTE USED", "MEMORY USED", "FREE GIB"});
  for (const auto& [model, row] : models) {
    table.Add({model, std::to_string(row.nodes), std::to_string(row.cards),
               std::to_string(row.idle),
               Percent(row.cards * 1000 - row.free_milli, row.cards * 1000),
               Percent(row.memory - row.free_mib, row.memory), Gibibytes(row.free_mib)});
  }
  out << (table.empty() ? "no GPUs are known\n" : table.Text(TerminalOf(out)));
}

void PrintStates(const Json& pods, std::ostream& out) {
  std::map<std::string, int64_t> states;
  std::map<std::string, int64_t> reasons;
  for (const Json& pod : pods) {
    ++states[Text(pod, "state")];
    if (!pod.at("reason").is_null()) ++reasons[ReasonOf(pod)];
  }
  out << fmt::format("\npods: {} bound, {} reserved, {} claimed, {} pending\n", states["bound"],
                     states["reserved"], states["claimed"], states["pending"]);
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::sort(order.begin(), order.end());
  if (order.empty()) return;
  Table table({"PODS", "WAIT BECAUSE"});
  for (const auto& [count, reason] : order) table.Add({std::to_string(-count), reason});
  out << '\n' << table.Text(TerminalOf(out));
}

std::string Joined(const Json& texts) {
  std::string joined;
  for (const Json& text : texts) joined += (joined.empty() ? "" : ", ") + text.get<std::string>();
  return joined.empty() ? "-" : joined;
}

// Resource claims, and what their containers share.
void PrintClaims(const Json& claims, std::ostream& out) {
  if (claims.empty()) return;
  Table table({"CLAIM", "NODE", "DEVICES", "GPUS", "USED BY"});
  for (const Json& claim : claims) {
    table.Add({Text(claim, "name"), Text(claim, "node"), Joined(claim.at("devices")),
               claim.at("allocated").get<bool>() ? Text(claim, "gpus") : "not allocated",
               Joined(claim.at("pods"))});
  }
  out << '\n' << table.Text(TerminalOf(out));
  for (const Json& claim : claims) {
    for (const Json& sentence : claim.at("sharing")) {
      out << fmt::format("{}: {}\n", Text(claim, "name"), sentence.get<std::string>());
    }
  }
}

// A line for each node.
std::string NodesText(const Json& nodes, std::ostream& out) {
  Table table({"NODE", "FITS", "RANK", "BECAUSE"});
  for (const Json& node : nodes) {
    std::string because = ReasonOf(node);
    if (Text(node, "detail") != "-") {
      because = because == "-" ? Text(node, "detail")
                               : fmt::format("{}: {}", because, Text(node, "detail"));
    }
    table.Add({Text(node, "name"), node.at("fits").get<bool>() ? "yes" : "no", Text(node, "rank"),
               because});
  }
  return table.Text(TerminalOf(out));
}

// Nodes that answer alike.
struct NodeAnswer {
  bool fits = false;
  std::string because;
  std::string detail;                                  // of the first, if it is that of all
  std::vector<std::pair<int64_t, std::string>> nodes;  // rank, name
};

// "gpu-1, gpu-2, gpu-3 and 40 more", the best first.
std::string FirstOf(std::vector<std::pair<int64_t, std::string>> nodes) {
  constexpr std::size_t kMostNames = 3;
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& left, const auto& right) { return left.first < right.first; });
  std::string text;
  for (std::size_t at = 0; at < std::min(nodes.size(), kMostNames); ++at) {
    text += (at == 0 ? "" : ", ") + nodes[at].second;
  }
  if (nodes.size() > kMostNames) text += fmt::format(" and {} more", nodes.size() - kMostNames);
  return text;
}

// A line for each answer: nodes that fit first, then the answer of most.
std::string AnswersText(const Json& nodes, std::ostream& out) {
  std::map<std::pair<bool, std::string>, NodeAnswer> answers;
  for (const Json& node : nodes) {
    const bool fits = node.at("fits").get<bool>();
    NodeAnswer& answer = answers[{fits, ReasonOf(node)}];
    const std::string detail = Text(node, "detail");
    if (answer.nodes.empty()) {
      answer = {fits, ReasonOf(node), detail, {}};
    } else if (answer.detail != detail) {
      answer.detail = "-";
    }
    answer.nodes.emplace_back(node.at("rank").is_null() ? 0 : Whole(node, "rank"),
                              Text(node, "name"));
  }
  std::vector<NodeAnswer> order;
  for (auto& [key, answer] : answers) order.push_back(std::move(answer));
  std::stable_sort(order.begin(), order.end(), [](const NodeAnswer& a, const NodeAnswer& b) {
    return std::pair(!a.fits, b.nodes.size()) < std::pair(!b.fits, a.nodes.size());
  });
  Table table({"NODES", "FITS", "BECAUSE", "WHICH"});
  for (const NodeAnswer& answer : order) {
    std::string because = answer.because;
    if (answer.detail != "-") {
      because = because == "-" ? answer.detail : fmt::format("{}: {}", because, answer.detail);
    }
    table.Add({std::to_string(answer.nodes.size()), answer.fits ? "yes" : "no", because,
               FirstOf(answer.nodes)});
  }
  return table.Text(TerminalOf(out));
}

// kube-scheduler's own message, where the reason does not end with it.
std::string SchedulerSays(const Json& pod) {
  if (!pod.contains("schedulerSays")) return "";
  const std::string says = Text(pod, "schedulerSays");
  return DetailOf(pod).ends_with(says) ? "" : "kube-scheduler: " + says;
}

int PrintExplanation(const Json& pod, bool each_node, std::ostream& out) {
  PrintLabelled("pod", fmt::format("{}/{}", Text(pod, "namespace"), Text(pod, "name")), out);
  PrintLabelled("state", Text(pod, "state"), out);
  PrintLabelled("node", Text(pod, "node"), out);
  PrintLabelled("devices", DevicesOf(pod), out);
  if (Text(pod, "leaf") != "-") {
    PrintLabelled(
        "quota",
        Text(pod, "leaf") + (Text(pod, "quotaState") == "-" ? "" : ", " + Text(pod, "quotaState")),
        out);
  }
  if (Text(pod, "class") != "-") PrintLabelled("class", Text(pod, "class"), out);
  if (!pod.at("reason").is_null()) {
    PrintLabelled("reason", ReasonOf(pod), out);
    PrintLabelled("detail", DetailOf(pod), out);
    const std::string eligible = Text(pod.at("reason"), "eligibleAt");
    if (eligible != "-") PrintLabelled("until", eligible, out);
  }
  if (const std::string says = SchedulerSays(pod); !says.empty())
    PrintLabelled("others", says, out);
  for (const Json& sentence : pod.value("ownLimits", Json::array())) {
    PrintLabelled("sets", sentence.get<std::string>(), out);
  }
  if (Text(pod, "advice") != "-") PrintLabelled("advice", Text(pod, "advice"), out);
  if (pod.contains("forecast")) PrintLabelled("start", StartOf(pod.at("forecast")), out);
  if (pod.contains("provisioning")) {
    const Json& asked = pod.at("provisioning");
    const std::string since = Text(asked, "since");
    PrintLabelled("nodes",
                  fmt::format("ProvisioningRequest {}: {}{}", Text(asked, "request"),
                              Text(asked, "text"), since == "-" ? "" : ", since " + since),
                  out);
  }
  if (pod.contains("rightSize")) {
    const Json& less = pod.at("rightSize");
    const Json& request = less.at("request");
    PrintLabelled("use",
                  fmt::format("{} ({}: {})", Text(less, "text"), Text(request, "key"),
                              Text(request, "value")),
                  out);
  }
  PrintPlan(pod.at("plan"), out);
  PrintClaims(pod.value("claims", Json::array()), out);
  const Json& nodes = pod.at("nodes");
  if (!nodes.empty()) out << '\n' << (each_node ? NodesText(nodes, out) : AnswersText(nodes, out));
  return kExitDone;
}

int PrintWhatIf(const Json& answer, std::ostream& out) {
  Table table({"POD", "FITS", "NODE", "DEVICES", "BECAUSE"});
  int code = kExitDone;
  for (const Json& pod : answer.at("pods")) {
    const bool fits = pod.at("fits").get<bool>();
    if (!fits) code = kExitNo;
    const bool evicts = !pod.value("victims", Json::array()).empty();
    std::string because = ReasonOf(pod);
    if (DetailOf(pod) != "-") because += ": " + DetailOf(pod);
    table.Add({fmt::format("{}/{}", Text(pod, "namespace"), Text(pod, "name")),
               !fits    ? "no"
               : evicts ? "evicting"
                        : "yes",
               Text(pod, "node"), DevicesOf(pod), because});
  }
  out << table.Text(TerminalOf(out));
  for (const Json& pod : answer.at("pods")) PrintEvictions(pod, out);
  return code;
}

// What an API server takes as a name: safe in a path as it is.
bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

// Nodes and pods in one answer.
std::optional<Answer> AskTop(const Server& server, std::ostream& err, int& code) {
  std::optional<Answer> both = AskServer(server, "GET", "/api/v1/nodes", "", err, code);
  if (!both) return std::nullopt;
  std::optional<Answer> pods = AskServer(server, "GET", "/api/v1/pods", "", err, code);
  if (!pods) return std::nullopt;
  both->json["pods"] = pods->json.value("pods", Json());
  both->body = both->json.dump();
  return both;
}

void TakeTop(const Json& both, bool colour, TopView& view) {
  try {
    std::ostringstream sums;
    SetTerminal(sums, {.columns = 0, .colour = colour});
    PrintModels(both.at("nodes"), sums);
    PrintStates(both.at("pods"), sums);
    view.Take(sums.str(), both.at("pods"));
  } catch (const Json::exception& error) {
    view.Fail(fmt::format("expected the answer of a tranche server of this version, found {}",
                          error.what()));
  }
}

// `first`: what the server has said already.
int StayOnTop(const Server& server, const Json& first, std::chrono::milliseconds pace,
              std::ostream& out, std::ostream& err) {
  const bool colour = TerminalOf(out).colour;
  TopView view(server.shown);
  TakeTop(first, colour, view);
  const TopQuestion ask = [&server, colour]() -> std::function<void(TopView&)> {
    std::ostringstream problem;
    int code = kExitUsage;
    std::optional<Answer> both = AskTop(server, problem, code);
    if (!both) return [why = problem.str()](TopView& shown) { shown.Fail(why); };
    return [json = std::move(both->json), colour](TopView& shown) { TakeTop(json, colour, shown); };
  };
  const absl::Status stayed = StayOnTop(view, ask, pace, colour);
  return stayed.ok() ? kExitDone : Fail(err, stayed);
}

}  // namespace

int ShowTop(const ClientOptions& options, const TopOptions& top, std::ostream& out,
            std::ostream& err) {
  const absl::StatusOr<OutputFormat> format = ParseOutputFormat(options.output, kAnswerFormats);
  if (!format.ok()) return Fail(err, format.status());
  const absl::StatusOr<Server> server = ReadServerFlags(options.server);
  if (!server.ok()) return Fail(err, server.status());
  int code = kExitUsage;
  std::optional<Answer> advice;
  if (top.advise) {
    advice = AskServer(*server, "GET", "/api/v1/advice", "", err, code);
    if (!advice) return code;
    if (format->kind != OutputFormat::Kind::kTable) {
      out << WriteAnswer(*format, advice->body, advice->json);
      return kExitDone;
    }
  }
  std::optional<Answer> both = AskTop(*server, err, code);
  if (!both) return code;
  const bool stays = format->kind == OutputFormat::Kind::kTable && !top.once && !top.advise &&
                     TerminalOf(out).columns > 0 && RawTerminal::IsThere();
  if (stays) return StayOnTop(*server, both->json, options.pace, out, err);
  return ShowAnswer(*format, *both, out, err, [&advice](const Json& answer, std::ostream& page) {
    PrintModels(answer.at("nodes"), page);
    PrintStates(answer.at("pods"), page);
    if (advice) PrintAdvice(advice->json, page);
    return kExitDone;
  });
}

int ShowVersions(const ClientOptions& options, bool client_only, std::ostream& out,
                 std::ostream& err) {
  const absl::StatusOr<OutputFormat> format = ParseOutputFormat(options.output, kAnswerFormats);
  if (!format.ok()) return Fail(err, format.status());
  Json both = {{"client", {{"version", Version()}}}, {"server", nullptr}};
  int code = kExitDone;
  if (!client_only) {
    const absl::StatusOr<Server> server = ReadServerFlags(options.server);
    std::optional<Answer> answer;
    if (!server.ok()) {
      code = Fail(err, server.status());
    } else {
      code = kExitUsage;
      answer = AskServer(*server, "GET", "/version", "", err, code);
    }
    if (answer) {
      code = kExitDone;
      both["server"] = {{"version", Text(answer->json, "version")}, {"at", server->shown}};
    }
  }
  const auto print = [code](const Json& versions, std::ostream& page) {
    PrintLabelled("client", Text(versions.at("client"), "version"), page);
    const Json& server = versions.at("server");
    if (!server.is_null()) {
      PrintLabelled("server", fmt::format("{} at {}", Text(server, "version"), Text(server, "at")),
                    page);
    }
    return code;
  };
  return ShowAnswer(*format, {both.dump(), both}, out, err, print);
}

int ShowLedgerReport(const ClientOptions& options, const std::string& query, std::ostream& out,
                     std::ostream& err) {
  return Show(options, "GET", "/api/v1/ledger" + query, "", out, err,
              [](const Json& report, std::ostream& page) {
                const bool restored = report.contains("restored");
                std::vector<std::string> titles = {"TEAM", "MODEL", "GPU-HOURS"};
                if (restored) titles.emplace_back("RESTORED");
                Table table(std::move(titles));
                for (const Json& row : report.at("rows")) {
                  std::vector<std::string> cells = {Text(row, "leaf"), Text(row, "model"),
                                                    Text(row, "gpuHours")};
                  if (restored) cells.push_back(Text(row, "restoredGpuHours"));
                  table.Add(std::move(cells));
                }
                std::vector<std::string> total = {"total", "", Text(report, "total")};
                if (restored) total.emplace_back();
                table.Add(std::move(total));
                page << table.Text(TerminalOf(page));
                return kExitDone;
              });
}

int ShowAudit(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return Show(options, "GET", "/api/v1/audit", "", out, err,
              [](const Json& answer, std::ostream& page) {
                return PrintAudit(answer, page) ? kExitDone : kExitNo;
              });
}

int ExplainPod(const ClientOptions& options, const std::string& pod, ExplainWhat what,
               std::ostream& out, std::ostream& err) {
  const std::size_t slash = pod.find('/');
  if (slash != std::string::npos && !options.ns.empty()) {
    return Fail(err, kExitUsage,
                fmt::format("expected NAMESPACE/POD, or POD and --namespace, found {} and {}",
                            wire::Quoted(pod), wire::Quoted(options.ns)));
  }
  const std::string name = slash == std::string::npos ? pod : pod.substr(slash + 1);
  std::string of = slash == std::string::npos ? options.ns : pod.substr(0, slash);
  if (of.empty()) {
    // The kubeconfig may know; its own errors come where the server is asked.
    const absl::StatusOr<Server> server = ReadServerFlags(options.server);
    if (server.ok()) of = server->ns;
  }
  if (!IsName(of) || !IsName(name)) {
    return Fail(
        err, kExitUsage,
        fmt::format("expected NAMESPACE/POD, or POD and --namespace, found {}", wire::Quoted(pod)));
  }
  const bool rank = what == ExplainWhat::kRank;
  return Show(
      options, "GET", fmt::format("/api/v1/{}/{}/{}", rank ? "rank" : "explain", of, name), "", out,
      err,
      [rank, what](const Json& answer, std::ostream& page) {
        if (!rank) return PrintExplanation(answer, what == ExplainWhat::kEachNode, page);
        PrintRank(answer, page);
        return kExitDone;
      },
      kExitNo);
}

int AskWhatIf(const ClientOptions& options, const absl::StatusOr<Manifest>& manifest,
              std::ostream& out, std::ostream& err) {
  if (!manifest.ok()) return Fail(err, manifest.status());
  const absl::StatusOr<std::string> body = PodsOf(*manifest);
  if (!body.ok()) return Fail(err, body.status());
  return Show(options, "POST", "/api/v1/whatif", *body, out, err, PrintWhatIf);
}

int AskPlan(const ClientOptions& options, const absl::StatusOr<Manifest>& manifest,
            std::ostream& out, std::ostream& err) {
  if (!manifest.ok()) return Fail(err, manifest.status());
  const absl::StatusOr<std::string> body = EditsOf(*manifest);
  if (!body.ok()) return Fail(err, body.status());
  return Show(options, "POST", "/api/v1/plan", *body, out, err,
              [](const Json& answer, std::ostream& page) {
                PrintEditPlan(answer, page);
                return kExitDone;
              });
}

}  // namespace tranche
