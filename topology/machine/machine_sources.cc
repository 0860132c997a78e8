#include "topology/machine/machine_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "topology/machine/machine_catalog.h"

namespace tranche {
namespace {

constexpr std::size_t kMostSourceProblems = 32;
constexpr int64_t kMostInZone = 1'000'000;  // sums stay small whatever a publisher writes
constexpr int kPointsPerNvlink = 100;
constexpr std::array<std::string_view, 6> kSourceNames = {"none",   "catalogue", "zones",
                                                          "slices", "scores",    "matrix"};

// What a source tells about a pair. A path that is not told is filled in from elsewhere.
struct ToldLink {
  Link link;
  bool path_told = false;
};

// 100 per NVLink, and the way over PCIe in tens from SYS; nullopt: no such score.
std::optional<ToldLink> LinkOfScore(int points) {
  const int links = points / kPointsPerNvlink;
  const int path = points % kPointsPerNvlink;
  if (points <= 0 || links > kMaxNvlinks || path % 10 != 0 || path > 60) return std::nullopt;
  const auto nvlinks = static_cast<uint8_t>(links);
  if (path == 0) return ToldLink{{PathClass::kSys, nvlinks}, false};
  return ToldLink{{static_cast<PathClass>(path / 10 - 1), nvlinks}, true};
}

// Below one root complex the switches between two devices are not told; without any it would be
// PIX.
constexpr PathClass kWithinRoot = PathClass::kPxb;
bool SameRoot(std::string_view left, std::string_view right) {
  return !left.empty() && left == right;
}

// "0: 4, 1: 4"
std::string CountsText(const std::map<int, int64_t>& counts) {
  std::string text;
  for (const auto& [node, gpus] : counts) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node, gpus);
  }
  return text;
}

enum class Verdict : uint8_t { kSilent, kConfirms, kContradicts };

class Resolver {
 public:
  explicit Resolver(const MachineSources& sources)
      : sources_(sources), count_(sources.gpus.size()) {}
  ResolvedMachine Resolve();

 private:
  using Numa = std::optional<int>;

  using Links = std::vector<ToldLink>;  // row by row

  void FindMatrixRows();
  void FindSlices();
  Links MatrixLinks() const;
  std::optional<Links> ScoreLinks();
  ToldLink ScoreLink(std::size_t left, std::size_t right);
  Links CatalogueLinks() const;
  void TakeLinks();
  void TakeLesserLinks();
  void Compare(std::string_view who, const Links& other);

  bool TellNuma(std::size_t gpu, Numa numa, std::string_view who);
  void SettleNuma();
  Verdict ZonesSay();
  void LabelByZones();

  bool SlicesCoverAll() const;
  bool Knows() const;
  PathClass PathOf(std::size_t left, std::size_t right) const;
  std::vector<MachineNic> Nics() const;
  std::vector<MachineNic> SliceNics() const;
  void Build();

  std::string Name(std::size_t gpu) const { return fmt::format("GPU{}", sources_.gpus[gpu].index); }
  void Problem(std::string text) {
    if (result_.problems.size() == kMostSourceProblems) text = "and more of the kind";
    if (result_.problems.size() <= kMostSourceProblems) result_.problems.push_back(std::move(text));
  }

  const MachineSources& sources_;
  const std::size_t count_;
  std::shared_ptr<const Machine> catalogue_;
  std::vector<MachineGpu> gpus_;
  std::vector<std::string_view> numa_from_;  // who told a GPU's NUMA node
  std::vector<std::size_t> rows_;            // of the matrix, by GPU; empty: it is not used
  std::vector<const SliceDevice*> slices_;   // by GPU, null where there is none; empty: not used
  std::map<int, int64_t> zones_;             // GPUs by NUMA node, none that has none
  std::map<std::pair<GpuUuid, GpuUuid>, int> points_;
  Links links_;
  bool catalogue_fits_ = true;  // nothing of the node contradicts it
  Verdict zones_say_ = Verdict::kSilent;
  ResolvedMachine result_;
};

// By UUID where both have them, else by index. A matrix that lacks a GPU of the node shows another
// state of the machine: it is refused.
void Resolver::FindMatrixRows() {
  if (sources_.matrix == nullptr) return;
  const Machine& matrix = *sources_.matrix;
  std::map<GpuUuid, std::size_t> by_uuid;
  for (std::size_t row = 0; row < matrix.gpus().size(); ++row) {
    const GpuUuid& uuid = matrix.gpus()[row].uuid;
    if (!uuid.empty()) by_uuid.emplace(uuid, row);
  }
  std::vector<std::size_t> rows;
  for (const NodeGpu& gpu : sources_.gpus) {
    std::size_t row = matrix.gpus().size();
    if (by_uuid.empty() || gpu.uuid.empty()) {
      if (gpu.index >= 0) row = static_cast<std::size_t>(gpu.index);
    } else if (const auto found = by_uuid.find(gpu.uuid); found != by_uuid.end()) {
      row = found->second;
    }
    if (row >= matrix.gpus().size() || std::find(rows.begin(), rows.end(), row) != rows.end()) {
      Problem(
          fmt::format("matrix: expected a row of its own for GPU{} {}, found none among {}; the "
                      "matrix is not used",
                      gpu.index, gpu.uuid.str(), matrix.gpus().size()));
      return;
    }
    rows.push_back(row);
  }
  rows_ = std::move(rows);
}

