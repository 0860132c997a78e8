#include "scheduler/agent/register.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scheduler/kube/transport/single_call.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/agent_registers.h"

namespace tranche::agent {
namespace {

constexpr int kPatched = 200;

void AppendMember(std::string& text, std::string_view key, std::string_view value) {
  text += fmt::format(",\"{}\":", key);
  wire::AppendQuoted(text, value);
}

// What is wrong with the card, or with places of it.
std::string ProblemOf(const Card& card) {
  std::string problem = card.problem;
  for (const ClosedPlace& closed : card.closed) {
    if (!problem.empty()) problem += "; ";
    problem += fmt::format("{} at {}: {}", closed.place.profile, closed.place.start, closed.why);
  }
  return problem;
}

void AppendMig(std::string& text, const Card& card) {
  text += ",\"mig\":{\"profiles\":[";
  for (const MigOffer& offer : card.offers) {
    if (!text.ends_with('[')) text += ',';
    text += "{\"name\":";
    wire::AppendQuoted(text, offer.profile);
    text += fmt::format(",\"mib\":{},\"size\":{},\"starts\":[{}]}}", offer.mib, offer.size,
                        fmt::join(offer.starts, ","));
  }
  text += "],\"closed\":[";
  for (const ClosedPlace& closed : card.closed) {
    if (!text.ends_with('[')) text += ',';
    text += "{\"profile\":";
    wire::AppendQuoted(text, closed.place.profile);
    text += fmt::format(",\"start\":{},\"size\":{}}}", closed.place.start, closed.place.size);
  }
  text += "]}";
}

}  // namespace

std::string RenderRegister(const std::vector<Card>& cards) {
  std::string text = "{\"v\":1,\"devices\":[";
  for (const Card& card : cards) {
    if (!text.ends_with('[')) text += ',';
    text += "{\"uuid\":";
    wire::AppendQuoted(text, card.uuid.str());
    text += fmt::format(",\"index\":{},\"mib\":{},\"healthy\":{}", card.index, card.mib,
                        card.problem.empty());
    if (!card.type.empty()) AppendMember(text, "type", card.type);
    if (const std::string problem = ProblemOf(card); !problem.empty()) {
      AppendMember(text, "problem", problem);
    }
    if (card.mig) AppendMig(text, card);
    if (card.slots > 0) text += fmt::format(",\"mps\":{{\"slots\":{}}}", card.slots);
    text += '}';
  }
  return text + "]}";
}

absl::Status WriteRegister(const kube::Credentials& credentials, const NodeName& node,
                           const std::string& text, std::chrono::milliseconds timeout) {
  kube::SingleRequest request;
  request.method = "PATCH";
  request.target = fmt::format("/api/v1/nodes/{}", node.str());
  request.content_type = "application/merge-patch+json";
  request.timeout = timeout;
  request.body = "{\"metadata\":{\"annotations\":{";
  wire::AppendQuoted(request.body, wire::kTrancheRegisterKey);
  request.body += ':';
  wire::AppendQuoted(request.body, text);
  request.body += "}}}";
  const auto answer = kube::CallOnce(credentials, request);
  if (!answer.ok()) {
    return absl::UnavailableError(
        fmt::format("API server: {}", std::string(answer.status().message())));
  }
  if (answer->status == kPatched) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("API server: expected to write the register of node {}, found HTTP {}",
                  node.str(), answer->status));
}

}  // namespace tranche::agent
