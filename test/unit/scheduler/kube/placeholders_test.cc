// Making and deleting pods that hold cards, against a fake API server.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/facts/placeholder.h"
#include "scheduler/kube/writes/write_requests.h"
#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using Json = nlohmann::json;

const PodName kPod{kPlaceholderNamespace, "reserve-1"};

TEST(PlaceholderRequests, TheUidIsAPreconditionWhereThereIsOne) {
  const ApiRequest made = PodCreationRequest({kPod, NodeName("n1"), R"({"kind":"Pod"})"});
  EXPECT_EQ(made.method, "POST");
  EXPECT_EQ(made.target, "/api/v1/namespaces/tranche-reservation/pods");
  EXPECT_EQ(made.body, R"({"kind":"Pod"})");
  const ApiRequest one = PodDeletionRequest(kPod, PodUid("u1"));
  EXPECT_EQ(one.method, "DELETE");
  EXPECT_EQ(one.target, "/api/v1/namespaces/tranche-reservation/pods/reserve-1");
  EXPECT_EQ(Json::parse(one.body)["preconditions"], (Json{{"uid", "u1"}}));
  EXPECT_FALSE(Json::parse(PodDeletionRequest(kPod, PodUid()).body).contains("preconditions"));
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
