#include "test/sim/check/quota_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "test/sim/check/fit.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche::sim::check {
namespace {

constexpr const char* kAny = "any";

// "7.5", 7 or 7.5 as quanta; nullopt: it is no such amount.
std::optional<int64_t> QuantaOf(const Json& amount) {
  const Json& gpus = At(amount, {"gpus"});
  if (gpus.is_number_integer()) return gpus.get<int64_t>() * kQuantaPerGpu;
  if (!gpus.is_string() && !gpus.is_number()) return std::nullopt;
  const double value =
      gpus.is_number() ? gpus.get<double>() : std::atof(gpus.get_ref<const std::string&>().c_str());
  return static_cast<int64_t>(std::llround(value * 1000)) * kQuantaPerMilli;
}

std::string NameOf(const Json& line) {
  const std::string model = TextAt(line, {"model"});
  const std::string pool = TextAt(line, {"pool"});
  return (model.empty() ? kAny : model) + (pool.empty() ? "" : "@" + pool);
}

bool Selects(const Json& selector, const Json& labels) {
  if (!selector.is_object() || !At(selector, {"matchExpressions"}).is_null()) return false;
  const Json& wanted = At(selector, {"matchLabels"});
  if (!wanted.is_object()) return true;
  for (const auto& [key, value] : wanted.items()) {
    if (At(labels, {key.c_str()}) != value) return false;
  }
  return true;
}

}  // namespace

std::string OwnerOf(const Objects& quotas, const Objects& namespaces, const std::string& ns) {
  const auto found = namespaces.find(ns);
  if (found == namespaces.end()) return "";
  const Json& labels = At(found->second, {"metadata", "labels"});
  std::string owner;
  for (const auto& [name, quota] : quotas) {
    if (!Selects(At(quota, {"spec", "namespaceSelector"}), labels)) continue;
    if (!owner.empty()) return "";
    owner = name;
  }
  return owner;
}

QuotaModel::QuotaModel(const Objects& quotas, const Objects& namespaces)
    : quotas_(quotas), namespaces_(namespaces) {
  for (const auto& [name, quota] : quotas) {
    names_.push_back(name);
    specs_.push_back(At(quota, {"spec"}));
  }
  shape_.quotas.resize(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const std::string parent = TextAt(specs_[i], {"parent"});
    const int above = parent.empty() ? -1 : Number(parent);
    known_ = known_ && (parent.empty() || above >= 0);
    shape_.quotas[i].parent = above;
    if (above >= 0) {
      shape_.quotas[static_cast<std::size_t>(above)].children.push_back(static_cast<int>(i));
    }
    const Json& selector = At(specs_[i], {"namespaceSelector"});
    known_ = known_ && At(selector, {"matchExpressions"}).is_null();
  }
  CutCircles();
  AddLine(kAny);
  for (const Json& spec : specs_) {
    const Json& lines = At(spec, {"lines"});
    if (!lines.is_array()) continue;
    for (const Json& line : lines) AddLine(NameOf(line));
  }
  if (known_) ImplyAny();
}

// Users may declare quotas that are each other's parents, of which none is in force: not judged.
void QuotaModel::CutCircles() {
  for (int i = 0; i < static_cast<int>(names_.size()); ++i) {
    int at = i;
    for (std::size_t steps = 0; at != -1 && steps <= names_.size(); ++steps) {
      at = shape_.quotas[static_cast<std::size_t>(at)].parent;
    }
    known_ = known_ && at == -1;
  }
  if (known_) return;
  for (auto& quota : shape_.quotas) {
    quota.parent = -1;
    quota.children.clear();
  }
}

int QuotaModel::Number(const std::string& quota) const {
  const auto found = std::ranges::find(names_, quota);
  return found == names_.end() ? -1 : static_cast<int>(found - names_.begin());
}

