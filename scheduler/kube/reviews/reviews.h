// What an API server says of people: who holds a token, and whether they may do something
// (TokenReview of authentication.k8s.io/v1, SubjectAccessReview of authorization.k8s.io/v1).
//
// Plain values and a contract. Errors: Unavailable where nobody answered, or not with a review.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::kube {

struct ReviewedUser {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  friend bool operator==(const ReviewedUser&, const ReviewedUser&) = default;
};

// One verb on a resource, or on a path that is none.
struct AccessQuestion {
  std::string verb;
  std::string group;
  std::string resource;
  std::string ns;    // empty: in all namespaces, or of a resource that is in none
  std::string path;  // not empty: this instead of group, resource and namespace
};

class Reviews {
 public:
  // nullopt: the token is nobody's.
  using TokenDone = std::function<void(absl::StatusOr<std::optional<ReviewedUser>>)>;
  using AccessDone = std::function<void(absl::StatusOr<bool>)>;

  virtual ~Reviews() = default;
  // Neither waits. `done` is called once, on any thread, perhaps before they return.
  virtual void WhoIs(std::string token, TokenDone done) = 0;
  virtual void May(const ReviewedUser& user, const AccessQuestion& question, AccessDone done) = 0;
};

}  // namespace tranche::kube
