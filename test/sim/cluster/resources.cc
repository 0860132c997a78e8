#include "test/sim/cluster/resources.h"

#include <algorithm>
#include <vector>

namespace tranche::sim {
namespace {

std::vector<std::string_view> PartsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace

const ResourceType* FindResource(std::string_view plural) {
  const auto* const found =
      std::find_if(kResources.begin(), kResources.end(),
                   [plural](const ResourceType& one) { return one.plural == plural; });
  return found == kResources.end() ? nullptr : found;
}

ApiPath SplitPath(std::string_view path) {
  const std::vector<std::string_view> parts = PartsOf(path);
  ApiPath out;
  // "api/VERSION/..." or "apis/GROUP/VERSION/..."
  const std::size_t group = !parts.empty() && parts[0] == "api" ? 2 : 3;
  if (parts.size() <= group) return out;
  std::size_t next = group;
  // A namespace is an object of its own as well.
  if (parts.size() > next + 2 && parts[next] == "namespaces") {
    out.ns = parts[next + 1];
    next += 2;
  }
  const std::string_view prefix = path.substr(
      0, static_cast<std::size_t>(parts[group - 1].data() + parts[group - 1].size() - path.data()));
  const bool core = parts[next] == "events" && prefix == "/api/v1";
  const ResourceType* const type = FindResource(core ? "scaleups" : parts[next]);
  if (type == nullptr || type->group != prefix) return out;
  out.type = type;
  if (parts.size() > next + 1) out.name = parts[next + 1];
  if (parts.size() > next + 2) out.subresource = parts[next + 2];
  return out;
}

}  // namespace tranche::sim
