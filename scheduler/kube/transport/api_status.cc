#include "scheduler/kube/transport/api_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tranche::kube {
namespace {

constexpr int64_t kMaxRetryAfterSeconds = 3600;

// Sent with a refusal to evict, and with nothing else.
bool NamesDisruptionBudget(wire::Object details) {
  const auto causes = wire::FindArray(details, "causes");
  if (!causes) return false;
  return std::any_of(causes->begin(), causes->end(), [](wire::Element element) {
    wire::Object cause;
    return element.get(cause) == simdjson::SUCCESS &&
           wire::FindText(cause, "reason") == "DisruptionBudget";
  });
}

// What is said of a body that is no Status.
std::string WithoutStatus(const ApiAnswer& answer, const absl::Status& parsed) {
  if (answer.succeeded()) return std::string(parsed.message());
  const std::size_t first = answer.body.find_first_not_of(" \t\r\n");
  const bool is_json =
      parsed.ok() || (first != std::string::npos && std::strchr("{[\"", answer.body[first]));
  return is_json ? std::string() : CutMessage(answer.body);
}

}  // namespace

std::string CutMessage(std::string_view text) {
  std::string out(text.substr(0, kMaxMessageBytes));
  std::replace_if(
      out.begin(), out.end(), [](char byte) { return static_cast<unsigned char>(byte) < ' '; },
      ' ');
  return out;
}

std::optional<ApiStatus> DecodeStatus(wire::Element object) {
  wire::Object status;
  if (object.get(status) != simdjson::SUCCESS) return std::nullopt;
  if (wire::FindText(status, "kind") != "Status") return std::nullopt;
  ApiStatus out;
  out.stated = true;
  out.success = wire::FindText(status, "status") == "Success";
  out.code =
      static_cast<int>(std::clamp<int64_t>(wire::FindInteger(status, "code").value_or(0), 0, 999));
  out.reason = CutMessage(wire::FindText(status, "reason").value_or(""));
  out.message = CutMessage(wire::FindText(status, "message").value_or(""));
  if (const auto details = wire::FindObject(status, "details")) {
    const auto seconds = wire::FindInteger(*details, "retryAfterSeconds");
    if (seconds && *seconds > 0)
      out.retry_after_seconds = std::min(*seconds, kMaxRetryAfterSeconds);
    out.names_disruption_budget = NamesDisruptionBudget(*details);
  }
  return out;
}

ApiStatus ReadStatus(wire::LenientParser& parser, const ApiAnswer& answer) {
  ApiStatus out;
  const auto document = parser.Parse(answer.body);
  const auto decoded = document.ok() ? DecodeStatus(*document) : std::nullopt;
  if (decoded) {
    out = *decoded;
    // A failure under 2xx carries its code in the body; everywhere else the HTTP code rules.
    if (!answer.succeeded() || out.success || out.code == 0) out.code = answer.status;
    out.success = out.success && answer.succeeded();
  } else {
    out.success = answer.succeeded() && document.ok();
    out.code = answer.status;
    out.message = WithoutStatus(answer, document.status());
  }
  if (answer.retry_after_seconds) out.retry_after_seconds = answer.retry_after_seconds;
  if (!out.success && out.message.empty()) {
    out.message = out.reason.empty() ? fmt::format("HTTP {}", out.code) : out.reason;
  }
  return out;
}

}  // namespace tranche::kube
