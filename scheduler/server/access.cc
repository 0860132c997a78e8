#include "scheduler/server/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/api/router.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr std::chrono::milliseconds kReadTokenEvery{5'000};
constexpr std::string_view kBearer = "Bearer ";

// In questions of the usual kind: some have the engine decide about many pods, or look at all it
// has.
int CostOf(std::string_view path) {
  constexpr int kDear = 10;
  const bool dear = path == "/api/v1/whatif" || path == "/api/v1/advice" ||
                    path == "/api/v1/audit" || path == "/api/v1/plan" ||
                    path == "/api/v1/profile" || path == "/api/v1/ledger/bill" ||
                    path == "/api/v1/ledger/statement" || path.starts_with("/api/v1/opencost/");
  return dear ? kDear : 1;
}

// Whether a browser can have found this machine under that name without somebody else's name
// server: an address, a name without dots, localhost.
bool IsLocalName(std::string_view host) {
  if (host.starts_with('[')) return true;
  host = host.substr(0, host.find(':'));
  return host.find('.') == std::string_view::npos || host.ends_with(".localhost") ||
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

http::Response NotHere(const http::Request& request) {
  return ErrorResponse(404,
                       fmt::format("{} is not served at this address", wire::Quoted(request.path)));
}

std::unique_ptr<kube::TokenSource> SourceOf(const std::string& file) {
  if (file.empty()) return nullptr;
  kube::Credentials credentials;
  credentials.token_file = file;
  return std::make_unique<kube::TokenSource>(credentials, kReadTokenEvery);
}

}  // namespace

