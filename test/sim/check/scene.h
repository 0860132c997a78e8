// A hand-made history for tests of checkers: what is said happened is all that happened.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/wall.h"
#include "test/sim/check/checkers.h"

namespace tranche::sim {

inline constexpr const char* kLeader = "tranche-0/1";

// What one pod's record says of one card.
struct Card {
  std::string uuid;
  int64_t milli = 1000;
  int64_t mib = 80'000;
  std::string profile = {};
  int64_t start = 0;
  int64_t size = 0;
};

class Scene {
 public:
  explicit Scene(CheckOptions options = {}) : checkers_(loop_, history_, std::move(options)) {}

  // Seconds since the world began.
  Scene& At(double seconds) {
    loop_.RunUntil(SimTime(static_cast<int64_t>(seconds * 1'000'000)), 1'000);
    return *this;
  }
  Scene& Say(Happening happening) {
    history_.Add(std::move(happening));
    return *this;
  }
  Scene& Write(const std::string& resource, const std::string& key, Json after,
               const std::string& who = "user") {
    Json& stored = objects_[resource + " " + key];
    Happening happening{.kind = Happening::Kind::kWritten,
                        .who = who,
                        .resource = resource,
                        .key = key,
                        .before = stored,
                        .after = after};
    stored = std::move(after);
    return Say(std::move(happening));
  }
  // A field of a stored object, by JSON pointer.
  Scene& Edit(const std::string& resource, const std::string& key, const std::string& pointer,
              Json value, const std::string& who = "user") {
    Json object = objects_[resource + " " + key];
    object[Json::json_pointer(pointer)] = std::move(value);
    return Write(resource, key, std::move(object), who);
  }
  Scene& Remove(const std::string& resource, const std::string& key,
                const std::string& who = "user") {
    return Write(resource, key, Json(), who);
  }

  Scene& StockNode(const std::string& name, int gpus,
                   const std::string& product = "NVIDIA-H100-80GB-HBM3") {
    return Write(
        "nodes", name,
        {{"metadata",
          {{"name", name},
           {"labels", {{"nvidia.com/gpu.product", product}, {"nvidia.com/gpu.memory", "80000"}}}}},
         {"spec", Json::object()},
         {"status", {{"allocatable", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}});
  }
  Scene& Namespace(const std::string& name, const std::string& team) {
    return Write("namespaces", name,
                 {{"metadata", {{"name", name}, {"labels", {{"team", team}}}}}});
  }
  // A leaf of the team's namespaces with so many GPUs of h100.
  Scene& Quota(const std::string& name, const std::string& parent, int gpus,
               std::optional<int> borrow = {}) {
    Json line = {{"model", "h100"}, {"nominal", {{"gpus", std::to_string(gpus)}}}};
    if (borrow) line["borrowLimit"] = {{"gpus", *borrow}};
    Json spec = {{"lines", Json::array({line})}};
    if (!parent.empty()) {
      spec["parent"] = parent;
      spec["namespaceSelector"] = {{"matchLabels", {{"team", name}}}};
    }
    return Write("gpuquotas", name, {{"metadata", {{"name", name}}}, {"spec", std::move(spec)}});
  }
  // uid: "u-" and the key.
  Scene& Pod(const std::string& key, int gpus, Json annotations = Json::object()) {
    const std::size_t slash = key.find('/');
    const std::string count = std::to_string(gpus);
    return Write("pods", key,
                 {{"metadata",
                   {{"namespace", key.substr(0, slash)},
                    {"name", key.substr(slash + 1)},
                    {"uid", "u-" + key},
                    {"annotations", std::move(annotations)}}},
                  {"spec",
                   {{"containers",
                     Json::array({{{"name", "main"},
                                   {"resources", {{"limits", {{"nvidia.com/gpu", count}}}}}}})}}},
                  {"status", {{"phase", "Pending"}}}});
  }
  Scene& Bind(const std::string& key, const std::string& node, const std::vector<Card>& cards,
              const std::string& leaf = "", const std::string& who = kLeader, int epoch = 1,
              const std::string& knowledge = "exact") {
    Json devices = Json::array();
    for (const Card& card : cards) {
      Json device = {{"index", 0}, {"uuid", card.uuid}, {"milli", card.milli}, {"mib", card.mib}};
      if (!card.profile.empty()) {
        device["mig"] = {{"profile", card.profile}, {"start", card.start}, {"size", card.size}};
      }
      devices.push_back(std::move(device));
    }
    const Json record = {{"v", 1},
                         {"epoch", epoch},
                         {"leaf", leaf},
                         {"knowledge", knowledge},
                         {"containers", Json::array({{{"name", "main"}, {"devices", devices}}})}};
    Json object = objects_["pods " + key];
    object["spec"]["nodeName"] = node;
    object["metadata"]["annotations"]["tranche.dev/allocation"] = record.dump();
    return Write("pods", key, std::move(object), who);
  }
  Scene& End(const std::string& key, const std::string& phase = "Succeeded") {
    return Edit("pods", key, "/status/phase", phase, "kubelet");
  }
  Scene& Evict(const std::string& key, const std::string& who = kLeader) {
    return Edit("pods", key, "/metadata/deletionTimestamp", "2026-03-02T00:00:00Z", who);
  }
  Scene& Reclaim(const std::string& name, const std::string& rule, const std::string& leaf,
                 const std::string& preemptor, const std::string& node,
                 const std::vector<std::string>& victims, const std::string& phase = "Evicting") {
    Json list = Json::array();
    for (const std::string& victim : victims) {
      list.push_back({{"pod", victim}, {"uid", "u-" + victim}});
    }
    const Json member = {{"namespace", preemptor.substr(0, preemptor.find('/'))},
                         {"name", preemptor.substr(preemptor.find('/') + 1)},
                         {"uid", "u-" + preemptor},
                         {"node", node}};
    return Write("gpureclaims", name,
                 {{"metadata", {{"name", name}}},
                  {"spec", {{"rule", rule}, {"leaf", leaf}, {"members", Json::array({member})}}},
                  {"status", {{"phase", phase}, {"victims", std::move(list)}}}},
                 kLeader);
  }
  Scene& Class(const std::string& name, int rank, const std::string& preemptible,
               const std::string& min_runtime = "0s") {
    return Write("gpuclasses", name,
                 {{"metadata", {{"name", name}}},
                  {"spec",
                   {{"priorityClassNames", Json::array({name})},
                    {"rank", rank},
                    {"preemptible", preemptible},
                    {"minRuntime", min_runtime}}}});
  }
  // Whole cards "gpu-0" and so on, as a DRA driver publishes them.
  Scene& Slice(const std::string& node, int gpus) {
    Json devices = Json::array();
    for (int i = 0; i < gpus; ++i) {
      devices.push_back({{"name", "gpu-" + std::to_string(i)},
                         {"attributes",
                          {{"type", {{"string", "gpu"}}},
                           {"productName", {{"string", "NVIDIA H100 80GB HBM3"}}}}}});
    }
    return Write(
        "resourceslices", node + "-0",
        {{"metadata", {{"name", node + "-0"}}},
         {"spec",
          {{"nodeName", node}, {"pool", {{"name", node}}}, {"devices", std::move(devices)}}}});
  }
  // A claim that has so many of the cards of `node`, from the first on; 0: none.
  Scene& Claim(const std::string& key, const std::string& node, int gpus) {
    Json results = Json::array();
    for (int i = 0; i < gpus; ++i) {
      results.push_back(
          {{"driver", "gpu.nvidia.com"}, {"pool", node}, {"device", "gpu-" + std::to_string(i)}});
    }
    Json status = Json::object();
    if (gpus > 0) status["allocation"]["devices"]["results"] = std::move(results);
    return Write("resourceclaims", key,
                 {{"metadata", {{"uid", "c-" + key}}}, {"status", std::move(status)}},
                 "kube-gpu-scheduler/1");
  }
  Scene& Lease(const std::string& holder, const std::string& who) {
    return Write("leases", "tranche-system/tranche", {{"spec", {{"holderIdentity", holder}}}}, who);
  }
  // `why`: it has no ledger; empty: it has.
  Scene& Leads(const std::string& who, uint64_t epoch, const std::string& why = "") {
    return Say({.kind = Happening::Kind::kLeads, .number = epoch, .who = who, .text = why});
  }
  // The leader's ledger has the bind.
  Scene& Promise(const std::string& key, const char* kind = "open") {
    return Say({.kind = Happening::Kind::kPromised,
                .who = kLeader,
                .after = Json{{"kind", kind}, {"uid", "u-" + key}}});
  }
  Scene& Quiet() { return Say({.kind = Happening::Kind::kQuiet}); }

  // Names of the checkers that found something, at the end of it all.
  std::set<std::string> Found(const Ask& ask = {}, const std::vector<std::string>& ledgers = {}) {
    checkers_.Final(ask, ledgers);
    std::set<std::string> names;
    for (const Finding& one : checkers_.findings()) names.insert(one.checker);
    return names;
  }
  std::string Texts() const {
    std::string texts;
    for (const Finding& one : checkers_.findings()) {
      texts += one.checker + " " + one.about + ": " + one.text + "\n";
    }
    return texts;
  }
  const Checkers& checkers() const { return checkers_; }

 private:
  Loop loop_{1};
  History history_{loop_};
  Checkers checkers_;
  std::map<std::string, Json> objects_;
};

// Whole ones, "GPU-0" and so on.
inline std::vector<Card> Cards(int from, int count) {
  std::vector<Card> cards;
  for (int i = from; i < from + count; ++i) cards.push_back({"GPU-" + std::to_string(i)});
  return cards;
}

}  // namespace tranche::sim
