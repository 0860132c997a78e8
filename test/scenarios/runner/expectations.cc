// What a scenario may expect, and what is said when it is otherwise.
#include <algorithm>
#include <array>
#include <set>

#include "test/scenarios/runner/forms.h"

namespace tranche::scenario {
namespace {

using Words = std::vector<std::string>;

Words From(const Words& words, std::size_t first) {
  return {words.begin() + static_cast<std::ptrdiff_t>(first), words.end()};
}

Result Same(const std::string& expected, const std::string& got) {
  if (expected == got) return std::nullopt;
  return Problem{expected, got};
}

// The whole answer in one line, for whoever reads that it was another one.
std::string TextOf(const Fit& fit) {
  if (fit.untouched) return "passes untouched";
  if (!fit.nodes.empty()) return "fits on " + Join(fit.nodes);
  std::string text = "refused with " + fit.reason;
  for (const auto& [node, reason] : fit.refused) text += ", on " + node + " with " + reason;
  return text;
}

Result NotAReason(const std::string& word) {
  if (IsReason(word)) return std::nullopt;
  return Problem{"a reason of scheduler/facts/reason.h", word};
}

// ---- the answer to filter

Result Fits(Story& story, const Words& words, Options&) {
  Fit fit;
  if (Result problem = story.world.FindFit(words[0], fit)) return problem;
  return Same("fits on " + Join(From(words, 1)), TextOf(fit));
}

Result Prefers(Story& story, const Words& words, Options&) {
  Fit fit;
  if (Result problem = story.world.FindFit(words[0], fit)) return problem;
  if (!fit.nodes.empty() && fit.nodes.front() == words[1]) return std::nullopt;
  return Problem{"fits on " + words[1] + " first", TextOf(fit)};
}

Result Refused(Story& story, const Words& words, Options&) {
  Fit fit;
  if (Result problem = story.world.FindFit(words[0], fit)) return problem;
  if (Result problem = NotAReason(words[1])) return problem;
  if (!fit.untouched && fit.nodes.empty() && fit.reason == words[1]) return std::nullopt;
  return Problem{"refused with " + words[1], TextOf(fit)};
}

Result RefusedOn(Story& story, const Words& words, Options&) {
  Fit fit;
  if (Result problem = story.world.FindFit(words[0], fit)) return problem;
  if (Result problem = NotAReason(words[2])) return problem;
  const auto found = fit.refused.find(words[1]);
  if (found == fit.refused.end()) return Problem{words[2] + " on " + words[1], TextOf(fit)};
  return Same(words[2] + " on " + words[1], found->second + " on " + words[1]);
}

Result Untouched(Story& story, const Words& words, Options&) {
  Fit fit;
  if (Result problem = story.world.FindFit(words[0], fit)) return problem;
  return Same("passes untouched", TextOf(fit));
}

Result Ranks(Story& story, const Words& words, Options&) {
  Words nodes;
  if (Result problem = story.world.Ranks(words[0], nodes)) return problem;
  return Same(Join(From(words, 1)), Join(nodes));
}

// ---- the pod

Result Is(Story& story, const Words& words, Options&) {
  std::string state;
  if (Result problem = story.world.State(words[0], state)) return problem;
  return Same(words.size() == 2 ? words[1] : words[1] + " on " + words[2], state);
}

Result Holds(Story& story, const Words& words, Options&) {
  Words devices;
  if (Result problem = story.world.Devices(words[0], devices)) return problem;
  return Same(Join(From(words, 1)), Join(devices));
}

// GPUs the pod holds: "a 0" is the first of node a.
Result GpusOf(World& world, const std::string& pod, std::set<std::string>& gpus) {
  std::string state;
  Words devices;
  if (Result problem = world.State(pod, state)) return problem;
  if (Result problem = world.Devices(pod, devices)) return problem;
  for (const std::string& device : devices) {
    gpus.insert(Split(state, ' ').back() + " " + device.substr(0, device.find_first_of(":/")));
  }
  if (gpus.empty()) return Problem{"a pod that holds GPUs", pod + ", which is " + state};
  return std::nullopt;
}

Result Sharing(Story& story, const Words& words, bool expected) {
  std::set<std::string> left, right;
  if (Result problem = GpusOf(story.world, words[0], left)) return problem;
  if (Result problem = GpusOf(story.world, words[1], right)) return problem;
  const bool shares =
      std::ranges::any_of(left, [&](const std::string& gpu) { return right.contains(gpu); });
  if (shares == expected) return std::nullopt;
  const std::string got = words[0] + " holds " + Join(Words(left.begin(), left.end()), ", ") +
                          "; " + words[1] + " holds " +
                          Join(Words(right.begin(), right.end()), ", ");
  return Problem{expected ? "a GPU of both" : "no GPU of both", got};
}
Result SharesGpu(Story& story, const Words& words, Options&) { return Sharing(story, words, true); }
Result SharesNoGpu(Story& story, const Words& words, Options&) {
  return Sharing(story, words, false);
}

Result CountsAs(Story& story, const Words& words, Options&) {
  std::string state;
  if (Result problem = story.world.QuotaState(words[0], state)) return problem;
  return Same(words[1], state);
}

Result EligibleAt(Story& story, const Words& words, Options&) {
  std::optional<Millis> at;
  if (Result problem = story.world.EligibleAt(words[0], at)) return problem;
  return Same(words[1], at ? FormatSpan(*at) : "never");
}

Result ExplainedBy(Story& story, const Words& words, Options&) {
  std::string text;
  if (Result problem = story.world.Explained(words[0], text)) return problem;
  if (text.find(words[1]) != std::string::npos) return std::nullopt;
  return Problem{"a text with \"" + words[1] + "\"", "\"" + text + "\""};
}

// ---- preemption

Result BlockedBy(Story& story, const Words& words, Options&) {
  std::string text;
  if (Result problem = story.world.Blocked(words[0], text)) return problem;
  return Same(words.size() == 2 ? words[1] : words[1] + " until " + words[2], text);
}

Result NominatedTo(Story& story, const Words& words, Options&) {
  const std::string node = story.world.NominatedNode(words[0]);
  return Same(words[1], node.empty() ? "nothing" : node);
}

Result PlanIs(Story& story, const Words& words, Options&) {
  const Words plans = story.world.Plans();
  const std::string expected = words[0] + " " + words[1] + " for " + Join(From(words, 2));
  if (std::ranges::find(plans, expected) != plans.end()) return std::nullopt;
  return Problem{expected, plans.empty() ? "no plan" : Join(plans, "; ")};
}

Result NoPlan(Story& story, const Words&, Options&) {
  const Words plans = story.world.Plans();
  return Same("no plan", plans.empty() ? "no plan" : Join(plans, "; "));
}

// ---- the books

Result CheckAmount(const std::string& what, int64_t got, Options& options) {
  if (!options.Has(what)) return std::nullopt;
  const int64_t expected = options.Thousandths(what, 0);
  if (Result problem = options.Done(); problem && problem->expected.starts_with(what + "=")) {
    return problem;
  }
  return Same(what + "=" + FormatThousandths(expected), what + "=" + FormatThousandths(got));
}

Result QuotaIs(Story& story, const Words& words, Options& options) {
  QuotaNumbers numbers;
  const std::string model = options.Text("model", "h100");
  if (Result problem = story.world.Quota(words[0], model, numbers)) return problem;
  for (const auto& [what, amount] :
       {std::pair{"used", numbers.used}, std::pair{"borrowed", numbers.borrowed},
        std::pair{"lent", numbers.lent}, std::pair{"available", numbers.available}}) {
    if (Result problem = CheckAmount(what, amount, options)) return problem;
  }
  return std::nullopt;
}

Result BudgetIs(Story& story, const Words& words, Options& options) {
  BudgetNumbers numbers;
  if (Result problem = story.world.Budget(words[0], numbers)) return problem;
  for (const auto& [what, amount] :
       {std::pair{"used", numbers.used}, std::pair{"committed", numbers.committed},
        std::pair{"effective", numbers.effective}}) {
    if (Result problem = CheckAmount(what, amount, options)) return problem;
  }
  return Same(options.Text("state", numbers.state), numbers.state);
}

Result NodeIs(Story& story, const Words& words, Options& options) {
  int64_t free = 0;
  if (Result problem = story.world.FreeGpus(words[0], free)) return problem;
  return CheckAmount("free", free, options);
}

Result Requeued(Story& story, const Words& words, Options&) {
  Words expected = words[0] == "nobody" ? Words() : words;
  std::ranges::sort(expected);
  const Words got = story.world.TakeRequeued();
  return Same(expected.empty() ? "nobody" : Join(expected), got.empty() ? "nobody" : Join(got));
}

Result BooksUnchanged(Story& story, const Words&, Options&) {
  if (story.remembered.empty()) return Problem{"a step `remember books` before", "none"};
  return Same(story.remembered, story.world.Books());
}

Result AuditClean(Story& story, const Words&, Options&) {
  const Words faults = story.world.Audit();
  return Same("no fault", faults.empty() ? "no fault" : Join(faults, "; "));
}

constexpr std::array<Form, 25> kExpectations = {{
    {"quota NAME", QuotaIs},
    {"budget NAME", BudgetIs},
    {"node NAME", NodeIs},
    {"plan RULE PHASE for WHOM...", PlanIs},
    {"no plan", NoPlan},
    {"requeued POD...", Requeued},
    {"books unchanged", BooksUnchanged},
    {"audit clean", AuditClean},
    {"POD fits on NODE...", Fits},
    {"POD prefers NODE", Prefers},
    {"POD refused with REASON", Refused},
    {"POD refused on NODE with REASON", RefusedOn},
    {"POD passes untouched", Untouched},
    {"POD ranks NODE...", Ranks},
    {"POD is STATE", Is},
    {"POD is STATE on NODE", Is},
    {"POD holds DEVICE...", Holds},
    {"POD shares a GPU with POD", SharesGpu},
    {"POD shares no GPU with POD", SharesNoGpu},
    {"POD counts as STATE", CountsAs},
    {"POD eligible at TIME", EligibleAt},
    {"POD explained by TEXT", ExplainedBy},
    {"POD blocked by REASON", BlockedBy},
    {"POD blocked by REASON until TIME", BlockedBy},
    {"POD nominated to NODE", NominatedTo},
}};

}  // namespace

std::span<const Form> Expectations() { return kExpectations; }

}  // namespace tranche::scenario
