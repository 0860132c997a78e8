#include "test/sim/tool/story.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>

#include "test/sim/check/truth.h"

namespace tranche::sim {
namespace {

using check::Annotation;
using check::At;
using check::TextAt;

constexpr const char* kRecord = "tranche.dev/allocation";

std::string When(SimTime at) {
  return fmt::format("{:>5}.{:03}", at.count() / 1'000'000, at.count() / 1000 % 1000);
}

// Writes happenings down; of an object so much.
class Words {
 public:
  explicit Words(std::size_t most) : most_(most) {}
  std::string What(const Happening& happening) const;

 private:
  std::string Short(const std::string& text) const {
    return text.size() <= most_ ? text : text.substr(0, most_) + "...";
  }
  std::string PodChange(const Json& before, const Json& after) const;
  std::string Written(const Happening& happening) const;

  const std::size_t most_;
};

// What changed of a pod that matters to scheduling.
std::string Words::PodChange(const Json& before, const Json& after) const {
  std::string what;
  const auto add = [&](const char* name, std::initializer_list<const char*> path) {
    const std::string now = TextAt(after, path);
    if (now != TextAt(before, path)) what += fmt::format(" {} {}", name, now.empty() ? "-" : now);
  };
  add("class", {"spec", "priorityClassName"});
  const auto asked = [](const Json& pod) {
    const Json& containers = At(pod, {"spec", "containers"});
    std::string text;
    if (!containers.is_array()) return text;
    for (const Json& container : containers) {
      const Json& limits = At(container, {"resources", "limits"});
      if (!limits.is_null()) text += " " + limits.dump();
    }
    return text;
  };
  if (asked(before) != asked(after)) what += " asks" + asked(after);
  add("node", {"spec", "nodeName"});
  add("phase", {"status", "phase"});
  add("leaves", {"metadata", "deletionTimestamp"});
  add("nominated", {"status", "nominatedNodeName"});
  const Json& said = At(after, {"metadata", "annotations"});
  if (said.is_object()) {
    for (const auto& [key, value] : said.items()) {
      if (key == kRecord || At(before, {"metadata", "annotations", key.c_str()}) == value) continue;
      what += fmt::format(" {}={}", key,
                          Short(value.is_string() ? value.get<std::string>() : value.dump()));
    }
  }
  const std::string record = Annotation(after, kRecord);
  if (record != Annotation(before, kRecord)) what += " holds " + Short(record);
  if (At(before, {"status", "conditions"}) != At(after, {"status", "conditions"})) {
    const Json& conditions = At(after, {"status", "conditions"});
    if (conditions.is_array() && !conditions.empty()) {
      const Json& last = conditions.back();
      what += fmt::format(" {}={} {}", TextAt(last, {"type"}), TextAt(last, {"status"}),
                          TextAt(last, {"reason"}));
    }
  }
  return what.empty() ? " other fields" : what;
}

std::string Words::Written(const Happening& happening) const {
  const std::string name = happening.resource + " " + happening.key;
  if (happening.after.is_null()) return "removed " + name;
  if (happening.resource == "pods") {
    return (happening.before.is_null() ? "made " : "changed ") + name +
           PodChange(happening.before, happening.after);
  }
  if (happening.before.is_null()) {
    return "made " + name + " " + Short(At(happening.after, {"spec"}).dump());
  }
  for (const char* const part : {"spec", "status", "metadata"}) {
    const Json& now = At(happening.after, {part});
    if (part != std::string("metadata") && At(happening.before, {part}) == now) continue;
    return fmt::format("changed {}: {} {}", name, part, Short(now.dump()));
  }
  return "changed " + name;
}

std::string Words::What(const Happening& happening) const {
  using Kind = Happening::Kind;
  switch (happening.kind) {
    case Kind::kWritten:
      return Written(happening);
    case Kind::kAsked:
      return fmt::format("asked {} of {}: {} {}", happening.text, happening.key, happening.number,
                         happening.after.is_null() ? "no answer" : Short(happening.after.text()));
    case Kind::kLeads:
      return fmt::format("leads, epoch {}{}{}", happening.number,
                         happening.text.empty() ? "" : ", without its ledger: ", happening.text);
    default:
      return fmt::format("{} {} {} {}", NameOf(happening.kind), happening.key, happening.text,
                         happening.after.is_null() ? "" : Short(happening.after.text()));
  }
}

}  // namespace

void Story::Hear(const Happening& happening) {
  Line line{happening.at, happening.who, Words(most_).What(happening), {}};
  if (!happening.key.empty()) line.about.insert(happening.key);
  for (const Document* const object : {&happening.before, &happening.after}) {
    const std::string node = TextAt(*object, {"spec", "nodeName"});
    if (!node.empty()) line.about.insert(node);
  }
  const std::string uid = TextAt(happening.after, {"uid"});
  if (!uid.empty()) line.about.insert(uid);
  lines_.push_back(std::move(line));
}

void Story::Print(std::ostream& out, const std::set<std::string>& about, bool all,
                  const std::vector<Finding>& findings) const {
  std::size_t wide = 8;
  for (const Line& line : lines_) wide = std::max(wide, line.who.size());
  std::vector<Finding> sorted = findings;
  std::ranges::stable_sort(sorted, {}, &Finding::at);
  auto found = sorted.begin();
  const auto tell = [&](SimTime until) {
    for (; found != sorted.end() && found->at < until; ++found) {
      fmt::print(out, "{}  {:<{}}  >>> {}: {}\n", When(found->at), "CHECKER", wide, found->checker,
                 found->text);
    }
  };
  for (const Line& line : lines_) {
    tell(line.at);
    const bool concerns =
        line.about.empty() ||
        std::ranges::any_of(line.about, [&](const auto& one) { return about.contains(one); });
    if (all || concerns) {
      fmt::print(out, "{}  {:<{}}  {}\n", When(line.at), line.who, wide, line.what);
    }
  }
  tell(SimTime::max());
}

}  // namespace tranche::sim
