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

}  // namespace

bool IsFleetName(std::string_view text) { return IsWord(text, kMostName, Letters::kAny, "-._"); }

std::string NodeText(const NodeOffer& offer) {
  std::string gpus;
  for (const auto& [model, count] : offer.gpus) {
    gpus += fmt::format(R"({}{{"model":"{}","count":{}}})", gpus.empty() ? "" : ",", model, count);
  }
  std::string text = fmt::format(R"({{"node":"{}","gpus":[{}])", offer.node, gpus);
  const NodeTraits& traits = offer.traits;
  if (IsFleetName(traits.pool)) text += fmt::format(R"(,"pool":"{}")", traits.pool);
  if (traits.capacity) {
    text += fmt::format(R"(,"capacity":"{}")", CapacityTypeName(*traits.capacity));
  }
  if (IsWord(traits.instance_type, kMostLabel, Letters::kAny, "-._")) {
    text += fmt::format(R"(,"instanceType":"{}")", traits.instance_type);
  }
  return text + "}";
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
  const auto read_capacity = [&](const Field& field) {
    CapacityType type{};
    if (ReadChoice(field, kCapacities, type)) offer.traits.capacity = type;
  };
  TRANCHE_RETURN_IF_ERROR(ReadJson("note", text, [&](const Field& root) {
    root.ReadMembers(
        {{"node", [&](const Field& field) { ReadWord(field, kMostName, offer.node); }, "a name"},
         {"gone", [&](const Field& field) { ReadGone(field, gone); }},
         {"gpus", [&](const Field& field) { ReadGpus(field, offer); }},
         {"pool", [&](const Field& field) { ReadWord(field, kMostName, offer.traits.pool); }},
         {"capacity", read_capacity},
         {"instanceType",
          [&](const Field& field) { ReadWord(field, kMostLabel, offer.traits.instance_type); }}});
    if (gone == !offer.gpus.empty()) root.Fail("either gpus or gone");
  }));
  return offer;
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
