// Nodes of tranche-node, as the checkers judge them: what fits there, and what containers are
// given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/sim/check/fit.h"
#include "test/sim/check/scene.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim::check {
namespace THIS_FILE {

// Two cards of 80,000 MiB, which ten containers may share each, or none.
Json Node(int slots, int dead = 0) {
  Machine machine;
  machine.name = "n1";
  machine.kind = NodeKind::kAgent;
  machine.product = "NVIDIA-H100-80GB-HBM3";
  machine.mib = 80'000;
  machine.cards = {"GPU-0", "GPU-1"};
  machine.slots = slots;
  Json node = NodeObject(machine);
  node["metadata"]["annotations"]["tranche.dev/agent-register"] = TrancheRegister(machine, dead);
  return node;
}

Json PodOf(const char* name, int gpus, const std::string& fraction) {
  Json notes = Json::object();
  if (!fraction.empty()) notes["tranche.dev/gpu-fraction"] = fraction;
  return {{"metadata",
           {{"namespace", "a"}, {"name", name}, {"uid", name}, {"annotations", std::move(notes)}}},
          {"spec",
           {{"containers",
             Json::array(
                 {{{"name", "main"},
                   {"resources", {{"limits", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}})}}},
          {"status", {{"phase", "Pending"}}}};
}

TEST(SimFit, PartsAndWholeCardsOfAnAgentsNode) {
  const struct {
    const char* what;
    int slots, dead;
    int gpus;              // that the pod asks for
    const char* fraction;  // of each; empty: whole
    int64_t held;          // thousandths of GPU-0 that another pod has
    Fit fit;
  } rows[] = {
      {"a card of two", 0, 0, 1, "", 1000, Fit::kYes},
      {"both, one is held", 0, 0, 2, "", 1000, Fit::kFull},
      {"three of two", 0, 0, 3, "", 0, Fit::kNever},
      {"a part where cards are given whole", 0, 0, 1, "0.5", 0, Fit::kNever},
      {"a part beside another", 10, 1, 1, "0.5", 0, Fit::kYes},
      {"a card beside a part", 10, 0, 1, "", 100, Fit::kYes},
      {"both cards, a part is held", 10, 0, 2, "", 100, Fit::kFull},
      {"a card, the other has fallen off", 10, 1, 2, "", 0, Fit::kNever},
  };
  for (const auto& row : rows) {
    Truth truth;
    const auto write = [&](const char* resource, const char* key, Json before, Json after) {
      Happening happening{.kind = Happening::Kind::kWritten, .who = "tranche-0/1"};
      happening.resource = resource;
      happening.key = key;
      happening.before = std::move(before);
      happening.after = std::move(after);
      truth.Hear(happening);
    };
    write("nodes", "n1", Json(), Node(row.slots, row.dead));
    if (row.held > 0) {
      const Json before = PodOf("other", 1, row.held < 1000 ? "0.1" : "");
      Json bound = before;
      bound["spec"]["nodeName"] = "n1";
      const Json device = {
          {"index", 0}, {"uuid", "GPU-0"}, {"milli", row.held}, {"mib", 80 * row.held}};
      bound["metadata"]["annotations"]["tranche.dev/allocation"] =
          Json({{"v", 1},
                {"epoch", 1},
                {"leaf", ""},
                {"knowledge", "exact"},
                {"containers", {{{"name", "main"}, {"devices", Json::array({device})}}}}})
              .dump();
      write("pods", "a/other", Json(), before);
      write("pods", "a/other", before, bound);
    }
    write("pods", "a/asks", Json(), PodOf("asks", row.gpus, row.fraction));
    EXPECT_EQ(FitOn(truth, *truth.pod_of("a/asks"), "n1"), row.fit) << row.what;
  }
}

TEST(SimDevices, AnAgentGivesWhatIsRecorded) {
  const struct {
    const char* what;
    const char* given;
    bool edited;  // the record, by a user, since
    bool wrong;
  } rows[] = {{"the recorded card", "GPU-0", false, false},
              {"another one", "GPU-1", false, true},
              {"another one, as the record says by now", "GPU-1", true, false}};
  for (const auto& row : rows) {
    Scene scene;
    scene.Write("nodes", "n1", Node(0)).Pod("a/one", 1).At(1).Bind("a/one", "n1", {{"GPU-0"}});
    if (row.edited) {
      scene.Edit("pods", "a/one", "/metadata/annotations/tranche.dev~1allocation", "{}");
    }
    Happening granted{.kind = Happening::Kind::kGranted, .who = "kubelet/n1", .key = "a/one"};
    granted.resource = "pods";
    granted.text = "u-a/one";
    granted.after = {{"node", "n1"},
                     {"devices", Json::array({{{"uuid", row.given}, {"milli", 1000}}})}};
    scene.At(2).Say(std::move(granted));
    EXPECT_EQ(scene.Found().contains("devices"), row.wrong) << row.what << "\n" << scene.Texts();
  }
}

// Of pods whose records a user has changed the agent knows no more after it has begun anew.
TEST(SimDevices, PartsOfACardAddUpButForThoseThatWereEdited) {
  for (const bool edited : {false, true}) {
    Scene scene;
    scene.Write("nodes", "n1", Node(10));
    const auto given = [&scene](const char* pod, int milli) {
      Happening granted{.kind = Happening::Kind::kGranted, .who = "kubelet/n1", .key = pod};
      granted.resource = "pods";
      granted.text = std::string("u-") + pod;
      granted.after = {{"node", "n1"},
                       {"devices", Json::array({{{"uuid", "GPU-0"}, {"milli", milli}}})}};
      scene.Say(std::move(granted));
    };
    scene.Pod("a/one", 1).At(1).Bind("a/one", "n1", {{"GPU-0", 700}});
    given("a/one", 700);
    if (edited) {
      scene.At(2).Edit("pods", "a/one", "/metadata/annotations/tranche.dev~1allocation", "{}");
    }
    scene.Pod("a/two", 1).At(3).Bind("a/two", "n1", {{"GPU-0", 500}});
    given("a/two", 500);
    EXPECT_EQ(scene.Found().contains("devices"), !edited) << scene.Texts();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim::check
