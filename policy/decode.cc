#include "policy/decode.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "simdjson.h"

namespace tranche {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::string_view kApiVersion = "tranche.dev/v1alpha1";
constexpr std::string_view kKind = "GPUPolicy";
constexpr size_t kMaxDepth = 64;
constexpr int kMaxPodsPerGpu = 1000;  // a milli-GPU each
constexpr int kMaxHamiMinor = 99;

template <typename T>
struct Choice {
  std::string_view text;
  T value;
};

constexpr std::array kStrategies = {Choice<Strategy>{"Fragmentation", Strategy::kFragmentation},
                                    Choice<Strategy>{"BestFit", Strategy::kBestFit},
                                    Choice<Strategy>{"Spread", Strategy::kSpread}};
constexpr std::array kPermissions = {Choice<Permission>{"Allow", Permission::kAllow},
                                     Choice<Permission>{"Refuse", Permission::kRefuse}};
constexpr std::array kActors = {Choice<PreemptionActor>{"Planner", PreemptionActor::kPlanner},
                                Choice<PreemptionActor>{"Scheduler", PreemptionActor::kScheduler},
                                Choice<PreemptionActor>{"Off", PreemptionActor::kOff}};
constexpr std::array<std::string_view, 3> kDialects = {"native", "tranche", "hami"};

// A value and where it stands, so that every error can name the place.
struct Field {
  std::string path;
  element value;
};

absl::Status Error(const Field& field, std::string_view rule) {
  constexpr size_t kQuoted = 64;
  const std::string found = simdjson::minify(field.value);
  return absl::InvalidArgumentError(fmt::format("{}: expected {}, found {}{}", field.path, rule,
                                                found.substr(0, kQuoted),
                                                found.size() > kQuoted ? " (cut)" : ""));
}

// An object's member, of equal keys the last, for that is what every other reader of the same text
// keeps. A null counts as absent, as in Kubernetes.
class Members {
 public:
  static absl::StatusOr<Members> Of(const Field& field) {
    object members;
    if (field.value.get(members) != simdjson::SUCCESS) return Error(field, "an object");
    return Members(field.path, members);
  }

  // Calls `read(Field)` with the member when there is one.
  template <typename Read>
  absl::Status Optional(std::string_view key, Read read) const {
    std::optional<element> last;
    for (const auto& member : members_) {
      if (member.key == key) last = member.value;
    }
    if (!last || last->is_null()) return absl::OkStatus();
    return read(Field{path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key), *last});
  }

 private:
  Members(std::string path, object members) : path_(std::move(path)), members_(members) {}

  std::string path_;
  object members_;
};

absl::StatusOr<std::string_view> Text(const Field& field, std::string_view rule) {
  std::string_view text;
  if (field.value.get(text) != simdjson::SUCCESS) return Error(field, rule);
  return text;
}

absl::Status ReadInt(const Field& field, int max, int& target) {
  int64_t number = 0;
  if (field.value.get(number) != simdjson::SUCCESS || number < 1 || number > max) {
    return Error(field, fmt::format("1..{}", max));
  }
  target = static_cast<int>(number);
  return absl::OkStatus();
}

template <size_t N>
absl::Status ReadOneOf(const Field& field, const std::array<std::string_view, N>& texts,
                       size_t& chosen) {
  const std::string rule = fmt::format("one of {}", fmt::join(texts, ", "));
  const absl::StatusOr<std::string_view> text = Text(field, rule);
  if (!text.ok()) return text.status();
  const auto at = std::find(texts.begin(), texts.end(), *text);
  if (at == texts.end()) return Error(field, rule);
  chosen = static_cast<size_t>(at - texts.begin());
  return absl::OkStatus();
}

template <typename T, size_t N>
absl::Status ReadChoice(const Field& field, const std::array<Choice<T>, N>& choices, T& target) {
  std::array<std::string_view, N> texts;
  std::transform(choices.begin(), choices.end(), texts.begin(),
                 [](const Choice<T>& choice) { return choice.text; });
  size_t chosen = 0;
  if (absl::Status status = ReadOneOf(field, texts, chosen); !status.ok()) return status;
  target = choices[chosen].value;
  return absl::OkStatus();
}

// Fields of the contract that this version does not act on.
absl::Status CheckOneOf(const Field& field, const std::array<std::string_view, 3>& texts) {
  size_t unused = 0;
  return ReadOneOf(field, texts, unused);
}

absl::Status CheckObject(const Field& field) { return Members::Of(field).status(); }

