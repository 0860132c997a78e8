// Pods that hold cards others share, in the embedded cluster.
#include <gtest/gtest.h>

#include "scheduler/facts/placeholder.h"
#include "scheduler/wire/records/placeholder_pod.h"
#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

class EmbeddedPlaceholders : public EmbeddedCluster {
 protected:
  WriteResult Create(const std::string& name, const std::string& node) {
    Device device;
    device.milli = kWholeGpu;
    Allocation record;
    record.epoch = 1;
    record.containers = {{kPlaceholderTeller, {device}}, {kPlaceholderHolder, {device}}};
    const PlaceholderOrder order{{kPlaceholderNamespace, name}, NodeName(node), record};
    return Written([&](auto done) {
      cluster_.CreatePod({order.pod, order.node, wire::EncodePlaceholder(order, "image")},
                         std::move(done));
    });
  }
  WriteResult Delete(const std::string& name, const std::string& uid = "") {
    return Written([&](auto done) {
      cluster_.DeletePod({kPlaceholderNamespace, name}, PodUid(uid), std::move(done));
    });
  }
  Json Placeholder(const std::string& name) {
    return Json::parse(cluster_.Get("Pod", kPlaceholderNamespace, name).value_or("{}"));
  }
  std::string Told(const std::string& name) {
    return Placeholder(
        name)["status"]["initContainerStatuses"][0]["state"]["terminated"]["message"];
  }
};

TEST_F(EmbeddedPlaceholders, TellACardOfTheirOwnAtOnce) {
  EXPECT_EQ(Create("k1", "n1.example").http_code, 201);
  EXPECT_EQ(recorder_.Take(),
            Lines{"pod " + std::string(kPlaceholderNamespace) + "/k1 on n1.example Running"});
  EXPECT_EQ(Told("k1"), "GPU-n1-example-0");
  Create("k2", "n1.example");
  Create("k3", "n2");
  EXPECT_EQ(Told("k2"), "GPU-n1-example-1");
  EXPECT_EQ(Told("k3"), "GPU-n2-0");
  EXPECT_EQ(Create("k2", "n2").http_code, 409);
}

TEST_F(EmbeddedPlaceholders, GiveTheirCardBackWhenTheyAreDeleted) {
  Create("k1", "n1");
  const std::string uid = Placeholder("k1")["metadata"]["uid"];
  recorder_.Take();
  // Of another life of that name.
  EXPECT_EQ(Delete("k1", "other").kind, WriteResult::Kind::kDone);
  EXPECT_EQ(recorder_.Take(), Lines{});
  EXPECT_EQ(Delete("k1", uid).kind, WriteResult::Kind::kDone);
  EXPECT_EQ(recorder_.Take(), Lines{"pod gone " + uid});
  EXPECT_EQ(Delete("k1").kind, WriteResult::Kind::kDone);
  Create("k2", "n1");
  EXPECT_EQ(Told("k2"), "GPU-n1-0");
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
