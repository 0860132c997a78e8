#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/field.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr int64_t kMostPerGpuHour = 999'999;
constexpr size_t kMostHours = 16;
constexpr size_t kMaxInstanceType = 63;  // a label's value
constexpr size_t kCurrencyLetters = 3;

constexpr std::array kPriceCapacities = {Choice<CapacityType>{"OnDemand", CapacityType::kOnDemand},
                                         Choice<CapacityType>{"Reserved", CapacityType::kReserved},
                                         Choice<CapacityType>{"Spot", CapacityType::kSpot}};
void ReadCurrency(const Field& field, std::string& target) {
  const auto text = field.Text();
  if (text && text->size() == kCurrencyLetters &&
      std::all_of(text->begin(), text->end(), [](char c) { return c >= 'A' && c <= 'Z'; })) {
    target = *text;
  } else {
    field.Fail("three capital letters, such as \"USD\"");
  }
}

void ReadInstanceType(const Field& field, std::string& target) {
  const auto text = field.Text();
  if (text && IsWord(*text, kMaxInstanceType, Letters::kAny, "-._")) {
    target = *text;
  } else {
    field.Fail("a label's value that is not empty");
  }
}

void ReadPricedModel(const Field& field, std::string& target) {
  const std::optional<std::string> model = ModelOf(field);
  if (model == kAnyModel) field.Fail("a GPU model name; absent: any");
  Assign(target, model);
}

}  // namespace

absl::StatusOr<GpuPrice> DecodeGpuPrice(std::string_view json) {
  ObjectHead head;
  GpuPrice price;
  const auto read_capacity = [&](const Field& field) {
    CapacityType type{};
    if (ReadChoice(field, kPriceCapacities, type)) price.capacity = type;
  };
  const auto read_hours = [&](const Field& field) {
    for (const Field& hours : field.Items(0, kMostHours)) price.hours.push_back(WeekHoursOf(hours));
  };
  TRANCHE_RETURN_IF_ERROR(
      ReadDeclared("GPUPrice", json, SpecPresence::kRequired, head, [&](const Field& spec) {
        spec.ReadMembers(
            {{"perGpuHour",
              [&](const Field& field) {
                Assign(price.micros_per_gpu_hour, MillionthsOf(field, kMostPerGpuHour));
              },
              "a decimal"},
             {"currency", [&](const Field& field) { ReadCurrency(field, price.currency); },
              "three capital letters, such as \"USD\""},
             {"model", [&](const Field& field) { ReadPricedModel(field, price.model); }},
             {"pool", [&](const Field& field) { ReadName(field, price.pool); }},
             {"capacity", read_capacity},
             {"instanceType",
              [&](const Field& field) { ReadInstanceType(field, price.instance_type); }},
             {"hours", read_hours},
             {"timeZone", [&](const Field& field) { Assign(price.zone, ZoneOf(field)); }}});
      }));
  price.name = head.name;
  return price;
}

}  // namespace tranche