void Resolver::FindSlices() {
  if (sources_.slices == nullptr) return;
  std::map<GpuUuid, const SliceDevice*> by_uuid;
  for (const SliceDevice& device : *sources_.slices) {
    if (!device.is_nic && !device.uuid.empty()) by_uuid[device.uuid] = &device;
  }
  std::vector<const SliceDevice*> slices(count_, nullptr);
  bool any = false;
  for (std::size_t gpu = 0; gpu < count_; ++gpu) {
    const auto found = by_uuid.find(sources_.gpus[gpu].uuid);
    if (found == by_uuid.end()) continue;
    slices[gpu] = found->second;
    any = true;
  }
  if (any) {
    slices_ = std::move(slices);
  } else if (!by_uuid.empty()) {
    Problem(fmt::format("slices: expected the node's GPUs by UUID, found {} others; not used",
                        by_uuid.size()));
  }
}

bool Resolver::SlicesCoverAll() const {
  return !slices_.empty() &&
         std::all_of(slices_.begin(), slices_.end(), [](const SliceDevice* device) {
           return device != nullptr && (device->numa || !device->pcie_root.empty());
         });
}

Resolver::Links Resolver::MatrixLinks() const {
  Links links;
  for (const std::size_t left : rows_) {
    for (const std::size_t right : rows_) {
      const Link link = sources_.matrix->link(static_cast<int>(left), static_cast<int>(right));
      links.push_back({link, link.nvlinks == 0});
    }
  }
  return links;
}

Resolver::Links Resolver::CatalogueLinks() const {
  Links links;
  for (int left = 0; left < catalogue_->size(); ++left) {
    for (int right = 0; right < catalogue_->size(); ++right) {
      links.push_back({{PathClass::kSys, catalogue_->link(left, right).nvlinks}, false});
    }
  }
  return links;
}

// Scores that are missing or differ by direction are no link, as HAMi takes them.
ToldLink Resolver::ScoreLink(std::size_t left, std::size_t right) {
  const GpuUuid& one = sources_.gpus[left].uuid;
  const GpuUuid& other = sources_.gpus[right].uuid;
  const auto there = points_.find({one, other});
  const auto back = points_.find({other, one});
  const ToldLink none{{}, true};
  if (there == points_.end() || back == points_.end()) {
    Problem(fmt::format("scores: expected {} with {} in both directions, found {}; no link",
                        Name(left), Name(right), there == back ? "none" : "one"));
    return none;
  }
  if (there->second != back->second) {
    Problem(fmt::format("scores: expected equal points of {} with {}, found {} and {}; no link",
                        Name(left), Name(right), there->second, back->second));
    return none;
  }
  const std::optional<ToldLink> link = LinkOfScore(there->second);
  if (!link) {
    Problem(
        fmt::format("scores: expected 10 to 60 points and 100 per NVLink for {} with {}, found "
                    "{}; no link",
                    Name(left), Name(right), there->second));
  }
  return link.value_or(none);
}

std::optional<Resolver::Links> Resolver::ScoreLinks() {
  if (sources_.scores == nullptr || sources_.scores->empty()) return std::nullopt;
  for (const PairScore& score : *sources_.scores) points_[{score.left, score.right}] = score.points;
  const auto is_scored = [&](const NodeGpu& gpu) {
    return !gpu.uuid.empty() && std::any_of(points_.begin(), points_.end(), [&](const auto& pair) {
      return pair.first.first == gpu.uuid;
    });
  };
  const auto unknown = std::find_if_not(sources_.gpus.begin(), sources_.gpus.end(), is_scored);
  if (unknown != sources_.gpus.end()) {
    Problem(fmt::format("scores: expected some of GPU{} {}, found none; the scores are not used",
                        unknown->index, unknown->uuid.str()));
    return std::nullopt;
  }
  Links links(count_ * count_);
  for (std::size_t left = 0; left < count_; ++left) {
    for (std::size_t right = left + 1; right < count_; ++right) {
      links[left * count_ + right] = links[right * count_ + left] = ScoreLink(left, right);
    }
  }
  return links;
}

