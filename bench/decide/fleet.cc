#include "bench/decide/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>
#include <utility>

namespace tranche::bench {
namespace {

constexpr int64_t kFileBytes = 16 * 1024 * 1024;

// Objects as Lists in a row of files.
class Lists {
 public:
  explicit Lists(std::string folder) : folder_(std::move(folder)) {}

  void Add(std::string_view object) {
    if (!file_.is_open()) {
      paths_.push_back(fmt::format("{}/fleet-{}.json", folder_, paths_.size()));
      file_.open(paths_.back());
      file_ << R"({"apiVersion":"v1","kind":"List","items":[)";
    } else {
      file_ << ',';
    }
    file_ << '\n' << object;
    if (file_.tellp() >= kFileBytes) End();
  }
  absl::StatusOr<std::vector<std::string>> Close() {
    if (file_.is_open()) End();
    if (file_) return paths_;
    return absl::UnavailableError(
        fmt::format("expected to write {}, found: {}", paths_.back(), std::strerror(errno)));
  }

 private:
  void End() {
    file_ << "]}";
    file_.close();
  }

  const std::string folder_;
  std::vector<std::string> paths_;
  std::ofstream file_;
};

std::string NodeObject(const Profile& profile, int index) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{0}","uid":"node-{0}","labels":{{)"
      R"("kubernetes.io/hostname":"{0}","node.kubernetes.io/instance-type":"hgx-h100",)"
      R"("topology.kubernetes.io/zone":"zone-{1}","nvidia.com/gpu.present":"true",)"
      R"("nvidia.com/gpu.product":"{4}","nvidia.com/gpu.memory":"{2}",)"
      R"("nvidia.com/gpu.count":"{3}","nvidia.com/gpu.replicas":"1",)"
      R"("nvidia.com/gpu.family":"hopper",)"
      R"("nvidia.com/mig.capable":"true","nvidia.com/mig.strategy":"mixed"}}}},"spec":{{}},)"
      R"("status":{{"allocatable":{{"cpu":"192","memory":"2113Gi","pods":"110",)"
      R"("nvidia.com/gpu":"{3}"}},)"
      R"("capacity":{{"cpu":"192","memory":"2113Gi","pods":"110","nvidia.com/gpu":"{3}"}},)"
      R"("conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady"}}]}}}})",
      NodeNameOf(index), index % 3, profile.memory_mib, profile.gpus_per_node, profile.product);
}

std::string PriorityClassOf(const Profile& profile, int64_t index) {
  return "gpu-" + ByShare(profile.classes, static_cast<uint64_t>(index / 7)).name;
}

// Every third pod says how long it will run.
const char* RuntimeOf(int64_t index) {
  return index % 3 == 0 ? R"("tranche.dev/expected-runtime":"8h",)" : "";
}

struct Piece {
  int cards = 1;
  int milli = 1000;
};

// A bound pod, the `serial`th of all, on cards [first, first + piece.cards) of the node.
std::string BoundPod(const Profile& profile, int node, int index, int64_t serial,
                     const Piece& piece, int first) {
  std::string devices;
  const int64_t mib = profile.memory_mib * piece.milli / 1000;
  for (int card = first; card < first + piece.cards; ++card) {
    devices += fmt::format(
        R"({}{{\"index\":null,\"slot\":{},\"uuid\":null,\"milli\":{},\"mib\":{},\"mig\":null}})",
        devices.empty() ? "" : ",", card, piece.milli, mib);
  }
  const std::string fraction =
      piece.milli == 1000 ? ""
                          : fmt::format(R"("tranche.dev/gpu-fraction":"0.{:03}",)", piece.milli);
  const std::string limits =
      piece.milli == 1000 ? fmt::format(R"("nvidia.com/gpu":"{}",)", piece.cards) : "";
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"running-{0}-{1}",)"
      R"("namespace":"{2}",)"
      R"("uid":"pod-{0}-{1}","annotations":{{{7}{3})"
      R"("tranche.dev/allocation":"{{\"v\":1,\"epoch\":1,)"
      R"(\"leaf\":null,\"knowledge\":\"counts\",\"containers\":[)"
      R"({{\"name\":\"main\",\"devices\":[{4}]}}]}}"}}}},)"
      R"("spec":{{"nodeName":"{5}","priorityClassName":"{8}",)"
      R"("containers":[{{"name":"main","image":"train:1","resources":{{"limits":{{)"
      R"({6}"cpu":"8","memory":"64Gi"}},"requests":{{{6}"cpu":"8","memory":"64Gi"}}}}}}]}},)"
      R"("status":{{"phase":"Running"}}}})",
      node, index, TeamName(static_cast<int>(serial % profile.namespaces)), fraction, devices,
      NodeNameOf(node), limits, RuntimeOf(serial), PriorityClassOf(profile, serial));
}

