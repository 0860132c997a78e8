#include "scheduler/facts/interruption.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

TEST(InterruptionNoticeTest, WhichTaintsSayThatAMachineGoes) {
  struct Row {
    std::vector<std::string> taints;
    const char* notice;  // "": none
    bool drains;
  };
  const std::string itn = "aws-node-termination-handler/spot-itn";
  const std::string rebalance = "aws-node-termination-handler/rebalance-recommendation";
  const Row kRows[] = {
      {{}, "", false},
      {{"nvidia.com/gpu", "kubernetes.azure.com/scalesetpriority"}, "", false},
      {{"nvidia.com/gpu", itn}, itn.c_str(), true},
      {{rebalance}, rebalance.c_str(), false},
      {{rebalance, itn}, itn.c_str(), true},
      {{"karpenter.sh/disrupted"}, "karpenter.sh/disrupted", false},
      {{"ToBeDeletedByClusterAutoscaler"}, "ToBeDeletedByClusterAutoscaler", false},
      {{"cloud.google.com/impending-node-termination"},
       "cloud.google.com/impending-node-termination",
       true},
      {{"tranche.dev/interruption"}, "tranche.dev/interruption", true},
      {{"tranche.dev/interruptions"}, "", false},
  };
  for (const Row& row : kRows) {
    std::vector<Taint> taints;
    for (const std::string& key : row.taints) taints.push_back({key, "", "NoSchedule"});
    const InterruptionNotice* const found = FindNotice(taints);
    EXPECT_EQ(found == nullptr ? "" : found->taint, row.notice);
    EXPECT_EQ(found != nullptr && found->drains, row.drains) << row.notice;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