// A lesser source that tells other NVLinks than the one used.
void Resolver::Compare(std::string_view who, const Links& other) {
  std::size_t differing = 0;
  std::string first;
  for (std::size_t left = 0; left < count_; ++left) {
    for (std::size_t right = left + 1; right < count_; ++right) {
      const std::size_t at = left * count_ + right;
      if (links_[at].link.nvlinks == other[at].link.nvlinks) continue;
      if (differing++ > 0) continue;
      first = fmt::format("{} with {}: {} NVLinks by the {}, {} by the {}", Name(left), Name(right),
                          links_[at].link.nvlinks, MachineSourceName(result_.links),
                          other[at].link.nvlinks, who);
    }
  }
  if (differing == 0) return;
  const std::string more = differing > 1 ? fmt::format(" (and {} pairs more)", differing - 1) : "";
  Problem(fmt::format("{}{}; the {} counts", first, more, MachineSourceName(result_.links)));
}

void Resolver::TakeLinks() {
  const std::optional<Links> scores = ScoreLinks();
  if (!rows_.empty()) {
    result_.links = MachineSource::kMatrix;
    links_ = MatrixLinks();
    if (scores) Compare("scores", *scores);
  } else if (scores) {
    result_.links = MachineSource::kScores;
    links_ = *scores;
  }
  result_.verified = result_.links != MachineSource::kNone;
  if (result_.verified && catalogue_ != nullptr) Compare("catalogue", CatalogueLinks());
}

// NVLinks of the catalogue, or none. The rest of the node's own words confirm the catalogue where
// they fit its board.
void Resolver::TakeLesserLinks() {
  links_.assign(count_ * count_, ToldLink{});
  if (!slices_.empty()) {
    result_.links = MachineSource::kSlices;
  } else if (!zones_.empty()) {
    result_.links = MachineSource::kZones;
  }
  if (catalogue_ == nullptr) return;
  links_ = CatalogueLinks();
  result_.links = MachineSource::kCatalogue;
  result_.verified = catalogue_fits_ && (SlicesCoverAll() || zones_say_ == Verdict::kConfirms);
}

// False: somebody better told another node.
bool Resolver::TellNuma(std::size_t gpu, Numa numa, std::string_view who) {
  Numa& known = gpus_[gpu].numa;
  if (!numa || known == numa) return true;
  if (!known) {
    known = numa;
    numa_from_[gpu] = who;
    return true;
  }
  Problem(fmt::format("{}: NUMA node {} by the {}, {} by the {}; the {} counts", Name(gpu), *known,
                      numa_from_[gpu], *numa, who, numa_from_[gpu]));
  return false;
}

void Resolver::SettleNuma() {
  for (std::size_t gpu = 0; gpu < count_; ++gpu) {
    if (!rows_.empty()) TellNuma(gpu, sources_.matrix->gpus()[rows_[gpu]].numa, "matrix");
    if (!slices_.empty() && slices_[gpu] != nullptr) TellNuma(gpu, slices_[gpu]->numa, "slices");
    TellNuma(gpu, sources_.gpus[gpu].numa, "agent");
  }
  const std::vector<MachineGpu> told = gpus_;
  for (std::size_t gpu = 0; gpu < count_ && catalogue_ != nullptr; ++gpu) {
    // Where the node tells its links itself, other NUMA nodes than usual are no news.
    if (result_.verified && gpus_[gpu].numa) continue;
    catalogue_fits_ &= TellNuma(gpu, catalogue_->gpus()[gpu].numa, "catalogue");
  }
  zones_say_ = ZonesSay();
  if (zones_say_ == Verdict::kContradicts) {
    catalogue_fits_ = false;
    gpus_ = told;
  }
  LabelByZones();
}

// Do the counts fit the GPUs' NUMA nodes? Where not all nodes are known, equal counts fit: boards
// of the catalogue are symmetric.
Verdict Resolver::ZonesSay() {
  if (zones_.empty()) return Verdict::kSilent;
  int64_t total = 0;
  bool equal = true;
  for (const auto& [zone, gpus] : zones_) {
    total += gpus;
    equal = equal && gpus == zones_.begin()->second;
  }
  if (total != static_cast<int64_t>(count_)) {
    Problem(fmt::format("zones: expected {} GPUs in all of them, found {}", count_, total));
    return Verdict::kContradicts;
  }
  std::map<int, int64_t> counts;
  for (const MachineGpu& gpu : gpus_) {
    if (!gpu.numa) return equal ? Verdict::kConfirms : Verdict::kSilent;
    ++counts[*gpu.numa];
  }
  if (counts == zones_) return Verdict::kConfirms;
  Problem(fmt::format("zones: expected GPUs on NUMA nodes as other sources tell ({}), found ({})",
                      CountsText(counts), CountsText(zones_)));
  return Verdict::kContradicts;
}

