#include "scheduler/ledger/bill/fleet_text.h"

#include <array>
#include <optional>

#include "fmt/format.h"
#include "policy/decode.h"
#include "policy/field.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr std::size_t kMostName = 253;
constexpr std::size_t kMostLabel = 63;
constexpr std::size_t kMostModels = 16;
constexpr std::array kCapacities = {Choice<CapacityType>{"OnDemand", CapacityType::kOnDemand},
                                    Choice<CapacityType>{"Reserved", CapacityType::kReserved},
                                    Choice<CapacityType>{"Spot", CapacityType::kSpot}};

void ReadWord(const Field& field, std::size_t most, std::string& target) {
  const auto text = field.Text();
  if (text && IsWord(*text, most, Letters::kAny, "-._")) {
    target = *text;
  } else {
    field.Fail("a name of letters, digits, -, . and _");
  }
}

void ReadGone(const Field& field, bool& target) {
  if (const auto gone = field.Bool(); gone == true) {
    target = true;
  } else {
    field.Fail("true");
  }
}

void ReadGpus(const Field& field, NodeOffer& offer) {
  for (const Field& item : field.Items(1, kMostModels)) {
    auto& [model, count] = offer.gpus.emplace_back();
    item.ReadMembers(
        {{"model", [&](const Field& name) { ReadWord(name, kMostLabel, model); }, "a GPU model"},
         {"count", [&](const Field& gpus) { ReadInteger(gpus, 1, kMostGpusOfNode, count); },
          "a number of GPUs"}});
  }
}

// The members that say how a node is paid for, each after a comma.
std::string TraitsText(const NodeTraits& traits) {
  std::string text;
  if (IsFleetName(traits.pool)) text += fmt::format(R"(,"pool":"{}")", traits.pool);
  if (traits.capacity) {
    text += fmt::format(R"(,"capacity":"{}")", CapacityTypeName(*traits.capacity));
  }
  if (IsWord(traits.instance_type, kMostLabel, Letters::kAny, "-._")) {
    text += fmt::format(R"(,"instanceType":"{}")", traits.instance_type);
  }
  return text;
}

// The readers of these.
Field::Member PoolOf(NodeTraits& traits) {
  return {"pool", [&traits](const Field& field) { ReadWord(field, kMostName, traits.pool); }};
}
Field::Member CapacityOf(NodeTraits& traits) {
  return {"capacity", [&traits](const Field& field) {
            CapacityType type{};
            if (ReadChoice(field, kCapacities, type)) traits.capacity = type;
          }};
}
Field::Member InstanceTypeOf(NodeTraits& traits) {
  return {"instanceType",
          [&traits](const Field& field) { ReadWord(field, kMostLabel, traits.instance_type); }};
}

}  // namespace

bool IsFleetName(std::string_view text) { return IsWord(text, kMostName, Letters::kAny, "-._"); }

std::string NodeText(const NodeOffer& offer) {
  std::string gpus;
  for (const auto& [model, count] : offer.gpus) {
    gpus += fmt::format(R"({}{{"model":"{}","count":{}}})", gpus.empty() ? "" : ",", model, count);
  }
  return fmt::format(R"({{"node":"{}","gpus":[{}]{}}})", offer.node, gpus,
                     TraitsText(offer.traits));
}

std::string StrandedText(const StrandedGpus& stranded) {
  return fmt::format(R"({{"stranded":{},"model":"{}"{}}})", stranded.milli, stranded.model,
                     TraitsText(stranded.traits));
}

std::string KindText(std::string_view model, const NodeTraits& traits) {
  return StrandedText({std::string(model), traits, 0});
}

std::string PriceText(const GpuPrice& price) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{}}})", price.name,
                     PriceSpecText(price));
}

std::string GoneNodeText(std::string_view node) {
  return fmt::format(R"({{"node":"{}","gone":true}})", node);
}

std::string GonePriceText(std::string_view price) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"gone":true}})", price);
}

absl::StatusOr<NodeOffer> ReadNodeText(std::string_view text) {
  NodeOffer offer;
  bool gone = false;
  TRANCHE_RETURN_IF_ERROR(ReadJson("note", text, [&](const Field& root) {
    root.ReadMembers(
        {{"node", [&](const Field& field) { ReadWord(field, kMostName, offer.node); }, "a name"},
         {"gone", [&](const Field& field) { ReadGone(field, gone); }},
         {"gpus", [&](const Field& field) { ReadGpus(field, offer); }},
         PoolOf(offer.traits),
         CapacityOf(offer.traits),
         InstanceTypeOf(offer.traits)});
    if (gone == !offer.gpus.empty()) root.Fail("either gpus or gone");
  }));
  return offer;
}

absl::StatusOr<StrandedGpus> ReadStrandedText(std::string_view text) {
  StrandedGpus stranded;
  TRANCHE_RETURN_IF_ERROR(ReadJson("note", text, [&](const Field& root) {
    root.ReadMembers(
        {{"stranded",
          [&](const Field& field) { ReadInteger(field, 0, kMostStrandedMilli, stranded.milli); },
          "thousandths of a GPU"},
         {"model", [&](const Field& field) { ReadWord(field, kMostLabel, stranded.model); },
          "a GPU model"},
         PoolOf(stranded.traits),
         CapacityOf(stranded.traits),
         InstanceTypeOf(stranded.traits)});
  }));
  return stranded;
}

absl::StatusOr<PriceOffer> ReadPriceText(std::string_view text) {
  PriceOffer offer;
  const auto read_name = [&](const Field& metadata) {
    metadata.ReadMembers(
        {{"name", [&](const Field& field) { ReadWord(field, kMostName, offer.name); }, "a name"}});
  };
  TRANCHE_RETURN_IF_ERROR(ReadJson("note", text, [&](const Field& root) {
    root.ReadMembers({{"metadata", read_name, "an object with a name"},
                      {"gone", [&](const Field& field) { ReadGone(field, offer.gone); }},
                      {"spec", [](const Field&) {}}});
  }));
  if (offer.gone) return offer;
  TRANCHE_ASSIGN_OR_RETURN(offer.price, DecodeGpuPrice(text));
  return offer;
}

}  // namespace tranche::ledger
