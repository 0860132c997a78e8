#include "test/sim/tool/seeds.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iostream>

#include "test/sim/tool/seed_file.h"
#include "test/sim/tool/story.h"

namespace tranche::sim {
namespace {

constexpr int kMostTries = 400;

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// The same line again on a terminal; elsewhere one now and then.
class Progress {
 public:
  void Tell(const std::string& text) {
    if (terminal_) {
      std::cerr << "\r" << text << "\033[K" << std::flush;
    } else if (const auto now = Clock::now(); now - told_ > std::chrono::seconds(10)) {
      told_ = now;
      std::cerr << text << "\n";
    }
  }
  void Line(const std::string& text) {
    std::cerr << (terminal_ ? "\r\033[K" : "") << text << "\n" << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  Clock::time_point told_ = Clock::now();
};

class Seeds {
 public:
  Seeds(const SeedsOptions& options, const Runner& run) : options_(options), run_(run) {}

  SeedsResult Go() {
    const auto began = std::chrono::steady_clock::now();
    const double processor = ProcessorSeconds();
    for (uint64_t seed = options_.first; seed <= options_.last; ++seed) {
      if (options_.time && std::chrono::steady_clock::now() - began >= *options_.time) break;
      const double used = std::max(0.001, ProcessorSeconds() - processor);
      progress_.Tell(fmt::format("seed {}: {} done, {} failed, {} lives, {:.0f} a second", seed,
                                 result_.seeds, result_.failed.size(), result_.lives,
                                 static_cast<double>(result_.lives) / used));
      if (!RunOne(seed)) break;
    }
    result_.seconds = ProcessorSeconds() - processor;
    progress_.Line(fmt::format("{} seeds, {} lives in {:.1f} s of processor time", result_.seeds,
                               result_.lives, result_.seconds));
    return std::move(result_);
  }

 private:
  Outcome Counted(const RunOptions& run_options) {
    Outcome outcome = run_(run_options);
    std::erase_if(outcome.findings,
                  [this](const Finding& one) { return options_.skip.contains(one.checker); });
    return outcome;
  }

  bool RunOne(uint64_t seed) {
    RunOptions run_options;
    run_options.seed = seed;
    run_options.lives = options_.lives;
    run_options.faults = options_.faults;
    Outcome outcome = Counted(run_options);
    result_.problem = outcome.problem;
    if (!outcome.problem.empty()) return false;
    for (int again = 1; again < options_.repeat; ++again) {
      const uint64_t digest = run_(run_options).digest;
      if (digest == outcome.digest) continue;
      outcome.findings.push_back(
          {"digest", "",
           fmt::format("expected the digest {:016x} again, found {:016x}", outcome.digest, digest),
           outcome.simulated});
      break;
    }
    ++result_.seeds;
    result_.lives += outcome.lives;
    result_.digests[seed] = outcome.digest;
    if (!outcome.plants.empty()) result_.plants[seed] = outcome.plants;
    if (!outcome.findings.empty()) Failed(run_options, outcome);
    return true;
  }

  void Failed(const RunOptions& run_options, const Outcome& outcome) {
    const Finding& first = outcome.findings.front();
    result_.failed.push_back({run_options.seed, first.checker, first.text});
    progress_.Line(fmt::format("seed {} FAILED: {} {}: {} ({} ms)", run_options.seed, first.checker,
                               first.about, first.text, first.at.count() / 1000));
    for (const Finding& one : outcome.findings) {
      if (one.checker != first.checker) {
        progress_.Line(fmt::format("  and {} {}: {}", one.checker, one.about, one.text));
      }
    }
    if (options_.shrink && first.checker != "digest") CutDown(run_options, outcome);
  }

  void CutDown(const RunOptions& run_options, const Outcome& outcome) {
    const Runner counted = [this](const RunOptions& one) { return Counted(one); };
    const Shrunk shrunk =
        Shrink(run_options, outcome, counted, kMostTries, [&](std::size_t left, int tries) {
          progress_.Tell(fmt::format("seed {}: {} actions left after {} tries", run_options.seed,
                                     left, tries));
        });
    Story story;
    RunOptions last = shrunk.options;
    last.listener = [&story](const Happening& happening) { story.Hear(happening); };
    run_(last);
    const Finding& found = shrunk.outcome.findings.front();
    std::set<std::string> about;
    for (const Finding& one : shrunk.outcome.findings) about.insert(one.about);
    const bool all = about.contains("");
    story.Print(std::cout, about, all, shrunk.outcome.findings);
    SeedFile file{found.text, outcome.findings.front().checker, shrunk.options};
    file.options.listener = nullptr;
    std::cout << WriteSeedFile(file) << "# what is left:";
    for (const Script::Id& id : shrunk.outcome.done) std::cout << " " << id;
    std::cout << "\n" << std::flush;
  }

  const SeedsOptions& options_;
  const Runner& run_;
  Progress progress_;
  SeedsResult result_;
};

}  // namespace

SeedsResult RunSeeds(const SeedsOptions& options, const Runner& run) {
  return Seeds(options, run).Go();
}

Json ToJson(const SeedsResult& result) {
  Json failed = Json::array();
  for (const FailedSeed& one : result.failed) {
    failed.push_back({{"seed", one.seed}, {"checker", one.checker}, {"text", one.text}});
  }
  Json digests = Json::object();
  for (const auto& [seed, digest] : result.digests) {
    digests[std::to_string(seed)] = fmt::format("{:016x}", digest);
  }
  const double seconds = std::max(0.001, result.seconds);
  Json json = {{"seeds", result.seeds},
               {"lives", result.lives},
               {"livesPerSecond", static_cast<double>(result.lives) / seconds},
               {"failed", std::move(failed)},
               {"digests", std::move(digests)}};
  for (const auto& [seed, names] : result.plants) json["plants"][std::to_string(seed)] = names;
  return json;
}

}  // namespace tranche::sim
