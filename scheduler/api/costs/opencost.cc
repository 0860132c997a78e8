#include "scheduler/api/costs/opencost.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/charge.h"
#include "scheduler/api/costs/cost_window.h"
#include "scheduler/ledger/reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

using wire::Json;

constexpr int64_t kMostSteps = 31;
constexpr double kQuantaMsOfAnHour = double{kQuantaPerGpu} * 3'600'000;
constexpr double kMsOfAnHour = 3'600'000;
constexpr const char* kCluster = "cluster-one";  // as OpenCost calls one that has no other name

// What a row is of, in OpenCost's words and ours. "cluster": one row of all.
struct Aggregate {
  std::string_view word;
  ledger::BillBy by;
  const char* property;  // in which a row's key stands
};
constexpr std::string_view kLabelPrefix = "label:";
constexpr Aggregate kAggregates[] = {
    {"namespace", ledger::BillBy::kNamespace, "namespace"},
    {"pod", ledger::BillBy::kPod, "pod"},
    {"node", ledger::BillBy::kNode, "node"},
    {"cluster", ledger::BillBy::kDay, "cluster"},
    {"label:team", ledger::BillBy::kTeam, "team"},
    {"controller", ledger::BillBy::kOwner, "controller"},
};

struct Question {
  CostWindow window;
  Millis step{0};
  Aggregate aggregate;
  std::string label;  // the key of a pod's label that a row is of; empty: it is of none
  bool idle = false;
};

absl::StatusOr<bool> Flag(const http::Request& request, const std::string& name) {
  const std::string text = Parameter(request, name);
  if (text.empty() || text == "false") return false;
  if (text == "true") return true;
  return absl::InvalidArgumentError(
      fmt::format("{}: expected true or false, found {}", name, wire::Quoted(text)));
}

