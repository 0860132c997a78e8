#include "scheduler/cli/cli_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "scheduler/cli/output/exit_code.h"
#include "scheduler/cli/output/table.h"
#include "scheduler/embedded/text_file.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/machine/machine_draw.h"
#include "topology/machine/machine_parse.h"
#include "topology/machine/machine_table.h"
#include "topology/machine/ring.h"

namespace tranche {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kNoSuchSet = 1;
constexpr std::size_t kMostBytes = 1024 * 1024;  // ParseMachine draws its own line
constexpr int kMostByDefault = 8;

// A machine and the numbers in the names of its GPUs.
struct Numbered {
  Machine machine;
  std::vector<std::string> problems;

  int NumberOf(int at) const { return std::stoi(machine.gpu(at).name.substr(3)); }
  std::vector<int> NumbersOf(GpuSet set) const {
    std::vector<int> numbers;
    for (const int gpu : set) numbers.push_back(NumberOf(gpu));
    return numbers;
  }
};

absl::StatusOr<std::string> ReadText(const std::string& file) {
  if (file != "-") return embedded::ReadTextFile(file, kMostBytes, 0);
  std::string text(kMostBytes, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  return text;
}

absl::StatusOr<Numbered> ReadMachine(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadText(file);
  if (!text.ok()) return text.status();
  absl::StatusOr<ParsedMachine> parsed = ParseMachine(*text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", file == "-" ? "standard input" : file,
                                                  std::string(parsed.status().message())));
  }
  return Numbered{std::move(parsed->machine), std::move(parsed->problems)};
}

int Fail(std::ostream& err, std::string_view message) {
  err << "tranche: " << message << '\n';
  return kExitUsage;
}

void WriteProblems(const Numbered& numbered, const std::string& file, std::ostream& err) {
  for (const std::string& problem : numbered.problems) {
    err << "tranche: " << (file == "-" ? "standard input" : file) << ": " << problem << '\n';
  }
}

absl::StatusOr<GpuSet> FreeGpus(const Numbered& numbered, const std::vector<int>& numbers) {
  const Machine& machine = numbered.machine;
  if (numbers.empty()) return machine.all();
  GpuSet free;
  for (const int number : numbers) {
    int at = 0;
    while (at < machine.size() && numbered.NumberOf(at) != number) ++at;
    if (at == machine.size()) {
      return absl::InvalidArgumentError(
          fmt::format("--free: expected GPUs of the file ({}), found {}",
                      fmt::join(numbered.NumbersOf(machine.all()), ","), number));
    }
    free.Add(at);
  }
  return free;
}

std::vector<int> Sizes(const BestSetsOptions& options, GpuSet free) {
  std::vector<int> sizes = options.gpus;
  for (int size = 2; options.gpus.empty() && size <= std::min(kMostByDefault, free.size());
       ++size) {
    sizes.push_back(size);
  }
  return sizes;
}

struct FoundSet {
  SetChoice choice;
  Ring ring;
  GpuSet left;
};

Json ToJson(const FoundSet& found, const Numbered& numbered) {
  const SetQuality& quality = found.choice.quality;
  std::vector<int> order;
  for (const int gpu : found.ring.order) order.push_back(numbered.NumberOf(gpu));
  Json ring = nullptr;
  if (found.ring.weakest > 0) ring = {{"nvlinks", found.ring.weakest}, {"order", order}};
  Json path = nullptr;
  if (!quality.connected) path = PathName(quality.worst_path);
  return {{"gpus", found.choice.set.size()}, {"set", numbered.NumbersOf(found.choice.set)},
          {"connected", quality.connected},  {"ring", std::move(ring)},
          {"links", quality.links},          {"path", std::move(path)},
          {"numaNodes", quality.numa_nodes}, {"left", numbered.NumbersOf(found.left)},
          {"loss", found.choice.loss},       {"damage", found.choice.damage},
          {"exact", found.choice.exact}};
}

void WriteJson(const std::vector<FoundSet>& sets, const Numbered& numbered, GpuSet free,
               std::ostream& out) {
  Json list = Json::array();
  for (const FoundSet& found : sets) list.push_back(ToJson(found, numbered));
  const Json root = {{"machine", DescribeMachine(numbered.machine)},
                     {"free", numbered.NumbersOf(free)},
                     {"sets", std::move(list)},
                     {"problems", numbered.problems}};
  out << wire::Dump(root, wire::kIndented) << '\n';
}

