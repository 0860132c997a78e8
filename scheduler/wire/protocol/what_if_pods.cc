#include "scheduler/wire/protocol/what_if_pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/workloads/gang_sizes.h"
#include "scheduler/wire/workloads/workload.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kPodGroup = "PodGroup";

absl::Status Wrong(std::string_view expected, std::string_view found, std::string_view where) {
  return absl::InvalidArgumentError(
      fmt::format("expected {}, found {}, in {}", expected, found, where));
}

void AppendMember(std::string& out, std::string_view key, std::optional<Element> value) {
  if (!value) return;
  if (out.back() != '{') out += ',';
  AppendQuoted(out, key);
  out += ':';
  out += simdjson::minify(*value);
}

// The Pod that a controller would make of the template.
std::string PodOf(const Workload& owner, const PodSet& set, std::string_view name) {
  std::string text = "{";
  const std::optional<Object> metadata = FindObject(*set.pod, "metadata");
  AppendMember(text, "spec", Find(*set.pod, "spec"));
  text += text.size() > 1 ? R"(,"metadata":{"name":)" : R"("metadata":{"name":)";
  AppendQuoted(text, name);
  if (!owner.ns.empty()) {
    text += R"(,"namespace":)";
    AppendQuoted(text, owner.ns);
  }
  for (const std::string_view key : {"labels", "annotations"}) {
    AppendMember(text, key, metadata ? Find(*metadata, key) : std::nullopt);
  }
  return text + "}}";
}

class PodsReader {
 public:
  PodsReader(std::size_t most, std::string_view of_whom) : most_(most), of_whom_(of_whom) {}

  absl::StatusOr<std::vector<PodRequest>> Read(Array objects);

 private:
  absl::Status Take(Element object);
  absl::Status Add(PodRequest request);
  absl::Status Expand(Element object, std::string_view kind);
  absl::Status NoteGroup(Element object);
  // What PodGroups say of the gangs of the question.
  absl::Status SizeGangs();

  const std::size_t most_;
  const std::string_view of_whom_;
  Parser parser_;  // of pods made of templates
  std::vector<PodRequest> requests_;
  std::vector<GangSize> groups_;
};

// What the API server's plugin ExtendedResourceToleration adds to a pod as it is created, which
// this one was not. Where the plugin is off, such taints are rare: every pod would need the
// toleration.
void TolerateAsAdmitted(PodRequest& request) {
  NodeConstraints demands = request.constraints ? *request.constraints : NodeConstraints();
  const auto tolerate = [&demands](std::string_view resource) {
    demands.tolerations.push_back(
        {.key = std::string(resource), .exists = true, .value = "", .effect = "NoSchedule"});
  };
  for (const PoolNeed& need : request.pool_needs) tolerate(need.key);
  // Its count is added by our webhook.
  if (request.pool_needs.empty()) tolerate("nvidia.com/gpu");
  request.constraints = std::make_shared<const NodeConstraints>(std::move(demands));
}

absl::Status PodsReader::Add(PodRequest request) {
  if (requests_.size() == most_) {
    return absl::OutOfRangeError(
        fmt::format("pods: expected at most {}{}, found more", most_, of_whom_));
  }
  request.uid = PodUid(fmt::format("what-if-{}", requests_.size()));
  if (request.asks_gpu()) TolerateAsAdmitted(request);
  requests_.push_back(std::move(request));
  return absl::OkStatus();
}

absl::Status PodsReader::Expand(Element object, std::string_view kind) {
  TRANCHE_ASSIGN_OR_RETURN(const Workload owner, ReadWorkload(object, kind));
  int rank = 0;
  for (const PodSet& set : owner.sets) {
    if (set.count == 0) continue;
    if (!set.pod) return Wrong("a pod template", "none", fmt::format("{} {}", kind, owner.name));
    std::string name = owner.name;
    if (!set.name.empty()) name += "-" + set.name;
    TRANCHE_ASSIGN_OR_RETURN(const Element pod, parser_.Parse(PodOf(owner, set, name)));
    TRANCHE_ASSIGN_OR_RETURN(PodFacts facts, DecodePod(pod));
    PodRequest& request = facts.request;
    if (request.gang.empty() && owner.together > 0) {
      request.gang = owner.gang;
      request.gang_size = static_cast<int>(owner.together);
    }
    for (int64_t i = 0; i < set.count; ++i) {
      PodRequest one = request;
      one.name.name = fmt::format("{}-{}", name, i);
      one.gang_rank = rank++;
      if (absl::Status added = Add(std::move(one)); !added.ok()) return added;
    }
  }
  return absl::OkStatus();
}

