// What a shell is told, as a table; and that the manual page and the completion know every command
// and flag the parser knows, and none besides.
#include "scheduler/cli/cli_complete.h"

#include <gtest/gtest.h>

#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "scheduler/cli/cli.h"
#include "scheduler/cli/cli_commands.h"
#include "scheduler/cli/cli_man.h"

namespace tranche {
namespace THIS_FILE {

using Words = std::vector<std::string>;

class CompleteTest : public testing::Test {
 protected:
  // The candidates without help, and "FILES" where names of files serve.
  Words Ask(const Words& words) {
    Words found;
    std::istringstream lines(Complete(*app, words));
    for (std::string line; std::getline(lines, line);) {
      if (line == ":0") found.emplace_back("FILES");
      if (line[0] != ':') found.push_back(line.substr(0, line.find('\t')));
    }
    return found;
  }

  Commands commands;
  const std::unique_ptr<CLI::App> app = MakeApp("tranche", commands);
};

TEST_F(CompleteTest, CommandsFlagsValuesAndFiles) {
  struct Row {
    Words words;
    Words expected;
  };
  const Row rows[] = {
      {{"qu"}, {"queue", "quota"}},
      {{"to"}, {"top", "topology"}},
      {{"fly"}, {}},
      {{"ledger", ""}, {"verify", "report", "bill", "statement", "held", "export", "repair-clock"}},
      {{"topology", "b"}, {"best"}},
      {{"nodes", "--o"}, {"--output"}},
      {{"nodes", "-o"}, {"-o"}},
      {{"nodes", "-o", ""},
       {"table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns="}},
      {{"nodes", "--output", "j"}, {"json", "jsonpath="}},
      {{"nodes", "--output=t"}, {"--output=table"}},
      {{"nodes", "--output=json", "--out"}, {}},  // given already
      {{"nodes", "-ojson", "--out"}, {}},
      {{"nodes", "--token-file", ""}, {"FILES"}},
      {{"nodes", "--token-file="}, {"FILES"}},
      {{"nodes", "--server", ""}, {}},
      {{"nodes", "--server", "http://a", "--ca"}, {"--ca-file"}},
      {{"ledger", "report", "-o", ""}, {"table", "json", "yaml", "jsonpath="}},
      {{"ledger", "bill", "--by", "p"}, {"pod", "pool"}},
      {{"ledger", "statement", "--by", "l"}, {"label:"}},
      {{"ledger", "export", "-o", ""}, {"csv", "json"}},
      {{"ledger", "export", "--pa"}, {"--past"}},
      {{"ledger", "export", "--hash-key", ""}, {"FILES"}},
      {{"ledger", "held", "-o", ""}, {"table", "json", "yaml", "jsonpath="}},
      {{"serve", "--cluster", ""}, {"embedded", "kubernetes"}},
      {{"serve", "--objects", "a", "b"}, {"FILES"}},
      {{"serve", "--objects", "a", "--clu"}, {"--cluster"}},
      {{"topology", "show", ""}, {"FILES"}},
      {{"topology", "best", "--gpus", "4", ""}, {"FILES"}},
      {{"topology", "best", "file", "--gpus", "4", "--g"}, {"--gpus"}},  // may be given again
      {{"completion", "z"}, {"zsh"}},
      {{"completion", ""}, {"bash", "zsh", "fish", "kubectl"}},
      {{"explain", ""}, {}},
      {{"explain", "--", "--o"}, {}},
      {{"scheduler-config", "--no"}, {"--nodes", "--no-all-pods"}},
      {{"man", ""}, {"--help"}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Ask(row.words), row.expected) << testing::PrintToString(row.words);
  }
}

TEST_F(CompleteTest, HiddenCommandPrintsTheSame) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunCommandLine({kCompleteCommand, "quo"}, out, err), 0);
  EXPECT_EQ(out.str(), "quota\twhat teams may use, use, borrow and wait for\n:4\n");
}

// Every command with its path, and its flags.
void Walk(const CLI::App& app, const Words& path,
          const std::function<void(const CLI::App&, const Words&)>& visit) {
  visit(app, path);
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    Words below = path;
    below.push_back(command->get_name());
    Walk(*command, below, visit);
  }
}

TEST_F(CompleteTest, EveryCommandAndFlagIsOffered) {
  int flags = 0;
  Walk(*app, {}, [&](const CLI::App& command, const Words& path) {
    Words asked = path;
    asked.emplace_back("--");
    const Words offered = Ask(asked);
    std::set<std::string> expected;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) expected.insert("--" + name);
    }
    EXPECT_EQ(std::set<std::string>(offered.begin(), offered.end()), expected)
        << testing::PrintToString(path);
    flags += static_cast<int>(expected.size());
  });
  EXPECT_GT(flags, 100);
}

TEST_F(CompleteTest, ManualPageHasEveryCommandAndFlagAndNoneBesides) {
  const std::string page = ManualPage(*app);
  std::set<std::string> commands_in_page;
  const std::regex heading("\n\\.SS ([^\n]*)");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), heading);
       at != std::sregex_iterator(); ++at) {
    commands_in_page.insert(std::regex_replace((*at)[1].str(), std::regex("\\\\-"), "-"));
  }
  std::set<std::string> flags_in_page;
  const std::regex tag("\\\\fB((?:\\\\-){2}(?:\\\\-|[a-z])+)");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), tag); at != std::sregex_iterator();
       ++at) {
    flags_in_page.insert(std::regex_replace((*at)[1].str(), std::regex("\\\\-"), "-"));
  }
  std::set<std::string> names;
  std::set<std::string> flags;
  Walk(*app, {}, [&](const CLI::App& command, const Words& path) {
    std::string name;
    for (const std::string& word : path) name += (name.empty() ? "" : " ") + word;
    if (command.get_subcommands(std::function<bool(const CLI::App*)>()).empty()) names.insert(name);
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& flag : option->get_lnames()) flags.insert("--" + flag);
    }
  });
  EXPECT_EQ(commands_in_page, names);
  EXPECT_EQ(flags_in_page, flags);
}

TEST(ProgramNameTest, APluginOfKubectlSaysSo) {
  EXPECT_EQ(ProgramName("/usr/bin/tranche"), "tranche");
  EXPECT_EQ(ProgramName(""), "tranche");
  EXPECT_EQ(ProgramName("kubectl-tranche"), "kubectl tranche");
  EXPECT_EQ(ProgramName("/opt/bin/kubectl-tranche"), "kubectl tranche");
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunCommandLine({"explain", "--help"}, out, err, "kubectl tranche"), 0);
  EXPECT_NE(out.str().find("Usage: kubectl tranche explain"), std::string::npos) << out.str();
}

}  // namespace THIS_FILE
}  // namespace tranche
