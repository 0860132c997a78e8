// What is kept of objects for later: what decides where pods go, and nothing that changes by
// itself.
#include "scheduler/wire/records/past_object.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "scheduler/wire/nodes/node_decode.h"
#include "scheduler/wire/pods/pod_decode.h"
#include "scheduler/wire/pods/pod_gang.h"
#include "scheduler/wire/pods/request_styles.h"

namespace tranche::wire {
namespace THIS_FILE {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PastObjectTest : public ::testing::Test {
 protected:
  Element Parse(const std::string& text) {
    text_ = text;
    const auto element = parser_.Parse(text_);
    EXPECT_TRUE(element.ok()) << element.status();
    return *element;
  }
  std::string text_;
  Parser parser_;
};

// The number is its own; all else is its template's.
std::string PodOf(int number) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"train-{0}","namespace":"a",
      "uid":"uid-{0}","creationTimestamp":"2026-03-01T10:00:0{0}Z","resourceVersion":"{0}",
      "labels":{{"app":"train","statefulset.kubernetes.io/pod-name":"train-{0}"}},
      "annotations":{{"tranche.dev/expected-runtime":"2h","hami.io/bind-time":"{0}",
        "kubectl.kubernetes.io/last-applied-configuration":"{{{0}}}"}},
      "ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u",
        "controller":true}}]}},
      "spec":{{"nodeName":"n{0}","priority":7,"priorityClassName":"train",
        "terminationGracePeriodSeconds":5,"nodeSelector":{{"zone":"z"}},
        "tolerations":[{{"key":"gpu","operator":"Exists"}}],
        "containers":[{{"name":"main","image":"secret.registry/image","args":["--token","x"],
          "env":[{{"name":"PASSWORD","value":"p"}}],
          "resources":{{"limits":{{"nvidia.com/gpu":"2","cpu":"4"}}}}}}]}},
      "status":{{"phase":"Running","startTime":"2026-03-01T10:00:0{0}Z"}}}})",
      number);
}

TEST_F(PastObjectTest, PodsOfOneTemplateHaveOneText) {
  const std::string one = PastPodText(Parse(PodOf(1)));
  EXPECT_EQ(PastPodText(Parse(PodOf(2))), one);
  EXPECT_THAT(one, Not(HasSubstr("train-1")));
  EXPECT_THAT(one, Not(HasSubstr("uid-1")));
}

TEST_F(PastObjectTest, ImagesArgumentsAndSecretsOfPodsAreNotKept) {
  const std::string kept = PastPodText(Parse(PodOf(1)));
  for (const char* const part : {"secret.registry", "--token", "PASSWORD", "last-applied"}) {
    EXPECT_THAT(kept, Not(HasSubstr(part)));
  }
}

TEST_F(PastObjectTest, WhatAnyReaderOfPodsReadsIsKeptAndNothingElseOfAnnotations) {
  std::vector<std::string_view> read(kPodKeys.begin(), kPodKeys.end());
  read.insert(read.end(), kGangKeys.begin(), kGangKeys.end());
  // What is written when a pod is bound or later.
  for (const char* const later : {"tranche.dev/allocation", "tranche.dev/checkpointed-at"}) {
    std::erase(read, later);
  }
  for (const std::string_view key : read) {
    const std::string pod = fmt::format(
        R"({{"metadata":{{"name":"p","labels":{{"{0}":"l"}},"annotations":{{"{0}":"a"}}}}}})", key);
    const std::string kept = PastPodText(Parse(pod));
    const std::string entry = fmt::format(R"({{"{}":"a"}})", key);
    // Of the keys of gangs some are labels.
    const bool is_label = kept.find(fmt::format(R"({{"{}":"l"}})", key)) != std::string::npos;
    EXPECT_TRUE(is_label || kept.find(entry) != std::string::npos) << key << ": " << kept;
  }
  const std::string kept = PastPodText(Parse(
      R"({"metadata":{"annotations":{"vault.hashicorp.com/agent-inject-template-x":"secret",
      "prometheus.io/scrape":"true","note":"mine"}}})"));
  EXPECT_EQ(kept, R"({"metadata":{"name":"pod"}})");
}

