// Puts reviews to a real API server, over connections and on a thread of its own: neither verbs nor
// writes wait for them. Reviews change nothing, so that a standby asks too.
//
// Thread rule: Start and Stop from one thread; questions from any. Cost: a request each.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/kube/reviews/reviews.h"
#include "scheduler/kube/transport/options.h"

namespace tranche::kube {

class Reviewer : public Reviews {
 public:
  static constexpr std::chrono::milliseconds kPatience{5'000};

  // `audiences`: whom tokens must be for; empty: the API server.
  Reviewer(Options client, std::vector<std::string> audiences);
  ~Reviewer() override;
  void Start();
  // What was asked is answered with an error. Idempotent.
  void Stop();

  void WhoIs(std::string token, TokenDone done) override;
  void May(const ReviewedUser& user, const AccessQuestion& question, AccessDone done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::kube
