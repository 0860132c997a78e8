// What resource claims use counts for their team, with those who check quotas, evictions and
// liveness.
#include <gtest/gtest.h>

#include "test/sim/check/scene.h"

namespace tranche::sim {
namespace THIS_FILE {

// org lends; red owns two GPUs and may borrow one, blue owns two. Claims have cards of n2.
void Teams(Scene& scene) {
  scene.StockNode("n1", 8).Slice("n2", 8);
  scene.Quota("org", "", 0).Quota("red", "org", 2, 1).Quota("blue", "org", 2);
  scene.Namespace("red", "red").Namespace("blue", "blue");
  scene.Class("low", 1, "Always").Class("high", 3, "Always");
}

TEST(SimClaimUses, CountWhereAPodIsAdmitted) {
  struct Row {
    const char* what;
    const char* claim;
    double from, to;  // of its devices; the pod gets three GPUs at 100
    bool wrong;
  };
  const Row kRows[] = {{"all the while", "red/claim", 10, 200, true},
                       {"of another team, which lends nothing then", "blue/claim", 10, 200, true},
                       {"given back before", "red/claim", 10, 90, false},
                       {"given back a moment ago", "red/claim", 10, 99, false},
                       {"since a moment ago", "red/claim", 99, 200, false},
                       {"later", "red/claim", 110, 200, false}};
  for (const Row& row : kRows) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/one", 3);
    const int gpus = std::string(row.claim) == "red/claim" ? 1 : 2;
    const auto until = [&](double time) {
      if (row.from <= time) scene.At(row.from).Claim(row.claim, "n2", gpus);
      if (row.to <= time) scene.At(row.to).Claim(row.claim, "n2", 0);
    };
    until(100);
    scene.At(100).Bind("red/one", "n1", Cards(0, 3), "red");
    if (row.from > 100) until(300);
    EXPECT_EQ(scene.Found().contains("quotas"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

// It stays with the quota that its namespace was under; whose that is now has it or not.
TEST(SimClaimUses, AreNotJudgedWhereTheNamespaceHasMoved) {
  for (const double moved : {5.0, 50.0}) {
    Scene scene;
    Teams(scene);
    scene.Namespace("red", "blue").Pod("red/one", 3);
    if (moved < 10) scene.At(moved).Namespace("red", "red");
    scene.At(200).Claim("red/claim", "n2", 1);
    if (moved > 10) scene.At(200 + moved).Namespace("red", "red");
    scene.At(400).Bind("red/one", "n1", Cards(0, 3), "red");
    EXPECT_EQ(scene.Found().contains("quotas"), moved < 10) << scene.Texts();
  }
}

TEST(SimClaimUses, MayMakeWhatCameLaterBorrowed) {
  for (const int claimed : {0, 1, 2}) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/new", 1).Pod("blue/wants", 2);
    scene.At(10).Claim("red/claim", "n2", claimed);
    scene.At(20).Bind("red/new", "n1", Cards(2, 1), "red");
    scene.At(100).Reclaim("r1", "R5", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), claimed < 2) << claimed << scene.Texts();
  }
}

// The claim's first user is what it is ranked by.
TEST(SimClaimUses, AreOfTheClassOfTheirUser) {
  for (const char* const gpu_class : {"low", "high"}) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/user", 0).Pod("red/new", 1).Pod("blue/wants", 2);
    scene.Edit("pods", "red/user", "/spec/priorityClassName", gpu_class);
    scene.At(10).Bind("red/new", "n1", Cards(2, 1), "red");
    scene.At(20).Write(
        "resourceclaims", "red/claim",
        {{"metadata", {{"uid", "c-red/claim"}}},
         {"status",
          {{"allocation",
            {{"devices",
              {{"results", Json::array({{{"pool", "n2"}, {"device", "gpu-0"}},
                                        {{"pool", "n2"}, {"device", "gpu-1"}}})}}}}},
           {"reservedFor", Json::array({{{"resource", "pods"}, {"uid", "u-red/user"}}})}}}});
    scene.At(100).Reclaim("r1", "R5", "blue", "blue/wants", "n1", {"red/new"}).Evict("red/new");
    EXPECT_EQ(scene.Found().contains("evictions"), std::string(gpu_class) == "low")
        << gpu_class << scene.Texts();
  }
}

TEST(SimClaimUses, KeepATeamsPodsWaiting) {
  const Ask ask = [](const std::string&) -> std::optional<Json> {
    return Json{{"pods", Json::array()}, {"nodes", Json::array()}};
  };
  for (const int claimed : {0, 1, 2}) {
    Scene scene;
    Teams(scene);
    scene.Pod("red/waits", 1).At(10).Claim("red/claim", "n2", claimed).At(20).Quiet().At(620);
    EXPECT_EQ(scene.Found(ask).contains("liveness"), claimed < 2) << claimed << scene.Texts();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
