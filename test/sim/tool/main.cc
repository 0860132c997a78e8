// tranche-sim: the whole product in a simulated world, from many seeds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "test/sim/tool/run.h"
#include "test/sim/tool/seed_file.h"
#include "test/sim/tool/seeds.h"
#include "test/sim/tool/story.h"
#include "topology/base/mark.h"

namespace tranche::sim {
namespace {

constexpr int kUsage = 2;

int Usage(const std::string& problem) {
  std::cerr << "tranche-sim: " << problem << "\n";
  return kUsage;
}

// "7" or "1..1000".
bool ReadSeeds(const std::string& text, SeedsOptions& options) {
  const auto read = [](std::string_view part, uint64_t& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    options.last = 0;
    if (!read(text, options.first)) return false;
    options.last = options.first;
    return true;
  }
  const std::string_view all(text);
  return read(all.substr(0, dots), options.first) && read(all.substr(dots + 2), options.last) &&
         options.first <= options.last;
}

// What is told of a story: all that happened, and all of each object.
struct Telling {
  bool all = false;
  bool full = false;
};

int TellStory(const RunOptions& asked, Telling telling) {
  Story story(telling.full ? std::string::npos : Story::kUsual);
  RunOptions options = asked;
  options.listener = [&story](const Happening& happening) { story.Hear(happening); };
  const Outcome outcome = RunSeed(options);
  if (!outcome.problem.empty()) return Usage(outcome.problem);
  std::set<std::string> about;
  for (const Finding& one : outcome.findings) about.insert(one.about);
  const bool all = telling.all || about.empty() || about.contains("");
  story.Print(std::cout, about, all, outcome.findings);
  std::cout << fmt::format("{} lives, {} findings, digest {:016x}\n", outcome.lives,
                           outcome.findings.size(), outcome.digest);
  return outcome.findings.empty() ? 0 : 1;
}

int ReplayFile(const std::string& path, Telling telling, const std::string& log) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::string problem = in ? "" : "expected a file";
  std::optional<SeedFile> file;
  if (in) file = ReadSeedFile(text.str(), problem);
  if (!file) return Usage(fmt::format("{}: {}", path, problem));
  file->options.log = log;
  if (telling.all || telling.full) return TellStory(file->options, telling);
  const Outcome outcome = RunSeed(file->options);
  for (const Finding& one : outcome.findings) {
    std::cout << fmt::format("{}: {} {}\n", one.checker, one.about, one.text);
  }
  std::cout << (outcome.findings.empty() ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n");
  return outcome.findings.empty() ? 0 : 1;
}

// Adds the names of the marks that were reached, as tests do (test/marks).
void WriteMarks(const std::string& path) {
  std::ofstream out(path, std::ios::app);
  for (const CoverageMark* mark = CoverageMark::Last(); mark != nullptr; mark = mark->next()) {
    out << mark->name() << "\n";
  }
}

int Main(int argc, char** argv) {
  CLI::App app{"The whole product in a simulated, failing world, from many seeds."};
  SeedsOptions options;
  std::string seeds = "1..10", out, story, replay, marks;
  std::vector<std::string> skip;
  std::string log = "off";
  int seconds = 0;
  Telling telling;
  app.add_option("--seeds", seeds, "A..B, or one");
  app.add_option("--lives", options.lives, "pods of each seed")->check(CLI::Range(1, 1'000'000));
  app.add_option("--faults", options.faults,
                 "all, none, or some of crash, pause, clock, disk, network, apiserver, scheduler, "
                 "agent, users, nodes, strangers; trial besides: worlds that are new");
  app.add_flag("--shrink", options.shrink, "cut failures down and tell their story");
  app.add_option("--out", out, "JSON file to write");
  app.add_option("--repeat", options.repeat, "each seed so often, to equal digests")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--skip", skip, "checkers whose findings do not count")->delimiter(',');
  app.add_option("--seconds", seconds, "fresh seeds, by the clock, for so long")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--story", story, "tell what happens with a seed");
  app.add_option("--replay", replay, "run a file of test/sim/seeds");
  app.add_flag("--all", telling.all,
               "with --story or --replay: all that happened, not just what concerns the failure");
  app.add_flag("--full", telling.full, "with --story or --replay: objects in full");
  app.add_option("--log", log,
                 "with --story or --replay: what replicas log, on stderr; info, debug, ...");
  app.add_option("--marks", marks, "file to add the names of reached marks to");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return Usage(error.what());
  }
  if (!replay.empty()) return ReplayFile(replay, telling, log);
  if (!story.empty()) seeds = story;
  if (!ReadSeeds(seeds, options)) {
    return Usage("--seeds: expected A..B with A <= B, found \"" + seeds + "\"");
  }
  if (!story.empty()) {
    RunOptions one;
    one.seed = options.first;
    one.lives = options.lives;
    one.faults = options.faults;
    one.log = log;
    return TellStory(one, telling);
  }
  options.skip.insert(skip.begin(), skip.end());
  if (seconds > 0) {
    options.time = std::chrono::seconds(seconds);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    options.first =
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()) * 1000;
    options.last = options.first + 999'999;
    std::cerr << fmt::format("seeds from {} on, {} lives each, faults {}\n", options.first,
                             options.lives, options.faults);
  }
  const SeedsResult result = RunSeeds(options, RunSeed);
  if (!result.problem.empty()) return Usage("--faults: " + result.problem);
  if (!marks.empty()) WriteMarks(marks);
  if (!out.empty()) {
    std::ofstream file(out);
    file << ToJson(result).dump(2) << "\n";
    if (!file) return Usage("--out: expected a file that can be written, found " + out);
  }
  const auto failed = static_cast<int64_t>(result.failed.size());
  std::cout << fmt::format("{} passed, {} failed\n", result.seeds - failed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tranche::sim

int main(int argc, char** argv) { return tranche::sim::Main(argc, argv); }
