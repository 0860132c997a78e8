#include "scheduler/probe/pod_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "scheduler/probe/grpc_call.h"
#include "scheduler/probe/proto_reader.h"
#include "topology/base/status.h"

namespace tranche::probe {
namespace {

constexpr std::size_t kMaxAnswerBytes = 16 * 1024 * 1024;
constexpr std::size_t kMaxNameBytes = 317;  // a resource name: prefix 253, slash, name 63
constexpr std::string_view kVendor = "nvidia.com/";

// Field numbers of the messages, outermost first.
constexpr uint32_t kPods = 1;
constexpr uint32_t kPodName = 1;
constexpr uint32_t kPodNamespace = 2;
constexpr uint32_t kPodContainers = 3;
constexpr uint32_t kContainerName = 1;
constexpr uint32_t kContainerDevices = 2;
constexpr uint32_t kResourceName = 1;
constexpr uint32_t kDeviceIds = 2;

using Where = std::tuple<std::string, std::string, std::string, std::string>;
using Held = std::map<Where, std::vector<std::string>>;

// Names and ids are ASCII without blanks; whatever else comes is not from a kubelet.
absl::StatusOr<std::string> Name(std::string_view bytes, const char* what) {
  const bool plain = bytes.size() <= kMaxNameBytes &&
                     std::all_of(bytes.begin(), bytes.end(),
                                 [](char byte) { return byte > ' ' && byte < '\x7f'; });
  if (!plain) {
    return absl::InvalidArgumentError(
        fmt::format("expected a {} of at most {} printable characters, found something else", what,
                    kMaxNameBytes));
  }
  return std::string(bytes);
}

absl::Status ReadDevices(std::string_view message, Where where, Held& held) {
  std::vector<std::string> ids;
  ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    if (!field->bytes) continue;
    if (field->number == kResourceName) {
      TRANCHE_ASSIGN_OR_RETURN(std::get<3>(where), Name(*field->bytes, "resource name"));
    } else if (field->number == kDeviceIds) {
      TRANCHE_ASSIGN_OR_RETURN(auto id, Name(*field->bytes, "device id"));
      ids.push_back(std::move(id));
    }
  }
  if (!reader.status().ok() || !std::get<3>(where).starts_with(kVendor)) return reader.status();
  std::vector<std::string>& all = held[std::move(where)];
  all.insert(all.end(), ids.begin(), ids.end());
  return absl::OkStatus();
}

absl::Status ReadContainer(std::string_view message, Where where, Held& held) {
  std::vector<std::string_view> devices;
  ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    if (!field->bytes) continue;
    if (field->number == kContainerName) {
      TRANCHE_ASSIGN_OR_RETURN(std::get<2>(where), Name(*field->bytes, "container name"));
    } else if (field->number == kContainerDevices) {
      devices.push_back(*field->bytes);
    }
  }
  if (!reader.status().ok()) return reader.status();
  for (const std::string_view one : devices) {
    TRANCHE_RETURN_IF_ERROR(ReadDevices(one, where, held));
  }
  return absl::OkStatus();
}

absl::Status ReadPod(std::string_view message, Held& held) {
  Where where;
  std::vector<std::string_view> containers;
  ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    if (!field->bytes) continue;
    if (field->number == kPodContainers) {
      containers.push_back(*field->bytes);
    } else if (field->number == kPodName || field->number == kPodNamespace) {
      TRANCHE_ASSIGN_OR_RETURN(auto name, Name(*field->bytes, "pod name"));
      (field->number == kPodName ? std::get<1>(where) : std::get<0>(where)) = std::move(name);
    }
  }
  if (!reader.status().ok()) return reader.status();
  for (const std::string_view one : containers) {
    TRANCHE_RETURN_IF_ERROR(ReadContainer(one, where, held));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ContainerDevices>> DecodePodResources(std::string_view message) {
  Held held;
  ProtoReader reader(message);
  while (const auto field = reader.Next()) {
    if (field->number != kPods || !field->bytes) continue;
    TRANCHE_RETURN_IF_ERROR(ReadPod(*field->bytes, held));
  }
  if (!reader.status().ok()) return reader.status();
  std::vector<ContainerDevices> all;
  for (auto& [where, ids] : held) {
    std::sort(ids.begin(), ids.end());
    const auto& [ns, pod, container, resource] = where;
    all.push_back({ns, pod, container, resource, std::move(ids)});
  }
  return all;
}

absl::StatusOr<std::vector<ContainerDevices>> ListPodResources(const std::string& socket,
                                                               std::chrono::milliseconds timeout) {
  UnaryCall call;
  call.socket = socket;
  call.method = "/v1.PodResourcesLister/List";
  call.answer_limit = kMaxAnswerBytes;
  call.timeout = timeout;
  TRANCHE_ASSIGN_OR_RETURN(const std::string answer, CallUnary(call));
  auto decoded = DecodePodResources(answer);
  if (decoded.ok()) return decoded;
  return absl::InvalidArgumentError(
      fmt::format("{}: {}: {}", socket, call.method, std::string(decoded.status().message())));
}

}  // namespace tranche::probe