bool IsLoopbackAddress(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

Subject SubjectOf(std::string_view path) {
  if (path == "/healthz" || path == "/livez" || path == "/readyz") return Subject::kHealth;
  if (path.starts_with("/scheduler/") || path.starts_with("/embedded/")) return Subject::kVerbs;
  if (path.starts_with("/admission/")) return Subject::kAdmission;
  if (path == "/" || path == "/ui" || path.starts_with("/ui/")) return Subject::kPageFiles;
  return Subject::kPages;
}

Access::Access(const ServeConfig& config, std::function<CallerRates::TimePoint()> time)
    : tls_(config.tls.has_value()),
      verbs_need_tls_(config.verbs_need_tls),
      own_pages_(config.pages_address.has_value()),
      own_probes_(config.probes_address.has_value()),
      plain_is_local_(IsLoopbackAddress(config.address)),
      pages_are_local_(IsLoopbackAddress(config.pages_address.value_or(""))),
      verb_body_bytes_(config.limits.body_bytes),
      verbs_{http::ByteBudget(config.reading_bytes), http::ByteBudget(config.sending_bytes)},
      admission_{http::ByteBudget(config.reading_bytes), http::ByteBudget(config.sending_bytes)},
      pages_{http::ByteBudget(config.reading_bytes), http::ByteBudget(config.sending_bytes)},
      page_rates_(config.page_requests_per_second, std::move(time)),
      allowed_(config.allowed_clients.begin(), config.allowed_clients.end()),
      token_(SourceOf(config.pages_token_file)) {}

absl::Status Access::Check() {
  const absl::MutexLock lock(&mutex_);
  if (token_ == nullptr) return absl::OkStatus();
  const absl::Status read = token_->Get(std::chrono::steady_clock::now()).status();
  if (read.ok()) return read;
  return absl::FailedPreconditionError(
      fmt::format("pages.tokenFile: {}", std::string(read.message())));
}

bool Access::IsOpen(Door door) const {
  switch (door) {
    case Door::kPlain:
      return !(verbs_need_tls_ && own_pages_);
    case Door::kTls:
      return tls_;
    case Door::kProbes:
      return own_probes_;
    case Door::kPages:
      break;
  }
  return own_pages_;
}

std::optional<http::Response> Access::RefuseVerb(Door door, const http::Request& request) const {
  if (door == Door::kPages) return NotHere(request);
  if (door == Door::kPlain) {
    if (!verbs_need_tls_) return std::nullopt;
    return ErrorResponse(403, "expected TLS with a client certificate, found a plain connection");
  }
  if (request.client_names == nullptr) {
    if (!verbs_need_tls_) return std::nullopt;
    return ErrorResponse(403, "expected a client certificate, found none");
  }
  if (allowed_.empty()) return std::nullopt;
  const bool named =
      std::any_of(request.client_names->begin(), request.client_names->end(),
                  [this](const std::string& name) { return allowed_.contains(name); });
  if (named) return std::nullopt;
  return ErrorResponse(403, "expected a client certificate of tls.allowedClients, found another");
}

std::optional<http::Response> Access::RefusePage(const http::Request& request) {
  if (unseen_) return unseen_(request.authorization);
  std::string expected(kBearer);
  {
    const absl::MutexLock lock(&mutex_);
    if (token_ == nullptr) return std::nullopt;
    const absl::StatusOr<std::string> token = token_->Get(std::chrono::steady_clock::now());
    if (!token.ok()) return ErrorResponse(503, "the token cannot be read");
    expected += *token;
  }
  const std::string& found = request.authorization;
  // In a time that does not tell how much of it is right.
  if (found.size() == expected.size() &&
      CRYPTO_memcmp(found.data(), expected.data(), expected.size()) == 0) {
    return std::nullopt;
  }
  http::Response response = ErrorResponse(401, "expected the bearer token of this server");
  response.headers["WWW-Authenticate"] = "Bearer";
  return response;
}

// What a page of another site could have a reader's browser do to a server that only this machine
// reaches, or that asks for no credential.
std::optional<http::Response> Access::RefuseForeignPage(Door door,
                                                        const http::Request& request) const {
  const bool changes = request.method != "GET" && request.method != "HEAD";
  if (changes && request.cross_site) {
    return ErrorResponse(403, "expected no request of another site's page, found one");
  }
  const bool local =
      (door == Door::kPlain && plain_is_local_) || (door == Door::kPages && pages_are_local_);
  if (!local || IsLocalName(request.host)) return std::nullopt;
  return ErrorResponse(
      421, fmt::format("Host: expected localhost or an address, found {}, on an address that only "
                       "this machine reaches",
                       wire::Quoted(request.host)));
}

std::optional<http::Response> Access::Refuse(Door door, const http::Request& request) {
  const Subject subject = SubjectOf(request.path);
  if (auto refusal = RefuseForeignPage(door, request)) return refusal;
  if (door == Door::kProbes && subject != Subject::kHealth) return NotHere(request);
  switch (subject) {
    case Subject::kHealth:
      return std::nullopt;
    case Subject::kVerbs:
      return RefuseVerb(door, request);
    case Subject::kAdmission:
      if (door == Door::kPages) return NotHere(request);
      return std::nullopt;
    case Subject::kPageFiles:
    case Subject::kPages:
      break;
  }
  if (door == Door::kTls && own_pages_) return NotHere(request);
  // The page asks its reader for the token; its files say nothing of the cluster.
  if (subject == Subject::kPageFiles) return std::nullopt;
  return RefusePage(request);
}

std::optional<http::Response> Access::RefuseHaste(const http::Request& request) {
  if (IsLoopbackAddress(request.peer)) return std::nullopt;
  const auto wait = page_rates_.Take(request.peer, CostOf(request.path));
  if (!wait) return std::nullopt;
  http::Response response = ErrorResponse(429, "this caller asks too often, ask again later");
  response.headers["Retry-After"] = std::to_string(wait->count());
  return response;
}

http::Terms Access::Judge(Door door, const http::Request& head) {
  http::Terms terms;
  terms.refusal = Refuse(door, head);
  const Subject subject = SubjectOf(head.path);
  if (subject == Subject::kPages && !terms.refusal) terms.refusal = RefuseHaste(head);
  const bool showed_token = subject == Subject::kPages && token_ != nullptr;
  terms.verified = !terms.refusal && (showed_token || head.client_names != nullptr);
  Budgets* budgets = &pages_;
  const bool objects = head.path == "/api/v1/whatif" || head.path == "/api/v1/plan";
  terms.body_bytes = objects ? kWhatIfBodyBytes : kPageBodyBytes;
  if (subject == Subject::kVerbs) {
    budgets = &verbs_;
    terms.body_bytes = verb_body_bytes_;
  }
  if (subject == Subject::kAdmission) {
    budgets = &admission_;
    terms.body_bytes = kAdmissionBodyBytes;
  }
  terms.bodies = &budgets->bodies;
  terms.answers = &budgets->answers;
  return terms;
}

}  // namespace tranche
