// JSON Web Tokens that nobody has signed, and an API server that says who holds a token as a test
// wants it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/kube/reviews/reviews.h"

namespace tranche {

inline std::string Base64Url(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) out += kLetters[(bits >> (count - 6)) & 63];
  }
  if (count > 0) out += kLetters[(bits << (6 - count)) & 63];
  return out;
}

inline std::string Jwt(std::string_view claims, std::string_view header = R"({"alg":"RS256"})") {
  return Base64Url(header) + "." + Base64Url(claims) + "." + Base64Url("signature");
}

// Answers at once, or when the test says.
class FakeReviews : public kube::Reviews {
 public:
  void WhoIs(std::string token, TokenDone done) override {
    Ask("token", [this, token, done = std::move(done)] {
      if (away) return done(absl::UnavailableError("away"));
      const auto found = users.find(token);
      if (found == users.end()) return done(std::optional<kube::ReviewedUser>());
      done(std::optional<kube::ReviewedUser>(found->second));
    });
  }
  void May(const kube::ReviewedUser& user, const kube::AccessQuestion& question,
           AccessDone done) override {
    const std::string right = question.path.empty()
                                  ? question.verb + " " + question.resource +
                                        (question.ns.empty() ? "" : " " + question.ns)
                                  : question.verb + " " + question.path;
    Ask(user.name + " " + right, [this, name = user.name, right, done = std::move(done)] {
      if (away) return done(absl::UnavailableError("away"));
      done(rights.contains({name, right}));
    });
  }
  // Answers what has been asked, and what that makes asked.
  void Answer() {
    for (;;) {
      std::function<void()> next;
      {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) return;
        next = std::move(held_.front());
        held_.pop_front();
      }
      next();
    }
  }
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::size_t count() const { return asked().size(); }

  std::map<std::string, kube::ReviewedUser> users;       // by token
  std::set<std::pair<std::string, std::string>> rights;  // user, "get gpuquotaviews team-a"
  bool away = false;
  bool holds = false;  // until Answer

 private:
  void Ask(std::string what, std::function<void()> answer) {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::move(what));
      if (holds) {
        held_.push_back(std::move(answer));
        return;
      }
    }
    answer();
  }

  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::deque<std::function<void()>> held_;
};

}  // namespace tranche
