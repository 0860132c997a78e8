#include "scheduler/cli/cli_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "policy/selector_text.h"
#include "scheduler/cli/cli_reclaim.h"
#include "scheduler/cli/output/list.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/kube/transport/server_url.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {
namespace {

struct NodeSums {
  int64_t milli = 0, mebibytes = 0, unhealthy = 0, instances = 0;
  std::size_t pods = 0;
  std::set<std::string> enforced;
};

NodeSums SumsOf(const Json& node) {
  NodeSums sums;
  for (const Json& gpu : node.at("gpus")) {
    if (!gpu.at("enforcedBy").is_null()) sums.enforced.insert(Text(gpu, "enforcedBy"));
    if (!gpu.at("healthy").get<bool>()) ++sums.unhealthy;
    // Of compute and memory what is scarcer, as everywhere.
    const int64_t memory = Whole(gpu, "memoryMiB");
    sums.milli += std::min(Whole(gpu, "freeMilli"),
                           memory > 0 ? 1000 * Whole(gpu, "freeMiB") / memory : 1000);
    sums.mebibytes += Whole(gpu, "freeMiB");
    sums.pods += gpu.at("pods").size();
    if (gpu.at("mig").is_null()) continue;
    for (const Json& instance : gpu.at("mig")) {
      ++sums.instances;
      sums.pods += instance.at("pods").size();
    }
  }
  return sums;
}

std::string Listed(const Json& texts) {
  std::string joined;
  for (const Json& text : texts) joined += (joined.empty() ? "" : "; ") + text.get<std::string>();
  return joined.empty() ? "-" : joined;
}

Rows NodeRows(const Json& node, const Json& /*answer*/) {
  const NodeSums sums = SumsOf(node);
  std::string price = Text(node, "pricePerHour");
  if (price != "-") price += " " + Text(node, "currency");
  const Json& closed = node.at("closed");
  const std::string state = !closed.is_null()              ? Text(closed, "text")
                            : node.at("ready").get<bool>() ? "ready"
                                                           : "not ready";
  return {{Text(node, "name"), Text(node, "model"), std::to_string(node.at("gpus").size()),
           Thousandths(sums.milli), Gibibytes(sums.mebibytes), std::to_string(sums.pods),
           Text(node, "knowledge"),
           sums.enforced.empty() ? "-" : fmt::format("{}", fmt::join(sums.enforced, ",")), state,
           std::to_string(sums.instances), std::to_string(sums.unhealthy), Text(node, "pool"),
           price, Listed(node.value("problems", Json::array()))}};
}

std::string NameOf(const Json& object) { return Text(object, "name"); }

const ListShape kNodes = {"nodes",
                          "node",
                          "no nodes are known",
                          {{"NODE"},
                           {"MODEL"},
                           {"GPUS"},
                           {"FREE"},
                           {"FREE GIB"},
                           {"PODS"},
                           {"KNOWLEDGE"},
                           {"PARTS BY"},
                           {"STATE"},
                           {"MIG", true},
                           {"UNHEALTHY", true},
                           {"POOL", true},
                           {"PRICE/HOUR", true},
                           {"PROBLEMS", true}},
                          NodeRows,
                          NameOf};

std::string NameOfPod(const Json& pod) {
  return fmt::format("{}/{}", Text(pod, "namespace"), Text(pod, "name"));
}

// Of a pod or a gang, by this machine's clock.
std::string WaitOf(const Json& pod) {
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  return Age(Text(pod, "waitsSince"), wire::FormatTime(now));
}

// For how long its GPUs have done nothing.
std::string IdleOf(const Json& pod) {
  const auto use = pod.find("use");
  if (use == pod.end()) return "-";
  const Instant now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  return Age(Text(*use, "idleSince"), wire::FormatTime(now));
}

// In GPUs, where it is known which ones.
std::string HeldBy(const Json& pod) {
  int64_t milli = 0;
  for (const Json& device : pod.at("devices")) milli += Whole(device, "milli");
  return pod.at("devices").empty() ? "-" : Thousandths(milli);
}

Rows PodRows(const Json& pod, const Json& /*answer*/) {
  return {{Text(pod, "namespace"), Text(pod, "name"), Text(pod, "state"), Text(pod, "leaf"),
           Text(pod, "quotaState"), Text(pod, "node"), HeldBy(pod), Text(pod, "class"),
           Text(pod, "priorityClass"), DevicesOf(pod), IdleOf(pod), AsksOf(pod), WaitOf(pod),
           ReasonOf(pod)}};
}

const ListShape kPods = {"pods",
                         "pod",
                         "no pods are known",
                         {{"NAMESPACE"},
                          {"NAME"},
                          {"STATE"},
                          {"QUOTA"},
                          {"HELD AS"},
                          {"NODE"},
                          {"GPUS"},
                          {"CLASS", true},
                          {"PRIORITY", true},
                          {"DEVICES", true},
                          {"IDLE", true},
                          {"ASKS", true},
                          {"WAITS", true},
                          {"REASON", true}},
                         PodRows,
                         NameOfPod,
                         /*of_namespaces=*/true};

// From now on, by this machine's clock: "2h", "now"; "-" where no time is known.
std::string StartsIn(const Json& pod) {
  if (!pod.contains("forecast")) return "-";
  const std::string at = Text(pod.at("forecast"), "p50");
  if (at == "-") return at;
  const std::string now =
      wire::FormatTime(std::chrono::floor<Millis>(std::chrono::system_clock::now()));
  return at <= now ? "now" : Age(now, at);
}

std::string ForecastOf(const Json& pod) {
  return pod.contains("forecast") ? StartOf(pod.at("forecast")) : "-";
}

Rows QueueRows(const Json& pod, const Json& /*answer*/) {
  const Json asks = pod.value("asks", Json());
  const bool known = asks.is_object();
  const Json& reason = pod.at("reason");
  return {{Text(pod, "namespace"), Text(pod, "name"), Text(pod, "leaf"), AsksOf(pod),
           known ? Listed(asks.at("models")) : "-", WaitOf(pod), StartsIn(pod), ReasonOf(pod),
           Text(pod, "class"), Text(pod, "priorityClass"), known ? Text(asks, "gang") : "-",
           reason.is_null() ? "-" : Text(reason, "eligibleAt"), DetailOf(pod), ForecastOf(pod)}};
}

const ListShape kQueue = {"pods",
                          "waiting pod",
                          "no pod waits for GPUs",
                          {{"NAMESPACE"},
                           {"NAME"},
                           {"QUOTA"},
                           {"ASKS"},
                           {"MODELS"},
                           {"WAITS"},
                           {"STARTS IN"},
                           {"REASON"},
                           {"CLASS", true},
                           {"PRIORITY", true},
                           {"GANG", true},
                           {"MAY START", true},
                           {"DETAIL", true},
                           {"FORECAST", true}},
                          QueueRows,
                          NameOfPod,
                          /*of_namespaces=*/true,
                          [](const Json& pod) {
                            const std::string state = Text(pod, "state");
                            return state == "pending" || state == "claimed";
                          },
                          ".waitsSince"};

Rows GangRows(const Json& gang, const Json& /*answer*/) {
  const auto count = [&gang](const char* key) { return std::to_string(Whole(gang, key)); };
  return {{Text(gang, "namespace"), Text(gang, "name"), Text(gang, "state"), Text(gang, "size"),
           count("bound"), count("waiting"), Text(gang, "leaf"), WaitOf(gang), Text(gang, "text"),
           count("binding"), count("gated"), count("withoutGpus"), Listed(gang.at("nodes"))}};
}

const ListShape kGangs = {"gangs",
                          "gang",
                          "no gang is known",
                          {{"NAMESPACE"},
                           {"NAME"},
                           {"STATE"},
                           {"SIZE"},
                           {"BOUND"},
                           {"WAITING"},
                           {"QUOTA"},
                           {"WAITS"},
                           {"REASON"},
                           {"BINDING", true},
                           {"GATED", true},
                           {"NO GPU", true},
                           {"NODES", true}},
                          GangRows,
                          NameOfPod,
                          /*of_namespaces=*/true};

Rows EventRows(const Json& event, const Json& /*answer*/) {
  const bool of_pod = !event.at("name").is_null();
  return {{Text(event, "at"), Text(event, "kind"), of_pod ? NameOfPod(event) : "-",
           Text(event, "node"), Text(event, "leaf"), Text(event, "text"),
           std::to_string(Whole(event, "id"))}};
}

const ListShape kEvents = {
    .member = "events",
    .one = "pod with events",
    .none = "nothing has happened lately",
    .columns = {{"AT"}, {"WHAT"}, {"POD"}, {"NODE"}, {"QUOTA"}, {"DETAIL"}, {"ID", true}},
    .rows = EventRows,
    .name = NameOfPod,
    .of_namespaces = true,
    .key = [](const Json& event) { return event.at("id").dump(); }};

Rows QuotaRows(const Json& quota, const Json& /*answer*/) {
  Rows rows;
  const auto add = [&](const std::string& model, const std::vector<std::string>& sums) {
    const bool first = rows.empty();
    const auto once = [first](std::string text) { return first ? std::move(text) : ""; };
    std::vector<std::string>& row = rows.emplace_back();
    row = {once(Text(quota, "name")), once(Text(quota, "parent")), once(Text(quota, "mode")),
           model};
    row.insert(row.end(), sums.begin(), sums.end());
    row.push_back(once(Text(quota.at("pending"), "gpus")));
    row.push_back(once(Text(quota.at("pending"), "workloads")));
    row.push_back(once(Text(quota, "fairShareGpus")));
    row.push_back(once(Text(quota, "decayedGpuHours")));
    row.push_back(once(Listed(quota.value("namespaces", Json::array()))));
  };
  if (quota.at("lines").empty()) add("-", {"-", "-", "-", "-", "-"});
  for (const Json& line : quota.at("lines")) {
    const Json pool = line.value("pool", Json());
    add(Text(line, "model") + (pool.is_string() ? "@" + pool.get<std::string>() : ""),
        {Text(line, "nominalGpus"), Text(line, "usedGpus"), Text(line, "borrowedGpus"),
         Text(line, "lentGpus"), Text(line, "availableGpus")});
  }
  return rows;
}

const ListShape kQuotas = {"quotas",
                           "quota",
                           "no GPUQuota is declared",
                           {{"QUOTA"},
                            {"PARENT"},
                            {"MODE"},
                            {"LINE"},
                            {"NOMINAL"},
                            {"USED"},
                            {"BORROWED"},
                            {"LENT"},
                            {"AVAILABLE"},
                            {"PENDING"},
                            {"WAITING", true},
                            {"FAIR SHARE", true},
                            {"GPU-H LATELY", true},
                            {"NAMESPACES", true}},
                           QuotaRows,
                           NameOf};

// Work of quotas that are gone.
void PrintAbandoned(const Json& rows, std::ostream& out) {
  for (const Json& row : rows) {
    const std::string text = fmt::format(
        "{} GPUs are held by pods that quota {} admitted, which is gone; no quota owns {}",
        row.at("gpus").dump(), Text(row, "quota"), fmt::join(row.at("namespaces"), ", "));
    out << '\n' << Wrapped(Harmless(text), 0, TerminalOf(out).columns) << '\n';
  }
}

// Teams that cannot count on a pod as large as what is their own.
void PrintReach(const Json& quotas, std::ostream& out) {
  for (const Json& quota : quotas) {
    for (const Json& line : quota.value("reach", Json::array())) {
      if (Text(line, "reason") == "-") continue;
      const std::string text = fmt::format("{}: {}", NameOf(quota), Text(line, "text"));
      out << '\n' << Wrapped(Harmless(text), 0, TerminalOf(out).columns) << '\n';
    }
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

// Budgets of those quotas alone that are shown, and no work of others.
void PrintBelowQuotas(const Json& answer, bool all, std::ostream& out) {
  PrintReach(answer.at("quotas"), out);
  if (all) {
    PrintAbandoned(answer.at("abandoned"), out);
    PrintBudgets(answer.at("budgets"), out);
    return;
  }
  std::set<std::string> shown;
  for (const Json& quota : answer.at("quotas")) shown.insert(NameOf(quota));
  Json budgets = Json::array();
  for (const Json& budget : answer.at("budgets")) {
    if (shown.contains(Text(budget, "quotaRef"))) budgets.push_back(budget);
  }
  PrintBudgets(budgets, out);
}

// Which objects of a list are meant by pods' labels.
enum class Labelled : uint8_t {
  kNothing,     // they have to do with no pod
  kThemselves,  // they are the pods
  kByPods,      // a pod of theirs has the labels
  kToldOfPods,  // they tell of such a pod that is there still
};

struct Listing {
  const ListShape& shape;
  // Asked in this order; their members make one answer.
  std::vector<std::string> targets;
  Labelled labelled = Labelled::kNothing;
  // What a table has below the list; null: nothing.
  void (*below)(const Json& answer, bool all, std::ostream& out) = nullptr;
};

constexpr const char* kPodsTarget = "/api/v1/pods";

// With the namespace where one is meant: to whom some namespaces alone are shown has to name it.
// `selector`: beside it.
std::string Narrowed(std::string target, const ListWish& wish, const std::string& selector) {
  const auto add = [&target](const char* name, const std::string& value) {
    if (value.empty()) return;
    target += fmt::format("{}{}={}", target.find('?') == std::string::npos ? '?' : '&', name,
                          kube::PercentEncoded(value));
  };
  add("namespace", wish.ns);
  add("labelSelector", selector);
  return target;
}

std::vector<std::string> TargetsOf(const Listing& listing, const ListWish& wish,
                                   const std::string& selector) {
  if (listing.labelled == Labelled::kNothing) return listing.targets;
  const bool pods = listing.labelled == Labelled::kThemselves;
  std::vector<std::string> targets;
  for (const std::string& target : listing.targets) {
    targets.push_back(Narrowed(target, wish, pods ? selector : ""));
  }
  if (!pods && !selector.empty()) targets.push_back(Narrowed(kPodsTarget, wish, selector));
  return targets;
}

// Without the objects that none of the answer's pods, which have the labels, stand for.
void KeepLabelled(const Listing& listing, Json& answer) {
  const bool gangs = listing.labelled == Labelled::kByPods;
  std::set<std::pair<std::string, std::string>> meant;
  for (const Json& pod : answer.at("pods")) {
    meant.emplace(Text(pod, "namespace"), Text(pod, gangs ? "gang" : "name"));
  }
  Json kept = Json::array();
  for (Json& object : answer.at(listing.shape.member)) {
    if (meant.contains({Text(object, "namespace"), Text(object, "name")})) {
      kept.push_back(std::move(object));
    }
  }
  answer[listing.shape.member] = std::move(kept);
  for (const char* const member : {"pods", "total", "version", "complete"}) answer.erase(member);
}

// nullopt: the error is out and `code` set.
std::optional<Json> AskAll(const Server& server, const std::vector<std::string>& targets,
                           std::ostream& err, int& code) {
  Json whole = Json::object();
  for (const std::string& target : targets) {
    code = kExitUsage;
    std::optional<Answer> answer = AskServer(server, "GET", target, "", err, code);
    if (!answer) return std::nullopt;
    for (auto& [key, value] : answer->json.items()) whole[key] = std::move(value);
  }
  return whole;
}

void PrintOnce(const Listing& listing, const ListWish& wish, const Json& answer,
               std::ostream& out) {
  std::ostringstream page;
  page.copyfmt(out);
  page << WriteList(listing.shape, wish, answer, TerminalOf(out));
  const bool table = wish.format.kind == OutputFormat::Kind::kTable ||
                     wish.format.kind == OutputFormat::Kind::kWide;
  if (table && listing.below != nullptr) listing.below(answer, wish.names.empty(), page);
  out << page.str();
}

int ShowList(const Listing& listing, const ClientOptions& options, std::ostream& out,
             std::ostream& err) {
  absl::StatusOr<OutputFormat> format = ParseOutputFormat(options.output, kListFormats);
  if (!format.ok()) return Fail(err, format.status());
  if (const absl::Status key = CheckSortKey(listing.shape, options.sort_by); !key.ok()) {
    return Fail(err, key);
  }
  if (const absl::Status labels = ParseLabelSelector(options.selector).status(); !labels.ok()) {
    return Fail(err, kExitUsage, fmt::format("-l: {}", std::string(labels.message())));
  }
  const absl::StatusOr<Server> server = ReadServerFlags(options.server);
  if (!server.ok()) return Fail(err, server.status());
  const ListWish wish = {std::move(*format), options.sort_by, NamespaceOf(options, *server),
                         options.names};
  const std::vector<std::string> targets = TargetsOf(listing, wish, options.selector);
  ListChanges changes(listing.shape, wish);
  for (bool first = true; out; first = false) {
    int code = kExitUsage;
    std::optional<Json> answer = AskAll(*server, targets, err, code);
    if (!answer) return code;
    try {
      if (targets.size() > listing.targets.size()) KeepLabelled(listing, *answer);
      const absl::Status named =
          first ? CheckNames(listing.shape, wish, *answer) : absl::OkStatus();
      if (!named.ok()) return Fail(err, kExitNo, std::string(named.message()));
      const Json chosen = Chosen(listing.shape, wish, std::move(*answer));
      if (!options.watch) {
        PrintOnce(listing, wish, chosen, out);
        return kExitDone;
      }
      out << changes.Look(chosen, TerminalOf(out)) << std::flush;
    } catch (const Json::exception& error) {
      return FailOfForm(err, error);
    }
    if (out) std::this_thread::sleep_for(options.pace);
  }
  return kExitDone;
}

}  // namespace

int ShowNodes(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({kNodes, {"/api/v1/nodes"}}, options, out, err);
}

int ShowPods(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({kPods, {kPodsTarget}, Labelled::kThemselves}, options, out, err);
}

int ShowQueue(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({kQueue, {kPodsTarget}, Labelled::kThemselves}, options, out, err);
}

int ShowGangs(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({kGangs, {"/api/v1/gangs"}, Labelled::kByPods}, options, out, err);
}

int ShowEvents(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({kEvents, {"/api/v1/events"}, Labelled::kToldOfPods}, options, out, err);
}

int ShowQuota(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList(
      {kQuotas, {"/api/v1/quotas", "/api/v1/budgets"}, Labelled::kNothing, PrintBelowQuotas},
      options, out, err);
}

int ShowReclaims(const ClientOptions& options, std::ostream& out, std::ostream& err) {
  return ShowList({ReclaimList(), {"/api/v1/reclaims"}}, options, out, err);
}

}  // namespace tranche
