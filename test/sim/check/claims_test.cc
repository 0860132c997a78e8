// The checker of resource claims, over files that the real ledger wrote.
#include <gtest/gtest.h>

#include "test/sim/check/scene.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche::sim {
namespace THIS_FILE {

Instant Second(double seconds) {
  return Instant(std::chrono::floor<Millis>(WallOf(SimTime(int64_t(seconds * 1e6)))));
}

Json ClaimObject(const std::string& name, const std::string& device) {
  Json claim = {{"metadata", {{"name", name}, {"namespace", "a"}, {"uid", "c-" + name}}},
                {"spec",
                 {{"devices",
                   {{"requests",
                     Json::array({{{"name", "gpu"},
                                   {"exactly",
                                    {{"deviceClassName", "gpu.nvidia.com"}, {"count", 1}}}}})}}}}}};
  if (!device.empty()) {
    claim["status"]["allocation"]["devices"]["results"] =
        Json::array({{{"driver", "gpu.nvidia.com"}, {"pool", "n1"}, {"device", device}}});
  }
  return claim;
}

class SimClaims : public ledger::LedgerTest {
 protected:
  // The claim has a device from 10 s to 100 s.
  static Scene& Life(Scene& scene) {
    scene.Leads(kLeader, 1).Write("resourceclaims", "a/one", ClaimObject("one", ""));
    scene.At(10).Write("resourceclaims", "a/one", ClaimObject("one", "gpu-0"));
    scene.At(100).Write("resourceclaims", "a/one", ClaimObject("one", ""));
    return scene.At(600);
  }
  void Restart() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
};

TEST_F(SimClaims, AreChargedFromTheirAllocationToItsEnd) {
  struct Row {
    const char* what;
    const char* uid;
    double from, to;  // to 0: open
    bool wrong;
  };
  const Row kRows[] = {
      {"to the second", "claim/c-one", 10.5, 100.5, false},
      {"when the news came", "claim/c-one", 12.5, 102.5, false},
      {"before it was allocated", "claim/c-one", 8, 100, true},
      {"too late", "claim/c-one", 14, 100, true},
      {"ended too early", "claim/c-one", 10, 98, true},
      {"ended too late", "claim/c-one", 10, 104, true},
      {"never ended", "claim/c-one", 10, 0, true},
      {"nothing", "claim/c-other", 10, 100, true},
  };
  for (const Row& row : kRows) {
    Restart();
    std::vector<MeterEvent> events = {ledger::Open(row.uid, Second(row.from))};
    if (row.to > 0) events.push_back(ledger::Close(row.uid, Second(row.to)));
    WriteFile(std::move(events));
    Scene scene;
    EXPECT_EQ(Life(scene).Found({}, {options_.path}).contains("claims"), row.wrong)
        << row.what << "\n"
        << scene.Texts();
  }
}

TEST_F(SimClaims, WhoWasLostBeforeTheNewsCameCouldNotCharge) {
  for (const double lost : {11.0, 50.0}) {
    Restart();
    WriteFile({ledger::Open("claim/c-one", Second(200.5))});
    Scene scene;
    scene.Leads(kLeader, 1).Write("resourceclaims", "a/one", ClaimObject("one", ""));
    scene.At(10).Write("resourceclaims", "a/one", ClaimObject("one", "gpu-0"));
    scene.At(lost).Say({.kind = Happening::Kind::kLost, .who = kLeader});
    scene.At(200).Leads("tranche-1/1", 2).At(600);
    EXPECT_EQ(scene.Found({}, {options_.path}).contains("claims"), lost > 20) << scene.Texts();
  }
}

TEST_F(SimClaims, AClaimWithoutDevicesAndItsPodAreChargedNothing) {
  for (const char* const uid : {"claim/c-one", "u-a/pod"}) {
    Restart();
    WriteFile({ledger::Open(uid, Second(10)), ledger::Close(uid, Second(60))});
    Scene scene;
    scene.Leads(kLeader, 1).Write("resourceclaims", "a/one", ClaimObject("one", ""));
    scene.Write(
        "pods", "a/pod",
        {{"metadata", {{"name", "pod"}, {"namespace", "a"}, {"uid", "u-a/pod"}}},
         {"spec",
          {{"containers", Json::array()},
           {"resourceClaims", Json::array({{{"name", "gpu"}, {"resourceClaimName", "one"}}})}}}});
    EXPECT_TRUE(scene.At(600).Found({}, {options_.path}).contains("claims")) << uid;
  }
}

TEST(SimClaimLaws, HoldWithoutALedger) {
  struct Row {
    const char* what;
    const char* device;
    const char* who;
    bool wrong;
  };
  const Row kRows[] = {{"another device", "gpu-1", "kube-gpu-scheduler/1", false},
                       {"a device given twice", "gpu-0", "kube-gpu-scheduler/1", true},
                       {"we allocate", "gpu-1", kLeader, true}};
  for (const Row& row : kRows) {
    Scene scene;
    scene.Write("resourceclaims", "a/one", ClaimObject("one", "gpu-0"));
    scene.Write("resourceclaims", "a/two", ClaimObject("two", row.device), row.who);
    EXPECT_EQ(scene.Found().contains("claims"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

TEST(SimClaimLaws, WhoFitsRunsWhenAllIsQuiet) {
  for (const char* const taken : {"", "gpu-0"}) {
    Scene scene;
    scene.Write("nodes", "n1", {{"metadata", {{"name", "n1"}}}, {"spec", Json::object()}});
    scene.Write(
        "resourceslices", "n1-0",
        {{"metadata", {{"name", "n1-0"}}},
         {"spec",
          {{"nodeName", "n1"},
           {"devices", Json::array({{{"name", "gpu-0"},
                                     {"attributes", {{"type", {{"string", "gpu"}}}}}}})}}}});
    scene.Write("resourceclaims", "a/one", ClaimObject("one", ""));
    scene.Write("resourceclaims", "a/two", ClaimObject("two", taken));
    scene.Write("pods", "a/pod",
                {{"metadata", {{"name", "pod"}, {"namespace", "a"}, {"uid", "u-a/pod"}}},
                 {"spec",
                  {{"containers", Json::array()},
                   {"resourceClaims",
                    Json::array({{{"name", "gpu"}, {"resourceClaimTemplateName", "t"}}})}}},
                 {"status",
                  {{"resourceClaimStatuses",
                    Json::array({{{"name", "gpu"}, {"resourceClaimName", "one"}}})}}}});
    scene.At(10).Quiet().At(610);
    EXPECT_EQ(scene.Found().contains("claims"), std::string(taken).empty()) << scene.Texts();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
