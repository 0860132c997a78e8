#include "scheduler/cli/cli_client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cli/cli_advice.h"
#include "scheduler/cli/cli_audit.h"
#include "scheduler/cli/cli_json.h"
#include "scheduler/cli/cli_reclaim.h"
#include "scheduler/cli/cli_table.h"
#include "scheduler/cli/exit_code.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/yaml_to_json.h"
#include "scheduler/wire/workloads/workload.h"

namespace tranche {
namespace {

constexpr int kDone = 0;
constexpr int kNo = 1;

// One line, whatever a server or file put into the text.
int Fail(std::ostream& err, int code, std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  err << "tranche: " << text << '\n';
  return code;
}

int Fail(std::ostream& err, const absl::Status& status) {
  return Fail(err, kUsage, std::string(status.message()));
}

// 3500 -> "3.5": thousandths with as few decimals as it takes.
std::string Thousandths(int64_t milli) {
  std::string text = fmt::format("{}{}.{:03}", milli < 0 ? "-" : "", std::abs(milli) / 1000,
                                 std::abs(milli) % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string Gibibytes(int64_t mebibytes) {
  return fmt::format("{}.{}", mebibytes / 1024, std::abs(mebibytes % 1024) * 10 / 1024);
}

std::string ReasonOf(const Json& holder) {
  const Json& reason = holder.at("reason");
  return reason.is_null() ? "-" : Text(reason, "text");
}

std::string DetailOf(const Json& holder) {
  const Json& reason = holder.at("reason");
  return reason.is_null() ? "-" : Text(reason, "detail");
}

// "0,1" or "0 1g.10gb@3": the devices of a pod in one cell.
std::string DevicesOf(const Json& holder) {
  std::vector<std::string> parts;
  for (const Json& device : holder.at("devices")) {
    std::string part = device.at("index").is_null() ? "?" : device.at("index").dump();
    if (!device.at("migProfile").is_null()) {
      part += fmt::format(" {}@{}", Text(device, "migProfile"), Text(device, "migStart"));
    } else if (Whole(device, "milli") != 1000) {
      part += fmt::format(" {}m {}MiB", Whole(device, "milli"), Whole(device, "mib"));
    }
    parts.push_back(std::move(part));
  }
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

struct Answer {
  std::string body;
  Json json;
};

// Asks and reads the answer; nullopt: `code` is set and the error is out. On entry `code` is the
// exit code that a 404 stands for.
std::optional<Answer> AskServer(const ClientOptions& options, std::string_view method,
                                std::string_view target, std::string_view body, std::ostream& err,
                                int& code) {
  const absl::StatusOr<Server> server = ReadServerFlags(options.server);
  if (!server.ok()) {
    code = Fail(err, server.status());
    return std::nullopt;
  }
  absl::StatusOr<std::string> reply = AskServer(*server, method, target, body);
  if (!reply.ok()) {
    code = Fail(err, absl::IsNotFound(reply.status()) ? code : kUsage,
                std::string(reply.status().message()));
    return std::nullopt;
  }
  Json json = Json::parse(*reply, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    code = Fail(err, kUsage, "expected a JSON object from the server, found something else");
    return std::nullopt;
  }
  return Answer{std::move(*reply), std::move(json)};
}

// Asks, prints the answer as JSON or by `print`, and turns answers of another form into an error.
template <typename Print>
int Show(const ClientOptions& options, std::string_view method, std::string_view target,
         std::string_view body, std::ostream& out, std::ostream& err, Print print,
         int code = kUsage) {
  const std::optional<Answer> answer = AskServer(options, method, target, body, err, code);
  if (!answer) return code;
  try {
    std::ostringstream page;
    page.copyfmt(out);
    code = print(answer->json, page);
    out << (options.json ? answer->body + '\n' : page.str());
    return code;
  } catch (const Json::exception& error) {
    return Fail(err, kUsage,
                fmt::format("expected the answer of a tranche server of this version, found {}",
                            error.what()));
  }
}

int PrintNodes(const Json& answer, std::ostream& out) {
  Table table(
      {"NODE", "MODEL", "GPUS", "FREE", "FREE GIB", "PODS", "KNOWLEDGE", "PARTS BY", "STATE"});
  for (const Json& node : answer.at("nodes")) {
    int64_t milli = 0;
    int64_t mebibytes = 0;
    std::size_t pods = 0;
    std::set<std::string> enforced;
    for (const Json& gpu : node.at("gpus")) {
      if (!gpu.at("enforcedBy").is_null()) enforced.insert(Text(gpu, "enforcedBy"));
      milli += Whole(gpu, "freeMilli");
      mebibytes += Whole(gpu, "freeMiB");
      pods += gpu.at("pods").size();
      if (gpu.at("mig").is_null()) continue;
      for (const Json& instance : gpu.at("mig")) pods += instance.at("pods").size();
    }
    const Json& closed = node.at("closed");
    const std::string state = !closed.is_null()              ? Text(closed, "text")
                              : node.at("ready").get<bool>() ? "ready"
                                                             : "not ready";
    table.Add({Text(node, "name"), Text(node, "model"), std::to_string(node.at("gpus").size()),
               Thousandths(milli), Gibibytes(mebibytes), std::to_string(pods),
               Text(node, "knowledge"),
               enforced.empty() ? "-" : fmt::format("{}", fmt::join(enforced, ",")), state});
  }
  out << (table.empty() ? "no nodes are known\n" : table.Text(TerminalOf(out)));
  return kDone;
}

void PrintQuotas(const Json& quotas, std::ostream& out) {
  Table table({"QUOTA", "PARENT", "MODE", "LINE", "NOMINAL", "USED", "BORROWED", "LENT",
               "AVAILABLE", "PENDING"});
  for (const Json& quota : quotas) {
    bool first = true;
    const auto once = [&first](std::string text) { return first ? std::move(text) : ""; };
    std::vector<std::string> head = {Text(quota, "name"), Text(quota, "parent"),
                                     Text(quota, "mode")};
    const std::string pending = Text(quota.at("pending"), "gpus");
    if (quota.at("lines").empty()) {
      table.Add({head[0], head[1], head[2], "-", "-", "-", "-", "-", "-", pending});
    }
    for (const Json& line : quota.at("lines")) {
      table.Add({once(head[0]), once(head[1]), once(head[2]), Text(line, "model"),
                 Text(line, "nominalGpus"), Text(line, "usedGpus"), Text(line, "borrowedGpus"),
                 Text(line, "lentGpus"), Text(line, "availableGpus"), once(pending)});
      first = false;
    }
  }
  out << (table.empty() ? "no GPUQuota is declared\n" : table.Text(TerminalOf(out)));
}

// Work of quotas that are gone.
void PrintAbandoned(const Json& rows, std::ostream& out) {
  for (const Json& row : rows) {
    const std::string text = fmt::format(
        "{} GPUs are held by pods that quota {} admitted, which is gone; no quota owns {}",
        row.at("gpus").dump(), Text(row, "quota"), fmt::join(row.at("namespaces"), ", "));
    out << '\n' << Wrapped(Harmless(text), 0, TerminalOf(out).columns) << '\n';
  }
}

void PrintBudgets(const Json& budgets, std::ostream& out) {
  if (budgets.empty()) return;
  Table table(
      {"BUDGET", "OF", "USED", "COMMITTED", "LIMIT", "PCT", "STATE", "WINDOW ENDS", "USED UP AT"});
  for (const Json& budget : budgets) {
    const std::string quota = Text(budget, "quotaRef");
    table.Add({Text(budget, "name"),
               quota != "-" ? quota : "namespace " + Text(budget, "namespace"),
               Text(budget, "used"), Text(budget, "committed"), Text(budget, "effective"),
               Text(budget, "percent"), Text(budget, "state"), Text(budget, "windowEnd"),
               Text(budget, "exhaustsAt")});
  }
  out << '\n' << table.Text(TerminalOf(out));
}

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

int PrintExplanation(const Json& pod, std::ostream& out) {
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
  if (Text(pod, "advice") != "-") PrintLabelled("advice", Text(pod, "advice"), out);
  PrintPlan(pod.at("plan"), out);
  PrintClaims(pod.value("claims", Json::array()), out);
  Table table({"NODE", "FITS", "RANK", "BECAUSE"});
  for (const Json& node : pod.at("nodes")) {
    const bool fits = node.at("fits").get<bool>();
    std::string because = ReasonOf(node);
    if (Text(node, "detail") != "-") {
      because = because == "-" ? Text(node, "detail")
                               : fmt::format("{}: {}", because, Text(node, "detail"));
    }
    table.Add({Text(node, "name"), fits ? "yes" : "no", Text(node, "rank"), because});
  }
  if (!table.empty()) out << '\n' << table.Text(TerminalOf(out));
  return kDone;
}

int PrintWhatIf(const Json& answer, std::ostream& out) {
  Table table({"POD", "FITS", "NODE", "DEVICES", "BECAUSE"});
  int code = kDone;
  for (const Json& pod : answer.at("pods")) {
    const bool fits = pod.at("fits").get<bool>();
    if (!fits) code = kNo;
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

// Adds one document; a List stands for its items.
absl::Status Collect(Json document, Json& pods) {
  if (document.is_null()) return absl::OkStatus();
  const std::string kind = document.is_object() ? Text(document, "kind") : "-";
  const bool pods_of = kind == "Pod" || kind == "PodGroup" || wire::IsWorkload(kind);
  if (pods_of || (kind == "-" && document.is_object())) {
    pods.push_back(std::move(document));
    return absl::OkStatus();
  }
  if ((kind == "List" || kind == "PodList") && document.contains("items") &&
      document["items"].is_array()) {
    for (Json& item : document["items"]) {
      if (const absl::Status taken = Collect(std::move(item), pods); !taken.ok()) return taken;
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format("expected kind List, Pod, PodGroup, {}, found {}",
                                                wire::WorkloadKinds(), wire::Quoted(kind)));
}

absl::StatusOr<std::string> ReadWhatIf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        fmt::format("expected a readable file, found none at {}", wire::Quoted(path)));
  }
  const absl::StatusOr<std::string> json = embedded::YamlToJson(text.str());
  if (!json.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}", path, std::string(json.status().message())));
  }
  Json body = {{"pods", Json::array()}};
  for (Json& document : Json::parse(*json, nullptr, /*allow_exceptions=*/false)) {
    if (const absl::Status taken = Collect(std::move(document), body["pods"]); !taken.ok()) {
      return absl::InvalidArgumentError(fmt::format("{}: {}", path, std::string(taken.message())));
    }
  }
  if (body["pods"].empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a Pod, found none", path));
  }
  return body.dump();
}

// What an API server takes as a name: safe in a path as it is.
bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

}  // namespace

int ShowNodes(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return Show(options, "GET", "/api/v1/nodes", "", out, err, PrintNodes);
}

int ShowTop(const ClientOptions& options, bool advise, std::ostream& out, std::ostream& err) {
  int code = kUsage;
  std::optional<Answer> advice;
  if (advise) {
    advice = AskServer(options, "GET", "/api/v1/advice", "", err, code);
    if (!advice) return code;
    if (options.json) {
      out << advice->body << '\n';
      return kDone;
    }
  }
  const std::optional<Answer> nodes = AskServer(options, "GET", "/api/v1/nodes", "", err, code);
  if (!nodes) return code;
  // -o json prints both answers as one object.
  ClientOptions table = options;
  table.json = false;
  return Show(table, "GET", "/api/v1/pods", "", out, err,
              [&](const Json& pods, std::ostream& page) {
                if (options.json) {
                  const Json both = {{"nodes", nodes->json.at("nodes")}, {"pods", pods.at("pods")}};
                  page << both.dump() << '\n';
                } else {
                  PrintModels(nodes->json.at("nodes"), page);
                  PrintStates(pods.at("pods"), page);
                  if (advice) PrintAdvice(advice->json, page);
                }
                return kDone;
              });
}

int ShowQuota(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  int code = kUsage;
  const std::optional<Answer> quotas = AskServer(options, "GET", "/api/v1/quotas", "", err, code);
  if (!quotas) return code;
  ClientOptions table = options;
  table.json = false;
  return Show(table, "GET", "/api/v1/budgets", "", out, err,
              [&options, &quotas](const Json& budgets, std::ostream& page) {
                if (options.json) {
                  const Json both = {{"quotas", quotas->json.at("quotas")},
                                     {"abandoned", quotas->json.at("abandoned")},
                                     {"budgets", budgets.at("budgets")}};
                  page << both.dump() << '\n';
                } else {
                  PrintQuotas(quotas->json.at("quotas"), page);
                  PrintAbandoned(quotas->json.at("abandoned"), page);
                  PrintBudgets(budgets.at("budgets"), page);
                }
                return kDone;
              });
}

int ShowAudit(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return Show(options, "GET", "/api/v1/audit", "", out, err,
              [](const Json& answer, std::ostream& page) {
                return PrintAudit(answer, page) ? kDone : kNo;
              });
}

int ShowReclaims(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return Show(options, "GET", "/api/v1/reclaims", "", out, err,
              [](const Json& answer, std::ostream& page) {
                PrintReclaims(answer, page);
                return kDone;
              });
}

int ExplainPod(const ClientOptions& options, const std::string& pod, const std::string& ns,
               std::ostream& out, std::ostream& err) {
  const std::size_t slash = pod.find('/');
  if (slash != std::string::npos && !ns.empty()) {
    return Fail(err, kUsage,
                fmt::format("expected NAMESPACE/POD, or POD and --namespace, found {} and {}",
                            wire::Quoted(pod), wire::Quoted(ns)));
  }
  const std::string of = slash == std::string::npos ? ns : pod.substr(0, slash);
  const std::string name = slash == std::string::npos ? pod : pod.substr(slash + 1);
  if (!IsName(of) || !IsName(name)) {
    return Fail(
        err, kUsage,
        fmt::format("expected NAMESPACE/POD, or POD and --namespace, found {}", wire::Quoted(pod)));
  }
  return Show(options, "GET", fmt::format("/api/v1/explain/{}/{}", of, name), "", out, err,
              PrintExplanation, kNo);
}

int AskWhatIf(const ClientOptions& options, const std::string& path, std::ostream& out,
              std::ostream& err) {
  const absl::StatusOr<std::string> body = ReadWhatIf(path);
  if (!body.ok()) return Fail(err, body.status());
  return Show(options, "POST", "/api/v1/whatif", *body, out, err, PrintWhatIf);
}

}  // namespace tranche