void WriteMachineJson(const Numbered& numbered, std::ostream& out) {
  const Machine& machine = numbered.machine;
  Json gpus = Json::array();
  Json links = Json::array();
  for (int at = 0; at < machine.size(); ++at) {
    const MachineGpu& gpu = machine.gpu(at);
    Json numa = nullptr;
    if (gpu.numa) numa = *gpu.numa;
    Json cpus = nullptr;
    if (!gpu.cpus.empty()) cpus = gpu.cpus;
    gpus.push_back({{"number", numbered.NumberOf(at)}, {"numa", numa}, {"cpus", cpus}});
    for (int to = at + 1; to < machine.size(); ++to) {
      const Link link = machine.link(at, to);
      Json path = nullptr;
      if (link.nvlinks == 0) path = PathName(link.path);
      const std::vector<int> pair = {numbered.NumberOf(at), numbered.NumberOf(to)};
      links.push_back({{"gpus", pair}, {"nvlinks", link.nvlinks}, {"path", path}});
    }
  }
  Json nics = Json::array();
  for (const MachineNic& nic : machine.nics()) {
    Json paths = Json::array();
    for (const PathClass path : nic.paths) paths.push_back(PathName(path));
    nics.push_back({{"name", nic.name}, {"fabric", nic.fabric}, {"paths", std::move(paths)}});
  }
  const Json root = {{"machine", DescribeMachine(machine)},
                     {"gpus", std::move(gpus)},
                     {"links", std::move(links)},
                     {"nics", std::move(nics)},
                     {"problems", numbered.problems}};
  out << wire::Dump(root, wire::kIndented) << '\n';
}

// "0,1,2,3"; "-": none.
std::string ListText(const std::vector<int>& numbers) {
  return numbers.empty() ? "-" : fmt::format("{}", fmt::join(numbers, ","));
}

std::string RingText(const FoundSet& found, const Numbered& numbered) {
  if (found.ring.weakest == 0) return "-";
  std::string text = fmt::format("NV{}:", found.ring.weakest);
  for (const int gpu : found.ring.order) {
    text +=
        fmt::format("{}{}", gpu == found.ring.order.front() ? " " : "-", numbered.NumberOf(gpu));
  }
  return text;
}

void WriteTable(const std::vector<FoundSet>& sets, const Numbered& numbered, std::ostream& out) {
  Table table({"GPUS", "SET", "NVLINK RING", "LINKS", "WORST PATH", "NUMA", "LEFT FREE"});
  bool exact = true;
  for (const FoundSet& found : sets) {
    const SetQuality& quality = found.choice.quality;
    exact = exact && found.choice.exact;
    table.Add({fmt::format("{}", found.choice.set.size()),
               ListText(numbered.NumbersOf(found.choice.set)), RingText(found, numbered),
               fmt::format("{}", quality.links),
               std::string(quality.connected ? "NVLink" : PathName(quality.worst_path)),
               fmt::format("{}", quality.numa_nodes), ListText(numbered.NumbersOf(found.left))});
  }
  out << DescribeMachine(numbered.machine) << "\n\n" << table.Text(TerminalOf(out));
  if (!exact) out << "\nThe search is bounded for so many GPUs: there may be better sets.\n";
}

}  // namespace

int ShowTopology(const std::string& file, bool json, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Numbered> numbered = ReadMachine(file);
  if (!numbered.ok()) return Fail(err, std::string(numbered.status().message()));
  WriteProblems(*numbered, file, err);
  if (json) {
    WriteMachineJson(*numbered, out);
  } else {
    out << DrawMachine(numbered->machine, TerminalOf(out).colour);
  }
  return 0;
}

int ShowBestSets(const BestSetsOptions& options, std::ostream& out, std::ostream& err) {
  const absl::StatusOr<Numbered> numbered = ReadMachine(options.file);
  if (!numbered.ok()) return Fail(err, std::string(numbered.status().message()));
  const absl::StatusOr<GpuSet> free = FreeGpus(*numbered, options.free);
  if (!free.ok()) return Fail(err, std::string(free.status().message()));
  WriteProblems(*numbered, options.file, err);

  MachineTable table(std::make_shared<const Machine>(numbered->machine));
  std::vector<FoundSet> sets;
  std::string missing;
  for (const int size : Sizes(options, *free)) {
    const std::vector<SetChoice> ranked = table.Ranked(*free, size, SetRules{}, options.most);
    if (ranked.empty()) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", size);
    for (const SetChoice& choice : ranked) {
      sets.push_back({choice, BestRing(numbered->machine, choice.set), *free - choice.set});
    }
  }
  if (sets.empty() && missing.empty()) missing += '2';
  if (options.json) {
    WriteJson(sets, *numbered, *free, out);
  } else if (!sets.empty()) {
    WriteTable(sets, *numbered, out);
  }
  if (missing.empty()) return 0;
  err << fmt::format("tranche: expected {} free GPUs, found {}\n", missing, free->size());
  return kNoSuchSet;
}

}  // namespace tranche
