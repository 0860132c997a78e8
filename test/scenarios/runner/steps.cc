// Facts and steps: what the world of a scenario is like, and what happens in it.
#include <array>

#include "test/scenarios/runner/forms.h"

namespace tranche::scenario {
namespace {

using Words = std::vector<std::string>;

// Several of the same description: `node a b gpus=2`.
template <typename Declare>
Result ForEach(const Words& names, const Declare& declare) {
  for (const std::string& name : names) {
    if (Result problem = declare(name)) return problem;
  }
  return std::nullopt;
}

Result Nodes(Story& story, const Words& names, Options& options) {
  return ForEach(names, [&](auto& name) { return story.world.DeclareNode(name, options); });
}
Result Pods(Story& story, const Words& names, Options& options) {
  return ForEach(names, [&](auto& name) { return story.world.DeclarePod(name, options); });
}
Result Quota(Story& story, const Words& words, Options& options) {
  return story.world.DeclareQuota(words[0], options);
}
Result Budget(Story& story, const Words& words, Options& options) {
  return story.world.DeclareBudget(words[0], options);
}
Result Class(Story& story, const Words& words, Options& options) {
  return story.world.DeclareClass(words[0], options);
}
Result Policy(Story& story, const Words&, Options& options) {
  return story.world.DeclarePolicy(options);
}
Result PodDisruptionBudgetStep(Story& story, const Words& words, Options& options) {
  return story.world.DeclareDisruptionBudget(words[0], options);
}
Result Remove(Story& story, const Words& words, Options&) {
  return story.world.Remove(words[0], words[1]);
}

Result Arrive(Story& story, const Words& pods, Options&) {
  return ForEach(pods, [&](auto& pod) { return story.world.Arrive(pod); });
}
Result Filter(Story& story, const Words& pods, Options&) {
  return ForEach(pods, [&](auto& pod) { return story.world.Filter(pod); });
}

Result BindTo(Story& story, const std::string& pod, const std::string& node,
              const std::string& expected, Options& options) {
  const auto answer = options.Choice<BindingAnswer>("answer",
                                                    {{"ok", BindingAnswer::kOk},
                                                     {"lost", BindingAnswer::kLost},
                                                     {"late", BindingAnswer::kLate},
                                                     {"refused", BindingAnswer::kRefused}},
                                                    BindingAnswer::kOk);
  if (Result problem = options.Done()) return problem;
  std::string outcome;
  if (Result problem = story.world.Bind(pod, node, answer, outcome)) return problem;
  if (outcome == expected) return std::nullopt;
  return Problem{expected, outcome};
}
Result Bind(Story& story, const Words& words, Options& options) {
  return BindTo(story, words[0], words[1], "written", options);
}
Result BindGives(Story& story, const Words& words, Options& options) {
  if (words[2] != "already-bound" && words[2] != "in-flight") {
    return Problem{"already-bound or in-flight", words[2]};
  }
  return BindTo(story, words[0], words[1], words[2], options);
}
Result BindRefused(Story& story, const Words& words, Options& options) {
  if (!IsReason(words[2])) return Problem{"a reason of scheduler/facts/reason.h", words[2]};
  return BindTo(story, words[0], words[1], words[2], options);
}

Result See(Story& story, const Words& words, Options& options) {
  const bool unreadable =
      options.Choice<bool>("record", {{"none", false}, {"unreadable", true}}, false);
  return story.world.Appear(words[0], words[1], unreadable);
}
Result Delete(Story& story, const Words& pods, Options&) {
  return ForEach(pods, [&](auto& pod) { return story.world.Delete(pod); });
}
Result Gone(Story& story, const Words& pods, Options&) {
  return ForEach(pods, [&](auto& pod) { return story.world.Gone(pod); });
}
Result Finish(Story& story, const Words& pods, Options&) {
  return ForEach(pods, [&](auto& pod) { return story.world.Finish(pod); });
}
Result Advance(Story& story, const Words& words, Options&) {
  const std::optional<Millis> span = ParseSpan(words[0]);
  if (!span) return Problem{"a time as 90s, 30m or 1h30m", words[0]};
  story.world.Advance(*span);
  return std::nullopt;
}
Result Plan(Story& story, const Words&, Options&) {
  story.world.Plan();
  return std::nullopt;
}
Result Evict(Story& story, const Words& words, Options&) { return story.world.Evict(words[0]); }
Result Settle(Story& story, const Words&, Options&) {
  story.world.Settle();
  return std::nullopt;
}
Result Restart(Story& story, const Words&, Options&) {
  story.world.Restart();
  return std::nullopt;
}
Result Remember(Story& story, const Words&, Options&) {
  story.remembered = story.world.Books();
  return std::nullopt;
}

constexpr std::array<Form, 8> kFacts = {{
    {"node NAME...", Nodes},
    {"pod NAME...", Pods},
    {"quota NAME", Quota},
    {"budget NAME", Budget},
    {"class NAME", Class},
    {"policy", Policy},
    {"pdb NAME", PodDisruptionBudgetStep},
    {"remove KIND NAME", Remove},
}};

constexpr std::array<Form, 15> kSteps = {{
    {"arrive POD...", Arrive},
    {"filter POD...", Filter},
    {"bind POD on NODE", Bind},
    {"bind POD on NODE gives OUTCOME", BindGives},
    {"bind POD on NODE refused with REASON", BindRefused},
    {"see POD on NODE", See},
    {"delete POD...", Delete},
    {"gone POD...", Gone},
    {"finish POD...", Finish},
    {"advance TIME", Advance},
    {"plan", Plan},
    {"evict OUTCOME", Evict},
    {"settle", Settle},
    {"restart", Restart},
    {"remember books", Remember},
}};

}  // namespace

std::span<const Form> Facts() { return kFacts; }
std::span<const Form> Steps() { return kSteps; }

}  // namespace tranche::scenario
