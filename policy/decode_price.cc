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
constexpr size_t kMostDays = 7;
constexpr size_t kMaxInstanceType = 63;  // a label's value
constexpr size_t kCurrencyLetters = 3;

constexpr std::array kPriceCapacities = {Choice<CapacityType>{"OnDemand", CapacityType::kOnDemand},
                                         Choice<CapacityType>{"Reserved", CapacityType::kReserved},
                                         Choice<CapacityType>{"Spot", CapacityType::kSpot}};
constexpr std::array kWeekdays = {
    Choice<int>{"Mon", 0}, Choice<int>{"Tue", 1}, Choice<int>{"Wed", 2}, Choice<int>{"Thu", 3},
    Choice<int>{"Fri", 4}, Choice<int>{"Sat", 5}, Choice<int>{"Sun", 6}};

// "08:30" -> 510; "24:00" is the end of the day.
std::optional<int> MinuteOf(std::string_view text) {
  constexpr std::string_view kShape = "00:00";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != kShape.size() || text[2] != ':') return std::nullopt;
  for (const size_t at : {0, 1, 3, 4}) {
    if (!is_digit(text[at])) return std::nullopt;
  }
  const int hour = (text[0] - '0') * 10 + (text[1] - '0');
  const int minute = (text[3] - '0') * 10 + (text[4] - '0');
  if (minute > 59 || hour > 24 || (hour == 24 && minute > 0)) return std::nullopt;
  return hour * 60 + minute;
}

bool ReadMinute(const Field& field, int most, std::string_view rule, int& target) {
  const auto text = field.Text();
  const std::optional<int> minute = text ? MinuteOf(*text) : std::nullopt;
  if (!minute || *minute > most) {
    field.Fail(rule);
    return false;
  }
  target = *minute;
  return true;
}

uint8_t ReadDays(const Field& field) {
  unsigned days = 0;
  for (const Field& item : field.Items(1, kMostDays)) {
    int day = 0;
    if (!ReadChoice(item, kWeekdays, day)) continue;
    if ((days >> day & 1U) != 0) item.Fail("every item once");
    days |= 1U << day;
  }
  return static_cast<uint8_t>(days);
}

void ReadHours(const Field& field, std::vector<PriceHours>& target) {
  constexpr int kMinutes = 24 * 60;
  PriceHours hours;
  int ends = 0;
  field.ReadMembers({{"days", [&](const Field& days) { hours.days = ReadDays(days); }},
                     {"from",
                      [&](const Field& from) {
                        ends += ReadMinute(from, kMinutes - 1,
                                           "a time of the day, \"00:00\" to \"23:59\"", hours.from)
                                    ? 1
                                    : 0;
                      },
                      "a time of the day"},
                     {"to",
                      [&](const Field& to) {
                        ends += ReadMinute(to, kMinutes,
                                           "a time of the day, \"00:00\" to \"24:00\"", hours.to)
                                    ? 1
                                    : 0;
                      },
                      "a time of the day"}});
  if (ends == 2 && hours.from == hours.to) field.Fail("to to be another time than from");
  target.push_back(hours);
}

void ReadPriceZone(const Field& field, TimeZone& target) {
  const auto text = field.Text();
  const std::optional<TimeZone> zone = text ? TimeZone::Load(*text) : std::nullopt;
  if (zone) {
    target = *zone;
  } else {
    field.Fail("a time zone this machine knows, such as \"Europe/Paris\"");
  }
}

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
    for (const Field& hours : field.Items(0, kMostHours)) ReadHours(hours, price.hours);
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
             {"timeZone", [&](const Field& field) { ReadPriceZone(field, price.zone); }}});
      }));
  price.name = head.name;
  return price;
}

}  // namespace tranche
