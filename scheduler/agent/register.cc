#include "scheduler/agent/register.h"

#include <fmt/format.h>

#include "scheduler/kube/transport/single_call.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/nodes/agent_registers.h"

namespace tranche::agent {
namespace {

constexpr int kPatched = 200;

}  // namespace

std::string RenderRegister(const std::vector<Card>& cards) {
  std::string text = "{\"v\":1,\"devices\":[";
  for (const Card& card : cards) {
    if (!text.ends_with('[')) text += ',';
    text += "{\"uuid\":";
    wire::AppendQuoted(text, card.uuid.str());
    text += fmt::format(",\"index\":{},\"mib\":{},\"healthy\":{}", card.index, card.mib,
                        card.problem.empty());
    if (!card.problem.empty()) {
      text += ",\"problem\":";
      wire::AppendQuoted(text, card.problem);
    }
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
