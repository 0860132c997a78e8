#include "test/sim/tool/shrink.h"

#include <algorithm>
#include <utility>

namespace tranche::sim {
namespace {

using Ids = std::vector<Script::Id>;

class Shrinker {
 public:
  Shrinker(RunOptions options, const Outcome& failed, const Runner& run, int most_tries)
      : checker_(failed.findings.front().checker), run_(run), most_tries_(most_tries) {
    shrunk_.options = std::move(options);
    shrunk_.outcome = failed;
  }

  Shrunk Cut(const std::function<void(std::size_t left, int tries)>& progress) {
    LeaveOutLives();
    Ids ids = shrunk_.outcome.done;
    std::size_t parts = 2;
    while (!ids.empty() && shrunk_.tries < most_tries_) {
      parts = std::min(parts, ids.size());
      if (LeaveOutOneOf(ids, parts)) {
        // What was done in the run that still fails is what can be left out of it.
        ids = shrunk_.outcome.done;
        parts = std::max<std::size_t>(2, parts - 1);
        if (progress) progress(ids.size(), shrunk_.tries);
      } else if (parts == ids.size()) {
        shrunk_.finished = shrunk_.tries < most_tries_;
        break;
      } else {
        parts *= 2;
      }
    }
    return std::move(shrunk_);
  }

 private:
  // Fewer lives make every later try shorter.
  void LeaveOutLives() {
    for (int64_t step = shrunk_.options.lives / 2; step > 0; step /= 2) {
      if (shrunk_.tries >= most_tries_ || step >= shrunk_.options.lives) continue;
      RunOptions options = shrunk_.options;
      options.lives -= step;
      Keep(std::move(options), [](const Outcome&) { return true; });
    }
  }

  // Runs; what fails as before, and is as wanted, takes the place of what failed last.
  bool Keep(RunOptions options, const std::function<bool(const Outcome&)>& is_wanted) {
    ++shrunk_.tries;
    Outcome outcome = run_(options);
    const bool fails = std::ranges::any_of(
        outcome.findings, [this](const Finding& one) { return one.checker == checker_; });
    if (!fails || !is_wanted(outcome)) return false;
    shrunk_.options = std::move(options);
    shrunk_.outcome = std::move(outcome);
    return true;
  }

  // Of `parts` equal parts the first without which the failure stays.
  bool LeaveOutOneOf(const Ids& ids, std::size_t parts) {
    for (std::size_t part = 0; part < parts && shrunk_.tries < most_tries_; ++part) {
      const auto from = static_cast<std::ptrdiff_t>(ids.size() * part / parts);
      const auto to = static_cast<std::ptrdiff_t>(ids.size() * (part + 1) / parts);
      RunOptions options = shrunk_.options;
      options.left_out.insert(ids.begin() + from, ids.begin() + to);
      const bool left_out = Keep(std::move(options), [&](const Outcome& outcome) {
        return outcome.done.size() < ids.size();
      });
      if (left_out) return true;
    }
    return false;
  }

  const std::string checker_;
  const Runner& run_;
  const int most_tries_;
  Shrunk shrunk_;
};

}  // namespace

Shrunk Shrink(const RunOptions& options, const Outcome& failed, const Runner& run, int most_tries,
              const std::function<void(std::size_t left, int tries)>& progress) {
  return Shrinker(options, failed, run, most_tries).Cut(progress);
}

}  // namespace tranche::sim