// Calls `read(Field, index)` with every element of a list.
template <typename Read>
absl::Status ForEach(const Field& field, Read read) {
  array elements;
  if (field.value.get(elements) != simdjson::SUCCESS) return Error(field, "a list");
  size_t index = 0;
  for (const element value : elements) {
    const Field item{fmt::format("{}[{}]", field.path, index++), value};
    if (absl::Status status = read(item); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadPlacement(const Field& field, GpuPolicy& policy) {
  const absl::StatusOr<Members> placement = Members::Of(field);
  if (!placement.ok()) return placement.status();
  absl::Status status = placement->Optional("strategy", [&](const Field& strategy) {
    return ReadChoice(strategy, kStrategies, policy.strategy);
  });
  status.Update(placement->Optional("filterWidth", [&](const Field& width) {
    return ReadInt(width, kMaxFilterWidth, policy.filter_width);
  }));
  return status;
}

absl::Status ReadLimitModel(const Field& field, const GpuPolicy& policy, SharingLimit& limit) {
  const absl::StatusOr<std::string_view> text = Text(field, "a GPU model name or \"any\"");
  if (!text.ok()) return text.status();
  if (text->empty()) return Error(field, "a GPU model name or \"any\"");
  limit.model = *text;
  std::transform(limit.model.begin(), limit.model.end(), limit.model.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool again =
      std::any_of(policy.sharing_limits.begin(), policy.sharing_limits.end(),
                  [&](const SharingLimit& earlier) { return earlier.model == limit.model; });
  return again ? Error(field, "every model once") : absl::OkStatus();
}

absl::Status ReadLimit(const Field& field, GpuPolicy& policy) {
  const absl::StatusOr<Members> members = Members::Of(field);
  if (!members.ok()) return members.status();
  SharingLimit limit;
  absl::Status status = members->Optional(
      "model", [&](const Field& model) { return ReadLimitModel(model, policy, limit); });
  status.Update(members->Optional("maxPodsPerGpu", [&](const Field& max) {
    return ReadInt(max, kMaxPodsPerGpu, limit.max_pods_per_gpu);
  }));
  if (!status.ok()) return status;
  if (limit.model.empty() || limit.max_pods_per_gpu == 0) {
    return Error(field, "both model and maxPodsPerGpu");
  }
  policy.sharing_limits.push_back(std::move(limit));
  return absl::OkStatus();
}

absl::Status ReadSharing(const Field& field, GpuPolicy& policy) {
  const absl::StatusOr<Members> sharing = Members::Of(field);
  if (!sharing.ok()) return sharing.status();
  absl::Status status = sharing->Optional("unenforced", [&](const Field& unenforced) {
    return ReadChoice(unenforced, kPermissions, policy.unenforced_sharing);
  });
  status.Update(sharing->Optional("limits", [&](const Field& limits) {
    policy.sharing_limits.clear();
    return ForEach(limits, [&](const Field& limit) { return ReadLimit(limit, policy); });
  }));
  return status;
}

absl::Status ReadDialects(const Field& field, GpuPolicy& policy) {
  policy.dialects.clear();
  return ForEach(field, [&](const Field& dialect) {
    size_t chosen = 0;
    if (absl::Status status = ReadOneOf(dialect, kDialects, chosen); !status.ok()) return status;
    policy.dialects.emplace_back(kDialects[chosen]);
    return absl::OkStatus();
  });
}

// Takes a decimal number without leading zeros off the front; -1 when there is none up to 999.
int TakeNumber(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 3 || (digits > 1 && text.front() == '0')) return -1;
  int number = 0;
  for (const char digit : text.substr(0, digits)) number = number * 10 + (digit - '0');
  text.remove_prefix(digits);
  return number;
}

absl::Status ReadHamiVersion(const Field& field, int& minor) {
  const std::string rule = fmt::format("text \"2.x\" or \"2.x.y\" with x in 1..{}", kMaxHamiMinor);
  const absl::StatusOr<std::string_view> text = Text(field, rule);
  if (!text.ok()) return text.status();
  std::string_view rest = *text;
  if (rest.substr(0, 2) != "2.") return Error(field, rule);
  rest.remove_prefix(2);
  const int number = TakeNumber(rest);
  if (number < 1 || number > kMaxHamiMinor) return Error(field, rule);
  if (!rest.empty()) {
    if (rest.front() != '.') return Error(field, rule);
    rest.remove_prefix(1);
    if (TakeNumber(rest) < 0 || !rest.empty()) return Error(field, rule);
  }
  minor = number;
  return absl::OkStatus();
}

absl::Status CheckSelector(const Field& field) {
  const absl::StatusOr<Members> selector = Members::Of(field);
  if (!selector.ok()) return selector.status();
  absl::Status status = selector->Optional("nodes", CheckObject);
  status.Update(selector->Optional("namespaces", CheckObject));
  return status;
}

absl::Status CheckTopology(const Field& field) {
  const absl::StatusOr<Members> topology = Members::Of(field);
  if (!topology.ok()) return topology.status();
  return topology->Optional("default", [](const Field& value) {
    return CheckOneOf(value, {"Required", "Preferred", "None"});
  });
}

absl::Status ReadSpec(const Field& field, GpuPolicy& policy) {
  const absl::StatusOr<Members> spec = Members::Of(field);
  if (!spec.ok()) return spec.status();
  absl::Status status = spec->Optional(
      "placement", [&](const Field& placement) { return ReadPlacement(placement, policy); });
  status.Update(spec->Optional("sharing",
                               [&](const Field& sharing) { return ReadSharing(sharing, policy); }));
  status.Update(spec->Optional(
      "dialects", [&](const Field& dialects) { return ReadDialects(dialects, policy); }));
  status.Update(spec->Optional("preemption", [&](const Field& preemption) {
    const absl::StatusOr<Members> members = Members::Of(preemption);
    if (!members.ok()) return members.status();
    return members->Optional(
        "actor", [&](const Field& actor) { return ReadChoice(actor, kActors, policy.actor); });
  }));
  status.Update(spec->Optional("agents", [&](const Field& agents) {
    const absl::StatusOr<Members> members = Members::Of(agents);
    if (!members.ok()) return members.status();
    return members->Optional("hamiVersion", [&](const Field& version) {
      return ReadHamiVersion(version, policy.hami_minor);
    });
  }));
  status.Update(spec->Optional("selector", CheckSelector));
  status.Update(spec->Optional("topology", CheckTopology));
  status.Update(spec->Optional("unassigned", [](const Field& unassigned) {
    Permission unused{};
    return ReadChoice(unassigned, kPermissions, unused);
  }));
  status.Update(spec->Optional("mig", [](const Field& mig) {
    return CheckOneOf(mig, {"Off", "Advise", "Apply"});
  }));
  return status;
}

absl::Status ExpectText(const Field& field, std::string_view wanted) {
  const std::string rule = fmt::format("\"{}\"", wanted);
  const absl::StatusOr<std::string_view> text = Text(field, rule);
  if (!text.ok()) return text.status();
  return *text == wanted ? absl::OkStatus() : Error(field, rule);
}

absl::Status ReadName(const Field& metadata, GpuPolicy& policy) {
  const absl::StatusOr<Members> members = Members::Of(metadata);
  if (!members.ok()) return members.status();
  return members->Optional("name", [&](const Field& name) {
    const absl::StatusOr<std::string_view> text = Text(name, "a name");
    if (!text.ok()) return text.status();
    if (text->empty()) return Error(name, "a name");
    policy.name = *text;
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<GpuPolicy> DecodeGpuPolicy(std::string_view json, const GpuPolicy& defaults) {
  // The parser keeps the depth only while the room it has suffices.
  constexpr size_t kLeastCapacity = 1024;
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  simdjson::error_code error = parser.allocate(std::max(json.size(), kLeastCapacity), kMaxDepth);
  element root;
  if (error == simdjson::SUCCESS) error = parser.parse(padded).get(root);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("GPUPolicy: expected JSON, found: {}", simdjson::error_message(error)));
  }
  if (!root.is_object()) return Error({"GPUPolicy", root}, "an object");
  const absl::StatusOr<Members> members = Members::Of({"", root});
  GpuPolicy policy = defaults;
  // Items of a List may come without their type; a wrong one is a mistake.
  absl::Status status = members->Optional(
      "apiVersion", [](const Field& version) { return ExpectText(version, kApiVersion); });
  status.Update(
      members->Optional("kind", [](const Field& kind) { return ExpectText(kind, kKind); }));
  status.Update(members->Optional(
      "metadata", [&](const Field& metadata) { return ReadName(metadata, policy); }));
  status.Update(
      members->Optional("spec", [&](const Field& spec) { return ReadSpec(spec, policy); }));
  if (!status.ok()) return status;
  return policy;
}

}  // namespace tranche