void QuotaModel::AddLine(const std::string& name) {
  if (lines_.contains(name)) return;
  Line& line = lines_[name];
  std::vector<bool>& defined = defined_[name];
  defined.resize(names_.size());
  for (const Dimension dimension : kDimensions) line[dimension] = shape_;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const Json& lines = At(specs_[i], {"lines"});
    if (!lines.is_array()) continue;
    for (const Json& said : lines) {
      if (NameOf(said) != name) continue;
      defined[i] = true;
      const auto read = [&](const char* member) -> std::optional<int64_t> {
        const Json& amount = At(said, {member});
        if (amount.is_null()) return std::nullopt;
        const std::optional<int64_t> quanta = QuantaOf(amount);
        known_ = known_ && quanta;
        return quanta;
      };
      for (const Dimension dimension : kDimensions) {
        Oracle::Quota& quota = line[dimension].quotas[i];
        quota.nominal = read("nominal").value_or(0);
        if (const auto most = read("borrowLimit")) quota.borrow = *most;
        if (const auto most = read("lendLimit")) quota.lend = *most;
      }
    }
  }
}

// Where a tree has an `any` line, who has none has the sum of its models'.
void QuotaModel::ImplyAny() {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (defined_[kAny][i]) continue;
    for (const Dimension dimension : kDimensions) {
      Int128 sum = 0;
      for (auto& [model, line] : lines_) {
        if (model != kAny) sum += line[dimension].quotas[i].nominal;
      }
      lines_[kAny][dimension].quotas[i].nominal = sum;
    }
  }
}

bool QuotaModel::IsLimited(int quota, const std::string& line) const {
  const auto defined = defined_.find(line);
  if (defined == defined_.end()) return false;
  const int root = shape_.Root(quota);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (defined->second[i] && shape_.Root(static_cast<int>(i)) == root) return true;
  }
  return false;
}

std::vector<std::string> QuotaModel::LinesOf(int leaf, const std::string& model) const {
  std::vector<std::string> lines;
  const std::string& name = names_[static_cast<std::size_t>(leaf)];
  for (const std::string& line : {LineOf(name, model), std::string(kAny)}) {
    if (IsLimited(leaf, line)) lines.push_back(line);
  }
  return lines;
}

std::string QuotaModel::LineOf(const std::string& quota, const std::string& charged) const {
  const std::size_t at = charged.find('@');
  if (at == std::string::npos) return charged;
  const int number = Number(quota);
  for (const std::string& name : {charged, kAny + charged.substr(at)}) {
    if (number >= 0 && IsLimited(number, name)) return name;
  }
  return charged.substr(0, at);
}

bool QuotaModel::Enforces(const std::string& leaf) const {
  const int number = Number(leaf);
  if (number < 0) return false;
  const std::string mode = TextAt(specs_[static_cast<std::size_t>(number)], {"mode"});
  return mode.empty() || mode == "Enforce";
}

std::string QuotaModel::CommonAncestor(const std::string& a, const std::string& b) const {
  const int first = Number(a);
  const int second = Number(b);
  if (first < 0 || second < 0) return "";
  const std::vector<int> others = shape_.Path(second);
  for (const int n : shape_.Path(first)) {
    if (std::ranges::find(others, n) != others.end()) return names_[static_cast<std::size_t>(n)];
  }
  return "";
}

void QuotaModel::Use(const std::string& quota, const Holding& holding) {
  const int number = Number(quota);
  if (number < 0) return;
  for (const std::string& name : {LineOf(quota, holding.model), std::string(kAny)}) {
    const auto line = lines_.find(name);
    if (line == lines_.end()) continue;
    for (const Dimension dimension : kDimensions) {
      line->second[dimension].quotas[static_cast<std::size_t>(number)].own +=
          PartOf(holding.charge, dimension);
    }
  }
}

bool QuotaModel::Admits(const std::string& leaf, const Holding& more) const {
  const int number = Number(leaf);
  for (const std::string& line : LinesOf(number, more.model)) {
    for (const Dimension dimension : kDimensions) {
      const int64_t wanted = PartOf(more.charge, dimension);
      if (wanted > 0 && lines_.at(line).at(dimension).Available(number) < wanted) return false;
    }
  }
  return true;
}

bool QuotaModel::WithinNominal(const std::string& leaf, const Holding& more) const {
  const int number = Number(leaf);
  for (const std::string& line : LinesOf(number, more.model)) {
    for (const Dimension dimension : kDimensions) {
      const Oracle::Quota& quota = lines_.at(line).at(dimension).At(number);
      if (quota.own + PartOf(more.charge, dimension) > quota.nominal) return false;
    }
  }
  return true;
}

