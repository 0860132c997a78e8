#include "scheduler/kube/transport/token.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "scheduler/kube/transport/files.h"

namespace tranche::kube {

absl::Status CheckToken(const std::string& token, const std::string& where) {
  const bool printable = std::all_of(token.begin(), token.end(),
                                     [](char byte) { return byte > ' ' && byte < '\x7f'; });
  if (!token.empty() && printable) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("expected a token of printable ASCII, found {} in {}",
                  token.empty() ? "nothing" : "other bytes", where));
}

TokenSource::TokenSource(const Credentials& credentials, std::chrono::milliseconds reread)
    : file_(credentials.token_file), last_good_(Trimmed(credentials.token)), reread_(reread) {}

absl::StatusOr<std::string> TokenSource::Get(std::chrono::steady_clock::time_point now) {
  if (file_.empty() || (fresh_ && now - read_at_ < reread_)) return last_good_;
  read_at_ = now;
  fresh_ = true;
  absl::StatusOr<std::string> text = ReadSmallFile(file_);
  absl::Status status = text.status();
  std::string token;
  if (status.ok()) {
    token = Trimmed(*text);
    status = CheckToken(token, file_);
  }
  if (status.ok()) {
    last_good_ = std::move(token);
    return last_good_;
  }
  if (last_good_.empty()) {
    fresh_ = false;
    return status;
  }
  spdlog::warn("keeping the last good token: {}", status.ToString());
  return last_good_;
}

bool TokenSource::Expire() {
  fresh_ = false;
  return !file_.empty();
}

}  // namespace tranche::kube
