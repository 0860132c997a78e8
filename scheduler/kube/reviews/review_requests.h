// What the two reviews look like on the wire, and what their answers prove.
//
// Pure functions. A token goes into the body of its review and nowhere else; what the API server
// says of one is not repeated in errors. Errors: Unavailable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/kube/reviews/reviews.h"
#include "scheduler/kube/transport/api_client.h"

namespace tranche::kube {

// What is kept of a user: more than this is no answer that is taken.
inline constexpr std::size_t kMostUserBytes = std::size_t{32} * 1024;

// `audiences` empty: those of the API server.
ApiRequest TokenReviewRequest(const std::string& token, const std::vector<std::string>& audiences,
                              TimePoint deadline);
ApiRequest AccessReviewRequest(const ReviewedUser& user, const AccessQuestion& question,
                               TimePoint deadline);

// nullopt: the token is nobody's, or is for none of the audiences.
absl::StatusOr<std::optional<ReviewedUser>> ReadTokenReview(
    const ApiAnswer& answer, const std::vector<std::string>& audiences);
absl::StatusOr<bool> ReadAccessReview(const ApiAnswer& answer);

}  // namespace tranche::kube
