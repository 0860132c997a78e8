// Shrinking on a toy world, files of seeds, and every file of test/sim/seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "test/fakes/places.h"
#include "test/sim/tool/run.h"
#include "test/sim/tool/seed_file.h"
#include "test/sim/tool/seeds.h"
#include "test/sim/tool/shrink.h"
#include "test/sim/tool/story.h"

namespace tranche::sim {
namespace THIS_FILE {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

// A hundred arrivals and crashes by chance; it fails where all of `needed` were done.
class ToyWorld {
 public:
  explicit ToyWorld(std::set<Script::Id> needed) : needed_(std::move(needed)) {}

  Outcome operator()(const RunOptions& options) {
    ++runs_;
    Script script(options.seed, options.left_out);
    for (int i = 0; i < 100; ++i) {
      script.Act("arrival");
      script.ActByChance("crash", 2'000);
    }
    Outcome outcome;
    outcome.done = script.done();
    outcome.digest = outcome.done.size();
    const auto done = [&](const Script::Id& id) {
      return std::ranges::find(outcome.done, id) != outcome.done.end();
    };
    if (std::ranges::all_of(needed_, done)) outcome.findings.push_back({"planted", "", "all", {}});
    if (!done("arrival#1")) outcome.findings.push_back({"other", "", "another fault", {}});
    return outcome;
  }
  int runs() const { return runs_; }

 private:
  std::set<Script::Id> needed_;
  int runs_ = 0;
};

TEST(SimShrink, WhatIsNeededIsLeft) {
  const std::set<Script::Id> kRows[] = {
      {},
      {"arrival#1"},
      {"arrival#100"},
      {"arrival#17", "crash#3"},
      {"arrival#2", "arrival#50", "arrival#51", "crash#1", "crash#9"},
  };
  for (const std::set<Script::Id>& needed : kRows) {
    ToyWorld world(needed);
    RunOptions options;
    options.seed = 7;
    const Outcome failed = world(options);
    ASSERT_EQ(failed.findings.front().checker, "planted");
    const Shrunk shrunk = Shrink(options, failed, std::ref(world), 1'000, {});
    EXPECT_TRUE(shrunk.finished || needed.empty());
    EXPECT_THAT(shrunk.outcome.done, UnorderedElementsAreArray(needed));
    EXPECT_LE(shrunk.tries, 200);
  }
}

TEST(SimShrink, TriesAreBounded) {
  ToyWorld world({"arrival#3", "arrival#60"});
  RunOptions options;
  const Outcome failed = world(options);
  const Shrunk shrunk = Shrink(options, failed, std::ref(world), 3, {});
  EXPECT_LE(shrunk.tries, 3);
  EXPECT_FALSE(shrunk.finished);
  EXPECT_EQ(shrunk.outcome.findings.front().checker, "planted");
}

TEST(SimSeedFile, IsReadAsItWasWritten) {
  SeedFile file{"a device was given twice", "devices", {}};
  file.options.seed = 18'000'000'000'000'000'000ULL;
  file.options.lives = 40;
  file.options.faults = "crash,disk";
  for (int i = 0; i < 40; ++i) file.options.left_out.insert("arrival#" + std::to_string(i));
  std::string problem;
  const std::optional<SeedFile> read = ReadSeedFile(WriteSeedFile(file), problem);
  ASSERT_TRUE(read) << problem;
  EXPECT_EQ(read->why, file.why);
  EXPECT_EQ(read->checker, file.checker);
  EXPECT_EQ(read->options.seed, file.options.seed);
  EXPECT_EQ(read->options.lives, file.options.lives);
  EXPECT_EQ(read->options.faults, file.options.faults);
  EXPECT_EQ(read->options.left_out, file.options.left_out);
}

TEST(SimSeedFile, SaysWhatIsWrong) {
  std::string problem;
  EXPECT_FALSE(ReadSeedFile("lives 4\n", problem));
  EXPECT_THAT(problem, HasSubstr("expected a line with a seed"));
  EXPECT_FALSE(ReadSeedFile("seed 4\nlives many\n", problem));
  EXPECT_THAT(problem, HasSubstr("in line 2"));
}

TEST(SimSeeds, FailuresAndUnequalDigestsAreTold) {
  int runs = 0;
  const Runner run = [&runs](const RunOptions& options) {
    Outcome outcome;
    outcome.lives = options.lives;
    outcome.digest = options.seed == 3 ? static_cast<uint64_t>(++runs) : options.seed;
    if (options.seed == 2) outcome.findings = {{"devices", "a/b", "twice", {}}};
    return outcome;
  };
  SeedsOptions options;
  options.last = 4;
  options.lives = 10;
  options.repeat = 2;
  const Json json = ToJson(RunSeeds(options, run));
  EXPECT_EQ(json["seeds"], 4);
  EXPECT_EQ(json["lives"], 40);
  ASSERT_EQ(json["failed"].size(), 2U);
  EXPECT_EQ(json["failed"][0]["seed"], 2);
  EXPECT_EQ(json["failed"][0]["checker"], "devices");
  EXPECT_EQ(json["failed"][1]["checker"], "digest");
  EXPECT_EQ(json["digests"]["4"], "0000000000000004");
  options.skip = {"devices"};
  options.repeat = 1;
  EXPECT_TRUE(RunSeeds(options, run).failed.empty());
}

TEST(SimStory, TellsWhatConcernsTheFinding) {
  Story story;
  const Json pod = {{"metadata", {{"name", "b"}}}, {"spec", {{"nodeName", "n1"}}}};
  story.Hear({.kind = Happening::Kind::kWritten,
              .at = SimTime(1'500'000),
              .who = "user",
              .resource = "pods",
              .key = "a/b",
              .after = pod});
  story.Hear({.kind = Happening::Kind::kWritten,
              .at = SimTime(2'000'000),
              .who = "user",
              .resource = "pods",
              .key = "a/other",
              .after = {{"spec", Json::object()}}});
  std::ostringstream out;
  story.Print(out, {"a/b"}, false, {{"devices", "a/b", "twice", SimTime(1'700'000)}});
  EXPECT_EQ(out.str(),
            "    1.500  user      made pods a/b node n1\n"
            "    1.700  CHECKER   >>> devices: twice\n");
}

// Runs that failed once, and must not again.
TEST(SimSeeds, WhatFailedOnceIsMended) {
  const std::filesystem::path folder = fakes::SourceFolder() + "/test/sim/seeds";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".sim") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    std::string problem;
    const std::optional<SeedFile> file = ReadSeedFile(text.str(), problem);
    ASSERT_TRUE(file) << entry.path() << ": " << problem;
    for (const Finding& one : RunSeed(file->options).findings) {
      ADD_FAILURE() << entry.path().filename() << ": " << one.checker << " " << one.about << ": "
                    << one.text << "\nonce: " << file->why;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
