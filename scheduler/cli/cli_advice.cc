#include "scheduler/cli/cli_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/cli/output/table.h"

namespace tranche {
namespace {

// The first row of a group tells what the group has in common.
class Once {
 public:
  std::string operator()(std::string text) { return first_ ? std::move(text) : ""; }
  void Next() { first_ = false; }

 private:
  bool first_ = true;
};

std::string JoinedBy(const Json& texts, const char* separator) {
  std::vector<std::string> parts;
  for (const Json& text : texts)
    parts.push_back(text.is_string() ? text.get<std::string>() : text.dump());
  return fmt::format("{}", fmt::join(parts, separator));
}

void PrintNotes(const Json& notes, std::ostream& out) {
  for (const Json& note : notes) {
    const std::string text = Harmless(note.get<std::string>());
    out << "- " << Wrapped(text, 2, TerminalOf(out).columns) << '\n';
  }
}

std::string NowOf(const Json& model) {
  const Json& now = model.at("now");
  std::vector<std::string> parts;
  const auto add = [&](const char* key, const char* name) {
    if (Whole(now, key) > 0) parts.push_back(fmt::format("{} {}", Whole(now, key), name));
  };
  add("whole", "whole");
  add("mig", "MIG");
  add("timeSliced", "time-sliced");
  return parts.empty() ? "-" : fmt::format("{}", fmt::join(parts, ", "));
}

std::string UseOf(const Json& part) {
  const std::string use = Text(part, "use");
  if (use == "mig") return fmt::format("MIG: {}", Text(part, "geometry"));
  if (use == "timeSliced") return fmt::format("time-sliced by {}", Whole(part, "replicas"));
  return use;
}

void PrintSplit(const Json& split, std::ostream& out) {
  out << fmt::format("\nSplit of the fleet, by {}\n", Text(split, "basis"));
  Table table({"MODEL", "GPUS", "NOW", "ADVISED", "AS", "FOR"});
  for (const Json& model : split.at("models")) {
    Once once;
    const auto add = [&](int64_t gpus, std::string use, std::string serves) {
      table.Add({once(Text(model, "model")), once(Text(model, "gpus")), once(NowOf(model)),
                 std::to_string(gpus), std::move(use), std::move(serves)});
      once.Next();
    };
    for (const Json& part : model.at("parts")) {
      add(Whole(part, "gpus"), UseOf(part), Text(part, "serves"));
    }
    const int64_t spare = Whole(model, "spare");
    if (spare > 0 || model.at("parts").empty()) add(spare, "whole", "spare");
  }
  out << (table.empty() ? "no GPUs are known\n" : table.Text(TerminalOf(out)));
  for (const Json& model : split.at("models")) {
    if (model.at("shortOf").empty()) continue;
    out << fmt::format("{} is short of {}\n", Text(model, "model"),
                       JoinedBy(model.at("shortOf"), ", "));
  }
  PrintNotes(split.at("notes"), out);
}

void PrintRepartition(const Json& plan, std::ostream& out) {
  out << "\nMIG layouts to change\n";
  if (plan.is_null()) {
    out << "not looked for: mig of the GPUPolicy is Off\n";
    return;
  }
  Table table({"NODE", "GPU", "FROM", "TO", "CONFIG", "GUARDS"});
  for (const Json& node : plan.at("nodes")) {
    Once once;
    for (const Json& step : node.at("steps")) {
      const std::string guards = JoinedBy(node.at("guards"), "; ");
      table.Add({once(Text(node, "node")), Text(step, "gpu"), Text(step, "from"), Text(step, "to"),
                 once(Text(node, "config")), once(guards.empty() ? "none" : guards)});
      once.Next();
    }
  }
  if (table.empty()) {
    out << "none\n";
  } else {
    out << table.Text(TerminalOf(out))
        << fmt::format("serves {} waiting pods and {}m of expected demand\n",
                       Whole(plan, "waitingServed"), Whole(plan, "expectedMilli"));
  }
  PrintNotes(plan.at("notes"), out);
}

std::string FreedBy(const Json& entry) {
  if (Text(entry, "profile") != "-") {
    return fmt::format("{} on GPU {}", Text(entry, "profile"), Text(entry, "profileGpu"));
  }
  return fmt::format("GPU {}", JoinedBy(entry.at("gpus"), ","));
}

void PrintDefragment(const Json& advice, std::ostream& out) {
  out << fmt::format("\nPods whose restart would free room: {} whole GPUs are free, {} would be\n",
                     Whole(advice, "wholeGpusFree"), Whole(advice, "wholeGpusPossible"));
  Table table({"NODE", "FREES", "SERVES", "LOST", "RESTART", "QUOTA", "TO"});
  for (const Json& entry : advice.at("entries")) {
    Once once;
    for (const Json& move : entry.at("moves")) {
      table.Add({once(Text(entry, "node")), once(FreedBy(entry)),
                 once(fmt::format("{} waiting", Whole(entry, "waitingServed"))),
                 fmt::format("{} GPU-s", Whole(move, "lostGpuSeconds")), Text(move, "pod"),
                 Text(move, "leaf"), Text(move, "to")});
      once.Next();
    }
  }
  out << (table.empty() ? "none\n" : table.Text(TerminalOf(out)));
  PrintNotes(advice.at("notes"), out);
}

void PrintConsolidation(const Json& nodes, std::ostream& out) {
  out << "\nNodes that could be empty: what little they run may be moved, and has room elsewhere\n";
  Table table({"NODE", "GPUS", "LOST", "MOVE", "QUOTA", "TO"});
  for (const Json& node : nodes) {
    Once once;
    for (const Json& move : node.at("moves")) {
      table.Add({once(Text(node, "node")), once(Text(node, "gpus")),
                 fmt::format("{} GPU-s", Whole(move, "lostGpuSeconds")), Text(move, "pod"),
                 Text(move, "leaf"), Text(move, "to")});
      once.Next();
    }
  }
  out << (table.empty() ? "none\n" : table.Text(TerminalOf(out)));
}

std::string Gpus(int64_t milli) { return fmt::format("{:.2f}", static_cast<double>(milli) / 1000); }

std::string MemoryOf(const Json& entry) {
  const Json& mib = entry.at("memoryMiB");
  return mib.is_null() ? "-" : fmt::format("{:.1f} GiB", mib.get<double>() / 1024);
}

void PrintRightSizes(const Json& advice, std::ostream& out) {
  out << "\nWork that would do with less: by its busiest hour, and the most memory it ever held\n";
  if (advice.is_null()) {
    out << "not looked for: nobody is asked how much GPUs are used (use.prometheus)\n";
    return;
  }
  Table table({"POD", "QUOTA", "HOLDS", "HOURS", "BUSIEST", "MEMORY", "WOULD DO", "SAVES", "ASK"});
  for (const Json& entry : advice.at("entries")) {
    const Json& request = entry.at("request");
    table.Add({Text(entry, "pod"), Text(entry, "leaf"), Text(entry, "holds"), Text(entry, "hours"),
               fmt::format("{} %", Whole(entry, "busiestHourPercent")), MemoryOf(entry),
               Text(entry, "wouldDo"), Gpus(Whole(entry, "savedMilli")),
               fmt::format("{}: {}", Text(request, "key"), Text(request, "value"))});
  }
  out << (table.empty() ? "none\n" : table.Text(TerminalOf(out)));
  out << fmt::format("{} of {} pods that are measured were measured for a day, by the hour\n",
                     Whole(advice, "measured"), Whole(advice, "measuring"));
  PrintNotes(advice.at("notes"), out);
}

}  // namespace

void PrintAdvice(const Json& advice, std::ostream& out) {
  PrintSplit(advice.at("split"), out);
  PrintRepartition(advice.at("repartition"), out);
  PrintDefragment(advice.at("defragment"), out);
  PrintConsolidation(advice.at("consolidate"), out);
  // Servers older than this do not know of it.
  if (advice.contains("rightSizes")) PrintRightSizes(advice.at("rightSizes"), out);
}

void PrintEditPlan(const Json& plan, std::ostream& out) {
  constexpr std::pair<const char*, const char*> kEffects[] = {{"starts", "starts"},
                                                              {"evicted", "is evicted"},
                                                              {"borrowed", "becomes borrowed"},
                                                              {"waits", "waits on"}};
  Table table({"POD", "THEN"});
  bool any = false;
  for (const auto& [key, effect] : kEffects) {
    for (const Json& pod : plan.at(key)) {
      any = true;
      table.Add({pod.get<std::string>(), effect});
    }
  }
  if (any) {
    out << table.Text(TerminalOf(out));
  } else {
    out << "nobody would start, be evicted or wait\n";
  }
}

}  // namespace tranche