absl::Status PodsReader::NoteGroup(Element object) {
  FieldReader reader;
  const std::optional<Object> root = reader.AsObject(object, "object");
  const std::string_view version = root ? reader.ReadText(*root, "apiVersion", "object") : "";
  if (!reader.ok()) return reader.status();
  const std::string_view group = version.substr(0, version.find('/'));
  for (const std::string_view known : {kNativeGroup, kVolcanoGroup, kPluginsGroup}) {
    if (group != known) continue;
    TRANCHE_ASSIGN_OR_RETURN(GangSize size, DecodePodGroup(object, known));
    if (size.ns.empty()) size.ns = "default";
    groups_.push_back(std::move(size));
    return absl::OkStatus();
  }
  return Wrong(fmt::format("API group {}, {} or {}", kNativeGroup, kVolcanoGroup, kPluginsGroup),
               Quoted(group), "apiVersion");
}

absl::Status PodsReader::SizeGangs() {
  for (const GangSize& group : groups_) {
    bool named = false;
    for (PodRequest& request : requests_) {
      if (request.name.ns != group.ns || request.gang != group.gang) continue;
      named = true;
      request.gang_size = std::max(request.gang_size, group.size);
    }
    if (!named) return Wrong("pods of " + group.gang + " beside its PodGroup", "none", "pods");
  }
  for (PodRequest& request : requests_) {
    if (request.gang_size != kGangOfAll) continue;
    const auto same = [&request](const PodRequest& other) {
      return other.name.ns == request.name.ns && other.gang == request.gang;
    };
    request.gang_size = static_cast<int>(std::ranges::count_if(requests_, same));
  }
  return absl::OkStatus();
}

absl::Status PodsReader::Take(Element object) {
  Object members;
  std::string_view kind;
  if (object.get(members) == simdjson::SUCCESS) kind = FindText(members, "kind").value_or("Pod");
  if (kind == kPodGroup) return NoteGroup(object);
  if (IsWorkload(kind)) return Expand(object, kind);
  if (!kind.empty() && kind != "Pod") {
    return Wrong(fmt::format("Pod, PodGroup, {}", WorkloadKinds()), Quoted(kind), "kind");
  }
  TRANCHE_ASSIGN_OR_RETURN(PodFacts facts, DecodePod(object));
  return Add(std::move(facts.request));
}

absl::StatusOr<std::vector<PodRequest>> PodsReader::Read(Array objects) {
  std::size_t position = 0;
  for (const Element object : objects) {
    const absl::Status taken = Take(object);
    if (absl::IsOutOfRange(taken)) return absl::InvalidArgumentError(taken.message());
    if (!taken.ok()) {
      const absl::string_view why = taken.message();
      return absl::InvalidArgumentError(
          fmt::format("pods[{}]: {}", position, std::string_view(why.data(), why.size())));
    }
    ++position;
  }
  if (absl::Status sized = SizeGangs(); !sized.ok()) return sized;
  return std::move(requests_);
}

}  // namespace

absl::StatusOr<std::vector<PodRequest>> ReadWhatIfPods(std::string_view body, std::size_t most,
                                                       std::string_view of_whom) {
  thread_local Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element document, parser.Parse(body, Padding::kThere));
  Object object;
  if (document.get(object) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("expected {\"pods\":[...]}, found no object");
  }
  const std::optional<Array> pods = FindArray(object, "pods");
  if (!pods) return absl::InvalidArgumentError("pods: expected a list of Pod objects, found none");
  return PodsReader(most, of_whom).Read(*pods);
}

}  // namespace tranche::wire
