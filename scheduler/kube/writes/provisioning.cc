#include "scheduler/kube/writes/provisioning.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "scheduler/kube/writes/pod_reading.h"
#include "scheduler/kube/writes/write_requests.h"
#include "scheduler/wire/workloads/provisioning.h"

namespace tranche::kube {
namespace {

namespace asio = boost::asio;
using Kind = WriteResult::Kind;

constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kUnprocessable = 422;

std::string TextOf(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

// The template of a pod as the server has it; a result: there is none.
struct TemplateReading {
  std::optional<WriteResult> failed;
  std::string text;
};

TemplateReading ReadTemplate(const ApiAnswer& answer, const ProvisioningSet& set) {
  TemplateReading reading;
  wire::LenientParser parser;
  const PodReading read = ReadPod(parser, answer, set.pod, set.uid);
  if (read.failed) {
    reading.failed = read.failed;
    return reading;
  }
  absl::StatusOr<std::string> made = wire::PodTemplateOf(read.document);
  if (made.ok()) {
    reading.text = *std::move(made);
  } else {
    reading.failed = {Kind::kRejected, kUnprocessable, TextOf(made.status())};
  }
  return reading;
}

ProvisioningList Unlisted(wire::LenientParser& parser, const ApiAnswer& answer) {
  ProvisioningList list;
  const WriteResult why = NotRead(parser, answer);
  if (why.http_code == kNotFound) list.kind = ProvisioningList::Kind::kNoSuchKind;
  if (why.http_code == kForbidden) list.kind = ProvisioningList::Kind::kForbidden;
  list.message = fmt::format("{} {}", why.http_code, why.message);
  return list;
}

}  // namespace

asio::awaitable<ProvisioningList> ListProvisioning(ApiCalls& calls, TimePoint deadline) {
  const ApiAnswer answer = co_await calls.Get(ProvisioningListTarget(), deadline);
  wire::LenientParser parser;
  const auto document = parser.Parse(answer.body);
  wire::Object root;
  const bool is_object = answer.succeeded() && document.ok() && !DecodeStatus(*document) &&
                         document->get(root) == simdjson::SUCCESS;
  const auto items = is_object ? wire::FindArray(root, "items") : std::nullopt;
  if (!items) co_return Unlisted(parser, answer);
  ProvisioningList list;
  list.kind = ProvisioningList::Kind::kListed;
  for (const wire::Element item : *items) {
    if (!wire::IsOurProvisioning(item)) continue;
    // What cannot be read is nobody's answer; it is there, and is seen again.
    absl::StatusOr<ProvisioningFound> found = wire::DecodeProvisioning(item);
    if (found.ok()) list.found.push_back(*std::move(found));
  }
  co_return list;
}

asio::awaitable<WriteResult> MakeProvisioning(ApiCalls& calls, ProvisioningWrite write,
                                              TimePoint deadline) {
  std::vector<wire::TemplateSet> sets;
  for (const ProvisioningSet& set : write.sets) {
    const ApiAnswer answer = co_await calls.Get(PodPath(set.pod), deadline);
    TemplateReading reading = ReadTemplate(answer, set);
    if (reading.failed) co_return *reading.failed;
    sets.push_back({std::move(reading.text), set.count});
  }
  const absl::StatusOr<wire::ProvisioningObjects> objects = wire::EncodeProvisioning(write, sets);
  if (!objects.ok()) {
    co_return WriteResult{Kind::kRejected, kUnprocessable, TextOf(objects.status())};
  }
  for (const wire::ProvisioningObjects::Named& one : objects->templates) {
    ApiRequest request = PodTemplateRequest({write.name.ns, one.name}, one.json);
    request.deadline = deadline;
    WriteResult sent = co_await calls.Write(std::move(request), 1);
    if (sent.kind != Kind::kDone) co_return sent;
  }
  ApiRequest request = ProvisioningRequest(write.name.ns, objects->request);
  request.deadline = deadline;
  co_return co_await calls.Write(std::move(request), 1);
}

asio::awaitable<WriteResult> DeleteProvisioning(ApiCalls& calls, ProvisioningFound request,
                                                TimePoint deadline) {
  // The request first: it must not be found without its templates.
  std::vector<ApiRequest> deletions = {ProvisioningDeletionRequest(request.name)};
  for (const std::string& name : request.templates) {
    deletions.push_back(PodTemplateDeletionRequest({request.name.ns, name}));
  }
  WriteResult sent;
  for (ApiRequest& deletion : deletions) {
    deletion.deadline = deadline;
    sent = co_await calls.Write(std::move(deletion), 1);
    if (sent.http_code == kNotFound) sent.kind = Kind::kDone;
    if (sent.kind != Kind::kDone) break;
  }
  co_return sent;
}

}  // namespace tranche::kube