// "label:team" is a team, whatever labels pods have.
absl::Status SetAggregate(const std::string& text, Question& question) {
  const std::string word = text.empty() ? "namespace" : text;
  const auto* const known = std::ranges::find(kAggregates, word, &Aggregate::word);
  if (known != std::end(kAggregates)) {
    question.aggregate = *known;
    return absl::OkStatus();
  }
  const std::optional<ledger::BillGroup> group =
      word.starts_with(kLabelPrefix) ? ledger::ParseBillBy(word) : std::nullopt;
  if (group) {
    question.aggregate = {kLabelPrefix, group->by, "label"};
    question.label = group->label;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(fmt::format(
      "aggregate: expected namespace, pod, node, cluster, controller, label:team or label:KEY, "
      "found {}",
      wire::Quoted(word)));
}

absl::StatusOr<Question> QuestionOf(const http::Request& request, Instant now) {
  Question question;
  TRANCHE_ASSIGN_OR_RETURN(question.window, ParseCostWindow(Parameter(request, "window"), now));
  const Millis whole =
      std::chrono::duration_cast<Millis>(question.window.to - question.window.from);
  question.step = whole;
  TRANCHE_ASSIGN_OR_RETURN(const bool accumulate, Flag(request, "accumulate"));
  if (const std::string step = Parameter(request, "step"); !step.empty() && !accumulate) {
    TRANCHE_ASSIGN_OR_RETURN(question.step, ParseCostSpan(step, "step"));
  }
  const int64_t steps = (whole.count() + question.step.count() - 1) / question.step.count();
  if (steps > kMostSteps) {
    return absl::InvalidArgumentError(
        fmt::format("step: expected at most {} steps in the window, found {}", kMostSteps, steps));
  }
  TRANCHE_ASSIGN_OR_RETURN(question.idle, Flag(request, "includeIdle"));
  TRANCHE_RETURN_IF_ERROR(SetAggregate(Parameter(request, "aggregate"), question));
  return question;
}

double HoursOf(const ledger::BillPart& part) {
  return static_cast<double>(part.quantity) / kQuantaMsOfAnHour;
}

Json AllocationOf(const std::string& name, Json properties, const CostWindow& window,
                  const ledger::BillPart& part, const ledger::BillPart& idle) {
  const auto length = static_cast<double>((window.to - window.from).count());
  const double hours = HoursOf(part);
  const double cost = static_cast<double>(part.cents) / 100;
  const std::string start = wire::FormatTime(window.from);
  const std::string end = wire::FormatTime(window.to);
  Json allocation = {{"name", name},
                     {"properties", std::move(properties)},
                     {"window", {{"start", start}, {"end", end}}},
                     {"start", start},
                     {"end", end},
                     {"minutes", length / 60'000},
                     {"gpuCount", hours / (length / kMsOfAnHour)},
                     {"gpuHours", hours},
                     {"gpuCost", cost},
                     {"gpuCostAdjustment", 0},
                     {"gpuEfficiency", hours > 0 ? 1 - HoursOf(idle) / hours : 0}};
  for (const char* const other :
       {"cpuCores", "cpuCoreHours", "cpuCost", "ramBytes", "ramByteHours", "ramCost", "pvCost",
        "networkCost", "loadBalancerCost", "sharedCost", "externalCost"}) {
    allocation[other] = 0;
  }
  allocation["totalCost"] = cost;
  allocation["totalEfficiency"] = allocation["gpuEfficiency"];
  return allocation;
}

Json PropertiesOf(const Question& question, const std::string& key) {
  Json properties = {{"cluster", kCluster}};
  const std::string property = question.aggregate.property;
  if (property == "team") {
    properties["labels"] = {{"team", key}};
  } else if (property == "label") {
    if (!key.empty()) properties["labels"] = {{question.label, key}};
  } else if (property == "controller") {
    // NAMESPACE/KIND/NAME
    const std::size_t first = key.find('/');
    const std::size_t second = key.find('/', first + 1);
    if (key.empty() || second == std::string::npos) return properties;
    std::string kind = key.substr(first + 1, second - first - 1);
    std::ranges::transform(kind, kind.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    properties["namespace"] = key.substr(0, first);
    properties["controllerKind"] = kind;
    properties["controller"] = key.substr(second + 1);
  } else if (property == "pod") {
    const std::size_t slash = key.find('/');
    properties["namespace"] = key.substr(0, slash);
    properties["pod"] = key.substr(slash + 1);
  } else if (property != "cluster") {
    properties[property] = key;
  }
  return properties;
}

Json SetOf(const Question& question, const CostWindow& window, const ledger::Bill& bill) {
  Json set = Json::object();
  const Json nowhere = {{"cluster", kCluster}};
  const auto add = [&](const std::string& name, Json properties, const ledger::BillPart& part,
                       const ledger::BillPart& idle) {
    if (part.quantity == 0) return;
    set[name] = AllocationOf(name, std::move(properties), window, part, idle);
  };
  if (question.aggregate.word == "cluster") {
    add(kCluster, nowhere, bill.used, bill.idle);
  } else {
    for (const ledger::BillRow& row : bill.rows) {
      const std::string name = row.key.empty() ? "__unallocated__" : row.key;
      add(name, PropertiesOf(question, row.key), row.part, row.idle);
    }
  }
  if (!question.idle) return set;
  // What nobody held, whether or not somebody could have used it.
  ledger::BillPart unheld = bill.free;
  unheld.quantity += bill.stranded.quantity;
  unheld.unpriced += bill.stranded.unpriced;
  unheld.money += bill.stranded.money;
  unheld.cents += bill.stranded.cents;
  add("__idle__", nowhere, unheld, {});
  add("__refunded__", nowhere, bill.refunded, {});
  return set;
}

// As OpenCost has it: the code is in the body too.
http::Response Refused(const absl::Status& status) {
  http::Response response = ErrorResponse(status);
  response.body =
      wire::Dump({{"code", response.status}, {"message", std::string(status.message())}});
  return response;
}

absl::StatusOr<Json> SetsOf(ledger::Reader& reader, const Question& question) {
  Json sets = Json::array();
  for (Instant from = question.window.from; from < question.window.to; from += question.step) {
    const CostWindow window{from, std::min(from + question.step, question.window.to)};
    const ledger::BillQuery query{window.from, window.to, {question.aggregate.by, question.label}};
    TRANCHE_ASSIGN_OR_RETURN(const Instant last, reader.LastTime());
    // What the ledger does not know of yet, or did not then, costs nothing.
    if (last <= window.from) {
      sets.push_back(Json::object());
      continue;
    }
    TRANCHE_ASSIGN_OR_RETURN(const ledger::Bill bill, reader.MakeBill(query));
    sets.push_back(SetOf(question, window, bill));
  }
  return sets;
}

http::Response Allocated(const std::string& path, const http::Request& request, Instant now) {
  const absl::StatusOr<Question> question = QuestionOf(request, now);
  if (!question.ok()) return Refused(question.status());
  absl::StatusOr<ledger::Reader> reader = ledger::Reader::Open(path);
  if (!reader.ok()) return Refused(reader.status());
  absl::StatusOr<Json> sets = SetsOf(*reader, *question);
  if (!sets.ok()) return Refused(sets.status());
  return JsonResponse(wire::Dump({{"code", 200}, {"data", *std::move(sets)}}));
}

}  // namespace

void AddOpenCostApi(const LedgerSource& source, Router& router) {
  AddLedgerRoute(source, "/api/v1/opencost/allocation", Allocated, router);
  AddLedgerRoute(source, "/api/v1/opencost/allocation/compute", Allocated, router);
}

}  // namespace tranche
