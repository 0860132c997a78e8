// The runner itself: what it reads, and that a scenario which is not as it says fails.
#include "test/scenarios/runner/runner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "test/scenarios/runner/forms.h"

namespace tranche::scenario {
namespace {

constexpr const char* kHead = "scenario Of a test\nwhy To be read\n";

std::string FileText(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {(std::istreambuf_iterator<char>(stream)), {}};
}

// "LINE expected | got" of the failure; "passed".
std::string Told(const std::string& body) {
  const Outcome outcome = RunScenario(kHead + body);
  if (!outcome.failure) return "passed";
  return std::to_string(outcome.failure->at.line) + " " + outcome.failure->problem.expected +
         " | " + outcome.failure->problem.got;
}

TEST(ScenarioWords, SpansAreReadAndWrittenAlike) {
  for (const char* text : {"0s", "90s", "30m", "1h30m", "2d", "500ms", "1d2h3m4s"}) {
    const std::optional<Millis> span = ParseSpan(text);
    ASSERT_TRUE(span) << text;
    EXPECT_EQ(ParseSpan(FormatSpan(*span)), span) << text;
  }
  EXPECT_EQ(FormatSpan(Millis(5'400'000)), "1h30m");
  for (const char* text : {"", "5", "m", "5x", "1h m", "-1h", "1.5h", "99999999999h"}) {
    EXPECT_FALSE(ParseSpan(text)) << text;
  }
}

TEST(ScenarioWords, AmountsHaveAtMostThreeDecimals) {
  EXPECT_EQ(ParseThousandths("8"), 8000);
  EXPECT_EQ(ParseThousandths("0.5"), 500);
  EXPECT_EQ(ParseThousandths("2.125"), 2125);
  for (const char* text : {"", ".5", "1.", "1.2345", "-1", "x", "1,5"}) {
    EXPECT_FALSE(ParseThousandths(text)) << text;
  }
  EXPECT_EQ(FormatThousandths(2125), "2.125");
  EXPECT_EQ(FormatThousandths(-500), "-0.5");
  EXPECT_EQ(FormatThousandths(3000), "3");
}

TEST(ScenarioScript, LinesAreVerbsWordsAndOptions) {
  Script script;
  const auto error = ParseScript(
      "# told first\nscenario A name\nwhy  A reason\n\nnode a b  gpus=2 # two of them\n"
      "expect p explained by \"a = b\" model=\"x y\"\n",
      script);
  ASSERT_FALSE(error) << error->problem.expected;
  EXPECT_EQ(script.name, "A name");
  EXPECT_EQ(script.why, "A reason");
  ASSERT_EQ(script.statements.size(), 2U);
  const Statement& node = script.statements[0];
  EXPECT_EQ(node.line, 5);
  EXPECT_EQ(node.verb, "node");
  EXPECT_EQ(Join(node.words), "a b");
  EXPECT_EQ(node.options.at(0), (std::pair<std::string, std::string>("gpus", "2")));
  const Statement& expect = script.statements[1];
  EXPECT_EQ(expect.words.back(), "a = b");
  EXPECT_EQ(expect.options.at(0), (std::pair<std::string, std::string>("model", "x y")));
}

TEST(ScenarioScript, TheHeaderComesFirstAndOnce) {
  for (const char* text : {"", "node a\n", "scenario x\n", "scenario x\nwhy y\nscenario z\n",
                           "scenario\n", "scenario x\nwhy\n"}) {
    Script script;
    EXPECT_TRUE(ParseScript(text, script)) << text;
  }
}

TEST(ScenarioForms, CapitalsCapture) {
  EXPECT_EQ(Match("bind POD on NODE", {"bind", "p", "on", "a"}),
            (std::vector<std::string>{"p", "a"}));
  EXPECT_EQ(Match("POD fits on NODE...", {"p", "fits", "on", "a", "b"}),
            (std::vector<std::string>{"p", "a", "b"}));
  EXPECT_FALSE(Match("bind POD on NODE", {"bind", "p", "on"}));
  EXPECT_FALSE(Match("bind POD on NODE", {"bind", "p", "on", "a", "b"}));
  EXPECT_FALSE(Match("POD fits on NODE...", {"p", "fits", "on"}));
  EXPECT_FALSE(Match("plan", {"plans"}));
}

TEST(ScenarioRunner, WrongOptionsAreErrors) {
  EXPECT_EQ(Told("node a gpus=two\n"), "3 gpus=a whole number | gpus=two");
  EXPECT_EQ(Told("node a gpus=1 gpus=2\n"), "3 each option once | two of gpus");
  EXPECT_EQ(Told("policy strategy=Best\n"),
            "3 strategy=Fragmentation|BestFit|Spread | strategy=Best");
  EXPECT_EQ(Told("plan now=yes\n"), "3 no option here | now=yes");
  EXPECT_EQ(Told("advance soon\n"), "3 a time as 90s, 30m or 1h30m | soon");
  EXPECT_EQ(Told("node a\npod p gpus=1\nbind p on a\nexpect node a free=x\n"),
            "6 free=a number with at most three decimals | free=x");
}

TEST(ScenarioRunner, ASecondPodOfANameIsAnError) {
  EXPECT_EQ(Told("pod p gpus=1\npod p gpus=2\n"),
            "4 a pod of another name | p, which is there already");
}

TEST(ScenarioRunner, NothingIsKnownOfAPodThatWasNotAskedAbout) {
  EXPECT_EQ(Told("node a\npod p gpus=1\nexpect p fits on a\n"),
            "5 a step `filter p` before | none");
}

// Each says in front of the line that fails what the runner must say: the beginning of what was
// expected, and the beginning of what was found.
TEST(ScenarioRunner, WrongScenariosFailAsTheySay) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TRANCHE_WRONG_SCENARIOS)) {
    const std::string text = FileText(entry.path());
    const std::vector<std::string> lines = Split(text, '\n');
    const Outcome outcome = RunScenario(text);
    ASSERT_TRUE(outcome.failure) << entry.path() << " passed";
    const ParseError& failure = *outcome.failure;
    ASSERT_GT(failure.at.line, 2) << entry.path() << FailureText("", failure);
    const auto said = [&](int back, const std::string& mark) {
      const std::string& line = lines[static_cast<std::size_t>(failure.at.line - 1 - back)];
      return line.starts_with(mark) ? line.substr(mark.size()) : "no line " + mark;
    };
    EXPECT_TRUE(failure.problem.expected.starts_with(said(2, "#! expected: ")))
        << entry.path() << ": " << FailureText("", failure);
    EXPECT_TRUE(failure.problem.got.starts_with(said(1, "#! got: ")))
        << entry.path() << ": " << FailureText("", failure);
    ++files;
  }
  EXPECT_GE(files, 10);
}

TEST(ScenarioRunner, AFailureNamesItsPlace) {
  const ParseError failure{{7, "expect p fits on b", "", {}, {}}, {"fits on b", "fits on a"}};
  EXPECT_EQ(FailureText("x.scn", failure),
            "FAILED x.scn:7: expect p fits on b\n  expected: fits on b\n  got:      fits on a");
}

}  // namespace
}  // namespace tranche::scenario