// Pods that together take the fill of one node: whole GPUs and pairs sharing a card. Adds how many.
void AddPodsOf(int node, const Profile& profile, std::mt19937_64& random, Lists& lists,
               int64_t& count) {
  int left = static_cast<int>(1000.0 * profile.fill * profile.gpus_per_node);
  int card = 0;
  int index = 0;
  const auto add = [&](const Piece& piece) {
    lists.Add(BoundPod(profile, node, index, count + index, piece, card));
    ++index;
  };
  while (left > 0 && card < profile.gpus_per_node) {
    const int pods_left = std::max(1, profile.pods_per_node - index);
    const int cards_left = profile.gpus_per_node - card;
    const uint64_t draw = random() % 4;
    if (left >= 1000 && draw == 0) {
      // Two shares of one card.
      add({1, 250});
      add({1, 500});
      left -= 750;
      card += 1;
      continue;
    }
    const int average = std::max(1, left / 1000 / pods_left);
    const int cards = std::min({cards_left, average, std::max(1, left / 1000)});
    if (left < 1000) {
      add({1, 500});
      left = 0;
      card += 1;
      continue;
    }
    add({cards, 1000});
    left -= 1000 * cards;
    card += cards;
  }
  count += index;
}

}  // namespace

std::string NodeNameOf(int index) { return fmt::format("gpu-node-{:05}", index); }

std::string TeamName(int index) { return fmt::format("team-{}", index); }

absl::StatusOr<FleetFiles> WriteFleet(const Profile& profile, uint64_t seed,
                                      const std::string& folder) {
  Lists lists(folder);
  for (int node = 0; node < profile.nodes; ++node) lists.Add(NodeObject(profile, node));
  std::mt19937_64 random(seed);
  FleetFiles files;
  for (int node = 0; node < profile.nodes; ++node) {
    AddPodsOf(node, profile, random, lists, files.pods);
  }
  absl::StatusOr<std::vector<std::string>> paths = lists.Close();
  if (!paths.ok()) return paths.status();
  files.paths = *std::move(paths);
  return files;
}

std::string PendingPod(const Profile& profile, int index, uint64_t draw) {
  const int64_t milli = ByShare(profile.waiting, draw).milli;
  const bool whole = milli >= 1000;
  const std::string annotations =
      whole ? ""
            : fmt::format(R"("tranche.dev/gpu-fraction":"{}",)", static_cast<double>(milli) / 1000);
  const std::string limits = whole ? fmt::format(R"("nvidia.com/gpu":"{}",)", milli / 1000) : "";
  return fmt::format(
      R"({{"metadata":{{"name":"waiting-{0}","namespace":"{1}","uid":"waiting-{0}",)"
      R"("creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"train","team":"{1}"}},)"
      R"("annotations":{{{4}{2})"
      R"("cluster-autoscaler.kubernetes.io/safe-to-evict":"false"}}}},)"
      R"("spec":{{"volumes":[{{"name":"kube-api-access","projected":{{)"
      R"("sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}],)"
      R"("defaultMode":420}}}}],"containers":[{{"name":"main","image":"registry.example/train:1",)"
      R"("command":["python","train.py"],"env":[{{"name":"NCCL_DEBUG","value":"WARN"}}],)"
      R"("resources":{{)"
      R"("limits":{{{3}"cpu":"8","memory":"64Gi"}},"requests":{{{3}"cpu":"8","memory":"64Gi"}}}},)"
      R"("terminationMessagePath":"/dev/termination-log","imagePullPolicy":"IfNotPresent"}}],)"
      R"("restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",)"
      R"("schedulerName":"gpu-scheduler","tolerations":[{{"key":"nvidia.com/gpu",)"
      R"("operator":"Exists"}}],)"
      R"("priorityClassName":"{5}","priority":0,"enableServiceLinks":true,)"
      R"("preemptionPolicy":"PreemptLowerPriority"}},)"
      R"("status":{{"phase":"Pending","qosClass":"Guaranteed"}}}})",
      index, TeamName(index % profile.namespaces), annotations, limits, RuntimeOf(index),
      PriorityClassOf(profile, index));
}

}  // namespace tranche::bench
