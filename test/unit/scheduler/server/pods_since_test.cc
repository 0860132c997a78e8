// GET /api/v1/pods by labels, and what changed of pods and of nodes since an earlier answer.
#include <set>
#include <string>
#include <vector>

#include "scheduler/cli/cli.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

Json Labelled(const std::string& name, const Json& labels) {
  Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}});
  pod["metadata"]["labels"] = labels;
  return pod;
}

// "a b"
std::string NamesIn(const Json& answer, const char* member) {
  std::set<std::string> names;
  for (const Json& pod : answer.at(member)) names.insert(pod.at("name").get<std::string>());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

class PodsSince : public LiveServer {
 protected:
  void Place(const std::string& name, const Json& labels) {
    const Json pod = Labelled(name, labels);
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
  }
};

TEST_F(PodsSince, OfThoseWithTheLabels) {
  Apply(MakeNode("gpu-1", 4));
  Place("a", {{"tier", "gold"}});
  Place("b", {{"tier", "iron"}, {"old", ""}});
  Apply(Labelled("c", {{"tier", "gold"}}));
  const std::pair<const char*, const char*> rows[] = {
      {"tier%3Dgold", "a c"},
      {"tier!=gold", "b"},
      {"!old", "a c"},
      {"tier+in+(gold,iron),!old", "a c"},
      {"tier%20notin%20(gold)", "b"},
      {"nothing", ""},
  };
  for (const auto& [selector, names] : rows) {
    const Json answer = Get(std::string("/api/v1/pods?labelSelector=") + selector);
    EXPECT_EQ(NamesIn(answer, "pods"), names) << selector;
    EXPECT_EQ(answer["complete"], true);
  }
  EXPECT_EQ(Call("GET", "/api/v1/pods?labelSelector=tier+in").status, 400);
  // An edit of the labels alone.
  Apply(Labelled("c", {{"tier", "iron"}}));
  EXPECT_EQ(NamesIn(Get("/api/v1/pods?labelSelector=tier=gold"), "pods"), "a");
}

TEST_F(PodsSince, WhatChangedAndWhatIsGone) {
  Apply(MakeNode("gpu-1", 4));
  Place("a", {{"tier", "gold"}});
  Place("b", {{"tier", "gold"}});
  const Json all = Get("/api/v1/pods");
  EXPECT_EQ(all["complete"], true);
  const std::string first = all["version"];
  const auto since = [this](const std::string& version, const std::string& more = "") {
    return Get("/api/v1/pods?since=" + version + more);
  };
  const Json nothing = since(first);
  EXPECT_EQ(nothing["complete"], false);
  EXPECT_EQ(nothing["version"], first);
  EXPECT_EQ(nothing["pods"].size() + nothing["gone"].size(), 0U);
  Place("c", {{"tier", "gold"}});
  Post("/embedded/v1/delete",
       {{"kind", "Pod"}, {"namespace", "team-a"}, {"name", "a"}, {"gracePeriodSeconds", 0}});
  Post("/embedded/v1/clock", {{"advanceSeconds", 60}});
  Apply(Labelled("b", {{"tier", "iron"}}));
  const Json changed = since(first);
  EXPECT_EQ(NamesIn(changed, "gone"), "a");
  EXPECT_EQ(NamesIn(changed, "pods").find('a'), std::string::npos);
  EXPECT_NE(NamesIn(changed, "pods").find('c'), std::string::npos);
  EXPECT_NE(changed["version"], first);
  // A pod that is no longer in the part that is asked for is gone from it.
  const Json gold = since(first, "&labelSelector=tier=gold");
  EXPECT_EQ(NamesIn(gold, "pods"), "c");
  EXPECT_EQ(NamesIn(gold, "gone"), "a b");
  EXPECT_EQ(gold["total"], 1);
  // Of another process.
  const Json whole = since("0123456789abcdef-1");
  EXPECT_EQ(whole["complete"], true);
  EXPECT_EQ(NamesIn(whole, "pods"), "b c");
  EXPECT_FALSE(whole.contains("gone"));
  EXPECT_EQ(Call("GET", "/api/v1/pods?limit=1&since=" + first).status, 400);
}

TEST_F(PodsSince, NodesToo) {
  for (const char* const name : {"gpu-1", "gpu-2", "gpu-3"}) Apply(MakeNode(name, 4));
  const Json all = Get("/api/v1/nodes");
  EXPECT_EQ(all["complete"], true);
  EXPECT_EQ(NamesIn(all, "nodes"), "gpu-1 gpu-2 gpu-3");
  const std::string first = all["version"];
  const auto since = [this](const std::string& version) {
    return Get("/api/v1/nodes?since=" + version);
  };
  EXPECT_EQ(since(first), (Json{{"nodes", Json::array()},
                                {"gone", Json::array()},
                                {"version", first},
                                {"complete", false}}));
  Place("a", Json::object());
  Post("/embedded/v1/delete", {{"kind", "Node"}, {"name", "gpu-2"}});
  const Json changed = since(first);
  EXPECT_EQ(NamesIn(changed, "nodes"), "gpu-1");
  EXPECT_EQ(changed["gone"], Json::array({"gpu-2"}));
  Apply(MakeNode("gpu-2", 2));
  const Json back = since(changed["version"]);
  EXPECT_EQ(NamesIn(back, "nodes"), "gpu-2");
  EXPECT_EQ(NamesIn(since(first), "nodes"), "gpu-1 gpu-2");
  EXPECT_EQ(since(first)["gone"], Json::array());
  const Json whole = since("0123456789abcdef-1");
  EXPECT_EQ(whole["complete"], true);
  EXPECT_EQ(whole["nodes"].size(), 3U);
  EXPECT_FALSE(whole.contains("gone"));
}

TEST_F(PodsSince, TheCommandLineTakesLabels) {
  Apply(MakeNode("gpu-1", 4));
  Place("a", {{"tier", "gold"}});
  Place("b", {{"tier", "iron"}});
  Json member = Labelled("c", {{"tier", "iron"}});
  member["metadata"]["annotations"] = {{"tranche.dev/gang", "run"}, {"tranche.dev/gang-size", "2"}};
  Apply(member);
  const struct {
    std::vector<std::string> arguments;
    const char* out;
  } rows[] = {
      {{"pods", "-l", "tier=gold"}, "team-a/a\n"},
      {{"pods", "--selector", "tier in (gold, iron)"}, "team-a/a\nteam-a/b\nteam-a/c\n"},
      {{"pods", "-n", "team-a", "-l", "tier!=gold"}, "team-a/b\nteam-a/c\n"},
      {{"pods", "-n", "team-b", "-l", "tier!=gold"}, ""},
      {{"queue", "-A", "-l", "tier"}, "team-a/c\n"},
      {{"queue", "-l", "tier=gold"}, ""},
      {{"gangs", "-l", "tier=iron"}, "team-a/run\n"},
      {{"gangs", "-l", "tier=gold"}, ""},
      {{"events", "-l", "tier=gold"}, "team-a/a\nteam-a/a\n"},
  };
  for (const auto& row : rows) {
    std::vector<std::string> line = row.arguments;
    line.insert(line.end(), {"-o", "name", "--server", url()});
    std::ostringstream out, err;
    EXPECT_EQ(RunCommandLine(line, out, err), 0) << err.str();
    EXPECT_EQ(out.str(), row.out) << row.arguments[0] << " " << row.arguments.back();
  }
  std::ostringstream out, err;
  EXPECT_EQ(RunCommandLine({"pods", "-l", "tier in", "--server", url()}, out, err), 2);
  EXPECT_EQ(err.str(), "tranche: -l: expected ( behind in and notin at byte 7, found the end\n");
}

}  // namespace THIS_FILE
}  // namespace tranche