std::optional<int64_t> QuotaModel::Nominal(const std::string& leaf, const std::string& line,
                                           Dimension dimension) const {
  const int number = Number(leaf);
  if (number < 0 || !IsLimited(number, line)) return std::nullopt;
  return static_cast<int64_t>(lines_.at(line).at(dimension).At(number).nominal);
}

namespace {

// What HAMi's agent tells of its cards' memory, which counts more than the node's label.
std::map<std::string, Mebibytes> RegisteredMemory(const Json& node) {
  std::map<std::string, Mebibytes> memory;
  const Json cards = Json::parse(Annotation(node, "hami.io/node-nvidia-register"), nullptr,
                                 /*allow_exceptions=*/false);
  if (!cards.is_array()) return memory;
  for (const Json& card : cards) {
    const Json& size = At(card, {"devmem"});
    if (size.is_number_integer()) memory[TextAt(card, {"id"})] = Mebibytes::Of(size.get<int64_t>());
  }
  return memory;
}

}  // namespace

std::optional<Holding> HoldingOf(const Record& record, const Json& node) {
  const std::string product = Label(node, "nvidia.com/gpu.product");
  if (product.empty()) return std::nullopt;
  const std::string memory = Label(node, "nvidia.com/gpu.memory");
  const Mebibytes labelled = Mebibytes::Of(std::atoll(memory.c_str()));
  const std::map<std::string, Mebibytes> registered = RegisteredMemory(node);
  const MigBoard* const board = FindMigBoard(product, Mebibytes::Of(0));
  Holding holding{GpuModelName(BaseProduct(product)), {}};
  if (const std::string pool = Label(node, kPoolLabel); !pool.empty()) holding.model += "@" + pool;
  for (const RecordDevice& device : record.devices) {
    Charge charge;
    if (device.profile.empty()) {
      const auto told = registered.find(device.id);
      const Mebibytes card = told == registered.end() ? labelled : told->second;
      charge = ChargeOfShare(MilliGpu::Of(device.milli), Mebibytes::Of(device.mib), card);
      if (charge.compute == 0) charge.compute = charge.memory;  // what memory alone was asked of
    } else {
      const MigProfile* const profile =
          board == nullptr ? nullptr : FindMigProfile(*board, device.profile);
      if (profile == nullptr) return std::nullopt;
      charge = ChargeOfMig(*board, *profile);
    }
    holding.charge = AddSaturating(holding.charge, charge);
  }
  return holding;
}

std::optional<Holding> HoldingOf(const PodLife& pod, const Json& now) {
  const Json& node =
      Label(pod.machine, "nvidia.com/gpu.product").empty() ? now : pod.machine.json();
  return pod.record ? HoldingOf(*pod.record, node) : KeptHolding(pod, node);
}

std::optional<Holding> KeptHolding(const PodLife& pod, const Json& node) {
  constexpr int64_t kAnyCard = 1 << 30;  // MiB, more than a card has
  RecordDevice whole;
  whole.milli = 1000;
  whole.mib = kAnyCard;
  Record asked;
  asked.devices.resize(static_cast<std::size_t>(GpusOf(pod)), whole);
  return HoldingOf(asked, node);
}

std::optional<std::vector<Holding>> HoldingsOf(const Allocation& allocation) {
  std::vector<Holding> holdings;
  for (const ClaimDevice& device : allocation.devices) {
    if (device.product.empty()) return std::nullopt;
    // As the node's label would have it.
    std::string product = device.product;
    std::ranges::replace(product, ' ', '-');
    Charge charge{kQuantaPerGpu, kQuantaPerGpu};
    if (!device.profile.empty()) {
      const MigBoard* const board = FindMigBoard(product, Mebibytes::Of(0));
      const MigProfile* const profile =
          board == nullptr ? nullptr : FindMigProfile(*board, device.profile);
      if (profile == nullptr) return std::nullopt;
      charge = ChargeOfMig(*board, *profile);
    }
    holdings.push_back({GpuModelName(product), charge});
  }
  return holdings;
}

}  // namespace tranche::sim::check
