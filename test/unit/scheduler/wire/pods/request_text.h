// Pods from short texts, and requests as short texts, so that decoder tests read as tables.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/pods/pod_decode.h"

namespace tranche::wire {

inline absl::StatusOr<PodFacts> TryPod(std::string_view json) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(json);
  if (!document.ok()) return document.status();
  return DecodePod(*document);
}

// A pod of these annotations and spec members, both as the inside of a JSON object.
inline std::string PodJson(std::string_view annotations, std::string_view spec) {
  return fmt::format(
      R"({{"metadata":{{"name":"p","namespace":"team-a","uid":"u1","annotations":{{{}}}}},)"
      R"("spec":{{{}}}}})",
      annotations, spec);
}

// One container "main" with these limits, the inside of a JSON object.
inline std::string OneContainer(std::string_view limits) {
  return fmt::format(R"("containers":[{{"name":"main","resources":{{"limits":{{{}}}}}}}])", limits);
}

inline std::string MemoryText(const MemoryNeed& memory) {
  switch (memory.kind) {
    case MemoryNeed::Kind::kNone:
      return "no memory";
    case MemoryNeed::Kind::kWholeCard:
      return "whole card";
    case MemoryNeed::Kind::kMib:
      return fmt::format("{} MiB", memory.value);
    case MemoryNeed::Kind::kMilliOfCard:
      return fmt::format("{} milli of memory", memory.value);
    case MemoryNeed::Kind::kPercentOfCard:
      return fmt::format("{} % of memory", memory.value);
    case MemoryNeed::Kind::kAgentUnits:
      return fmt::format("{} units", memory.value);
  }
  return "?";
}

inline std::string AskText(const PodRequest& request, const Ask& ask) {
  const std::string& container =
      request.containers.at(static_cast<std::size_t>(ask.container)).name;
  const std::string head = fmt::format("{}: {} ", container, ask.count);
  switch (ask.resource) {
    case Resource::kGpu:
      return head + "gpu";
    case Resource::kGpuShared:
      return head + "gpu.shared";
    case Resource::kMig:
      return head + ask.mig.profile + (ask.mig.shared ? " shared" : "");
    case Resource::kShare:
      return head + fmt::format("share of {} and {} milli{}", MemoryText(ask.memory),
                                ask.compute.count(), ask.exclusive ? ", alone" : "");
  }
  return "?";
}

// The asks, "; " between them; "refused <code>" or "nothing".
inline std::string RequestText(const PodRequest& request) {
  if (request.refusal) return fmt::format("refused {}", Describe(request.refusal->reason).code);
  if (!request.asks_gpu()) return "nothing";
  std::string text;
  for (const Ask& ask : request.asks) {
    if (!text.empty()) text += "; ";
    text += AskText(request, ask);
  }
  return text;
}

// As RequestText, but of a refusal what explain says of it.
inline std::string FullText(const PodRequest& request) {
  return request.refusal ? request.refusal->detail : RequestText(request);
}

inline std::string PoolText(const PodRequest& request) {
  std::string text;
  for (const PoolNeed& need : request.pool_needs) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} {}", need.key, need.count);
  }
  return text;
}

// A pod whose containers have these limits each, the inside of a JSON object: "a", "b", ...
inline std::string Containers(std::initializer_list<std::string_view> limits) {
  std::string list;
  char name = 'a';
  for (const std::string_view each : limits) {
    if (!list.empty()) list += ',';
    list += fmt::format(R"({{"name":"{}","resources":{{"limits":{{{}}}}}}})", name++, each);
  }
  return fmt::format(R"("containers":[{}])", list);
}

// The same with these limits in an init container "i" before a container "main" without any.
inline std::string InitContainer(std::string_view limits) {
  return fmt::format(R"("initContainers":[{{"name":"i","resources":{{"limits":{{{}}}}}}}],)"
                     R"("containers":[{{"name":"main"}}])",
                     limits);
}

inline PodRequest RequestOf(std::string_view annotations, std::string_view spec) {
  const absl::StatusOr<PodFacts> pod = TryPod(PodJson(annotations, spec));
  if (!pod.ok()) {
    PodRequest broken;
    broken.refusal = Refusal{Reason::kNone, std::string(pod.status().message())};
    return broken;
  }
  return pod->request;
}

}  // namespace tranche::wire