// Zones tell how many, not which. With one of them that is the same; and GPUs that nobody can tell
// apart (no UUIDs: their positions are numbers of ours) may be numbered zone by zone.
void Resolver::LabelByZones() {
  const bool any_known = std::any_of(gpus_.begin(), gpus_.end(),
                                     [](const MachineGpu& gpu) { return gpu.numa.has_value(); });
  const bool any_uuid = std::any_of(gpus_.begin(), gpus_.end(),
                                    [](const MachineGpu& gpu) { return !gpu.uuid.empty(); });
  const bool alike = rows_.empty() && (catalogue_ == nullptr || catalogue_->uniform());
  if (any_known || zones_say_ == Verdict::kContradicts) return;
  if (zones_.size() > 1 && (any_uuid || !alike)) return;
  std::size_t gpu = 0;
  for (const auto& [zone, count] : zones_) {
    for (int64_t at = 0; at < count; ++at) TellNuma(gpu++, zone, "zones");
  }
}

// The way over PCIe where the links' source is silent about it.
PathClass Resolver::PathOf(std::size_t left, std::size_t right) const {
  if (!slices_.empty() && slices_[left] != nullptr && slices_[right] != nullptr &&
      SameRoot(slices_[left]->pcie_root, slices_[right]->pcie_root)) {
    return kWithinRoot;
  }
  return InferredPath(gpus_[left].numa, gpus_[right].numa);
}

std::vector<MachineNic> Resolver::SliceNics() const {
  std::vector<MachineNic> nics;
  for (const SliceDevice& device : *sources_.slices) {
    if (!device.is_nic || (device.pcie_root.empty() && !device.numa)) continue;
    MachineNic nic{device.name, true, {}};
    for (std::size_t gpu = 0; gpu < count_; ++gpu) {
      const bool same = !slices_.empty() && slices_[gpu] != nullptr &&
                        SameRoot(slices_[gpu]->pcie_root, device.pcie_root);
      nic.paths.push_back(same ? kWithinRoot : InferredPath(gpus_[gpu].numa, device.numa));
    }
    nics.push_back(std::move(nic));
  }
  MarkFabric(nics);
  return nics;
}

std::vector<MachineNic> Resolver::Nics() const {
  std::vector<MachineNic> nics;
  if (!rows_.empty()) {
    for (const MachineNic& seen : sources_.matrix->nics()) {
      MachineNic nic{seen.name, seen.fabric, {}};
      for (const std::size_t row : rows_) nic.paths.push_back(seen.paths[row]);
      nics.push_back(std::move(nic));
    }
  }
  if (nics.empty() && sources_.slices != nullptr) return SliceNics();
  return nics;
}

// Is there more to say than how many GPUs there are?
bool Resolver::Knows() const {
  return result_.links != MachineSource::kNone ||
         std::any_of(gpus_.begin(), gpus_.end(),
                     [](const MachineGpu& gpu) { return gpu.numa.has_value(); });
}

void Resolver::Build() {
  std::vector<Link> links;
  for (std::size_t left = 0; left < count_; ++left) {
    for (std::size_t right = 0; right < count_; ++right) {
      ToldLink& told = links_[left * count_ + right];
      if (!told.path_told) told.link.path = PathOf(left, right);
      links.push_back(told.link);
    }
  }
  result_.machine = std::make_shared<const Machine>(std::move(gpus_), std::move(links), Nics());
}

ResolvedMachine Resolver::Resolve() {
  if (count_ > std::size_t{kMaxMachineGpus}) {
    Problem(fmt::format("expected at most {} GPUs, found {}", kMaxMachineGpus, count_));
    return std::move(result_);
  }
  for (const NodeGpu& gpu : sources_.gpus) gpus_.push_back({Name(gpus_.size()), gpu.uuid, {}, {}});
  numa_from_.resize(count_);
  catalogue_ = CatalogueMachine(sources_.product, sources_.machine, static_cast<int>(count_));
  for (std::size_t at = 0; sources_.zones != nullptr && at < sources_.zones->size(); ++at) {
    const ZoneCounts& zone = (*sources_.zones)[at];
    if (zone.gpus_capacity > 0) zones_[zone.zone] = std::min(zone.gpus_capacity, kMostInZone);
  }
  FindMatrixRows();
  FindSlices();
  for (std::size_t gpu = 0; gpu < rows_.size(); ++gpu) {
    gpus_[gpu].cpus = sources_.matrix->gpus()[rows_[gpu]].cpus;
  }
  TakeLinks();
  SettleNuma();
  if (result_.links == MachineSource::kNone) TakeLesserLinks();
  if (Knows()) Build();
  return std::move(result_);
}

}  // namespace

std::string_view MachineSourceName(MachineSource source) {
  return kSourceNames[static_cast<std::size_t>(source)];
}

ResolvedMachine ResolveMachine(const MachineSources& sources) {
  if (sources.gpus.empty()) return {};
  return Resolver(sources).Resolve();
}

}  // namespace tranche
