#include "scheduler/api/asks_json.h"

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/api/json_members.h"
#include "scheduler/index/placement.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

std::string_view KindName(Resource resource) {
  switch (resource) {
    case Resource::kGpu:
      return "gpu";
    case Resource::kGpuShared:
      return "shared";
    case Resource::kMig:
      return "mig";
    case Resource::kShare:
      return "share";
  }
  TRANCHE_CHECK(false);
}

std::string_view WishName(std::optional<TopologyWish> wish) {
  if (!wish) return "";
  switch (*wish) {
    case TopologyWish::kNone:
      return "none";
    case TopologyWish::kPreferred:
      return "preferred";
    case TopologyWish::kRequired:
      return "required";
  }
  TRANCHE_CHECK(false);
}

void AppendNumber(std::string& out, std::string_view key, std::optional<int64_t> value) {
  if (value) {
    AppendMember(out, key, *value);
  } else {
    AppendNull(out, key);
  }
}

// Zero: not said.
std::optional<int64_t> Said(int64_t value) {
  return value > 0 ? std::optional<int64_t>(value) : std::nullopt;
}

void AppendTexts(std::string& out, std::string_view key, const std::vector<std::string>& texts) {
  AppendList(out, key, texts,
             [](std::string& text, const std::string& item) { AppendQuoted(text, item); });
}

}  // namespace

void AppendAsks(std::string& out, const PodRequest* request) {
  if (request == nullptr) {
    AppendNull(out, "asks");
    return;
  }
  AppendKey(out, "asks");
  out += '{';
  AppendMember(out, "style", StyleName(request->style));
  AppendList(out, "devices", request->asks, [request](std::string& text, const Ask& ask) {
    const bool share = ask.resource == Resource::kShare;
    const bool in_mib = ask.memory.kind == MemoryNeed::Kind::kMib;
    text += '{';
    AppendMember(text, "container",
                 request->containers[static_cast<std::size_t>(ask.container)].name);
    AppendMember(text, "kind", KindName(ask.resource));
    AppendMember(text, "count", ask.count);
    AppendTextOrNull(text, "profile", ask.mig.profile);
    AppendNumber(text, "milli", share ? std::optional(ask.compute.count()) : std::nullopt);
    AppendNumber(text, "mib", share && in_mib ? std::optional(ask.memory.value) : std::nullopt);
    AppendNumber(text, "milliOfMemory", share ? PartOfCard(ask.memory) : std::nullopt);
    text += '}';
  });
  AppendTexts(out, "models", request->models_any);
  AppendTexts(out, "notModels", request->models_none);
  AppendNumber(out, "minGpuMemoryMiB", Said(request->min_gpu_memory.count()));
  AppendTextOrNull(out, "topology", WishName(request->topology));
  AppendTextOrNull(out, "gang", request->gang);
  AppendNumber(out, "gangSize", Said(request->gang_size));
  AppendNumber(out, "expectedRuntimeSeconds",
               request->expected_runtime ? std::optional(request->expected_runtime->count() / 1000)
                                         : std::nullopt);
  out += '}';
}

}  // namespace tranche