TEST_F(PastObjectTest, ThePodsReaderReadsTheSameRequestFromIt) {
  const auto whole = DecodePod(Parse(PodOf(1)));
  ASSERT_TRUE(whole.ok());
  const auto kept = DecodePod(Parse(PastPodText(Parse(PodOf(1)))));
  ASSERT_TRUE(kept.ok()) << kept.status();
  const PodRequest& a = whole->request;
  const PodRequest& b = kept->request;
  EXPECT_EQ(b.style, a.style);
  ASSERT_EQ(b.asks.size(), 1u);
  EXPECT_EQ(b.asks[0].count, 2);
  EXPECT_EQ(b.priority, 7);
  EXPECT_EQ(b.priority_class, "train");
  EXPECT_EQ(b.expected_runtime, a.expected_runtime);
  EXPECT_EQ(b.cpu, a.cpu);
  ASSERT_NE(b.constraints, nullptr);
  EXPECT_EQ(*b.constraints, *a.constraints);
  EXPECT_EQ(kept->grace, whole->grace);
  EXPECT_TRUE(kept->evictable);
  EXPECT_TRUE(kept->node.empty()) << "where it went is not what it asked for";
}

TEST_F(PastObjectTest, APodOfADaemonSetIsNotEvictedLaterEither) {
  const std::string pod =
      R"({"metadata":{"name":"p","ownerReferences":[{"kind":"DaemonSet","controller":true,
      "uid":"u","name":"d"}]},"spec":{"containers":[{"name":"main",
      "resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";
  const auto kept = DecodePod(Parse(PastPodText(Parse(pod))));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_FALSE(kept->evictable);
}

TEST_F(PastObjectTest, APodThatIsTooLongIsNotKept) {
  const std::string pod = fmt::format(
      R"({{"metadata":{{"name":"p","annotations":{{"tranche.dev/x":"{}"}}}},"spec":{{}}}})",
      std::string(kMostPastText, 'x'));
  EXPECT_THAT(PastPodText(Parse(pod)), IsEmpty());
}

TEST_F(PastObjectTest, ANodesTextChangesWithWhatItOffersAlone) {
  const auto node = [](const char* handshake, const char* gpus, const char* ready) {
    return fmt::format(
        R"({{"metadata":{{"name":"n1","resourceVersion":"{0}","labels":{{"zone":"z"}},
        "annotations":{{"hami.io/node-handshake":"{0}","flannel/x":"{0}",
        "hami.io/device-cordon":"GPU-1"}}}},
        "spec":{{"taints":[{{"key":"k","effect":"NoSchedule"}}]}},
        "status":{{"allocatable":{{"nvidia.com/gpu":"{1}"}},"capacity":{{"nvidia.com/gpu":"8"}},
        "conditions":[{{"type":"DiskPressure","status":"False"}},{{"type":"Ready","status":"{2}",
        "lastHeartbeatTime":"{0}"}}],"images":[{{"names":["{0}"]}}]}}}})",
        handshake, gpus, ready);
  };
  const std::string kept = PastNodeText(Parse(node("1", "8", "True")));
  EXPECT_EQ(PastNodeText(Parse(node("2", "8", "True"))), kept);
  EXPECT_NE(PastNodeText(Parse(node("1", "7", "True"))), kept);
  EXPECT_NE(PastNodeText(Parse(node("1", "8", "False"))), kept);
  const auto facts = DecodeNode(Parse(kept));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu, (ResourceCount{8, 8}));
  EXPECT_EQ(facts->taints.size(), 1u);
  EXPECT_TRUE(facts->ready);
  EXPECT_EQ(facts->cordoned_devices.size(), 1u);
}

TEST_F(PastObjectTest, APolicysStatusIsNotKept) {
  EXPECT_EQ(PastPolicyText(R"({"kind":"GPUQuota","metadata":{"name":"q","generation":3,
                              "labels":{"a":"b"}},"spec":{"mode":"Hard"},"status":{"x":1}})"),
            R"({"kind":"GPUQuota","metadata":{"name":"q","labels":{"a":"b"}},)"
            R"("spec":{"mode":"Hard"}})");
  EXPECT_THAT(PastPolicyText("{"), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
