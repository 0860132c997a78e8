#include "scheduler/wire/records/checkpoint_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

constexpr std::string_view kCheckpointPath = "status.checkpoint";
constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kMostModel = 63 + 1 + 253;  // line_name.h

// ---- writing ----------------------------------------------------------------------------------

Json MarkJson(const CheckpointMark& mark) {
  return {{"ledger", mark.ledger}, {"entry", mark.entry}, {"time", FormatTime(mark.at)}};
}

Json UseJson(const TimeSpan& span, const GpuTime& time) {
  return {{"start", FormatTime(span.start)},
          {"end", FormatTime(span.end)},
          {"compute", FormatInt128(time.compute)},
          {"memory", FormatInt128(time.memory)}};
}

// ---- reading ----------------------------------------------------------------------------------

class Reader : public FieldReader {
 public:
  Instant ReadTime(Object parent, std::string_view key, std::string_view where) {
    const std::string_view text = ReadText(parent, key, where);
    const auto time = ParseTime(text);
    if (!time)
      Fail(fmt::format("{}.{}: expected an RFC 3339 time, found {}", where, key, Quoted(text)));
    return time.value_or(Instant());
  }

  Int128 AsAmount(std::string_view text, const std::string& where) {
    const std::optional<Int128> amount = ParseInt128(text);
    if (!amount || *amount < 0 || *amount > kMostCheckpointed) {
      Fail(fmt::format("{}: expected a whole number of 0 to 10^36, found {}", where, Quoted(text)));
      return 0;
    }
    return *amount;
  }

  Int128 ReadAmount(Object parent, std::string_view key, std::string_view where) {
    return AsAmount(ReadText(parent, key, where), fmt::format("{}.{}", where, key));
  }

  std::vector<Element> ReadList(Object parent, std::string_view key, std::size_t most) {
    std::vector<Element> items;
    const std::optional<Array> array = ReadArray(parent, key, kCheckpointPath);
    if (!array) return items;
    for (const Element item : *array) {
      if (items.size() == most) {
        Fail(fmt::format("{}.{}: expected at most {} items, found more", kCheckpointPath, key,
                         most));
        break;
      }
      items.push_back(item);
    }
    return items;
  }

  CheckpointMark ReadMark(Object checkpoint) {
    CheckpointMark mark;
    mark.ledger = ReadText(checkpoint, "ledger", kCheckpointPath);
    if (mark.ledger.size() != kIdDigits ||
        mark.ledger.find_first_not_of("0123456789abcdef") != std::string::npos) {
      Fail(fmt::format("{}.ledger: expected 32 hex digits, found {}", kCheckpointPath,
                       Quoted(mark.ledger)));
    }
    mark.entry =
        ReadInteger(checkpoint, "entry", kCheckpointPath, {0, std::numeric_limits<int64_t>::max()})
            .value_or(0);
    mark.at = ReadTime(checkpoint, "time", kCheckpointPath);
    return mark;
  }

  // Span and amounts of an item.
  std::pair<TimeSpan, GpuTime> ReadUse(Object item, const std::string& where) {
    const TimeSpan span{ReadTime(item, "start", where), ReadTime(item, "end", where)};
    const GpuTime time{ReadAmount(item, "compute", where), ReadAmount(item, "memory", where)};
    if (ok() && span.end <= span.start) {
      Fail(fmt::format("{}.end: expected a time after {}, found {}", where, FormatTime(span.start),
                       FormatTime(span.end)));
    }
    return {span, time};
  }
};

// The object's checkpoint, read by `read(reader, members)`.
template <typename Checkpoint, typename Read>
absl::StatusOr<std::optional<Checkpoint>> Decode(std::string_view json, Read read) {
  Parser parser;
  TRANCHE_ASSIGN_OR_RETURN(const Element root, parser.Parse(json));
  Reader reader;
  const std::optional<Object> object = reader.AsObject(root, "the object");
  if (!object) return reader.status();
  const std::optional<Object> status = reader.ReadObject(*object, "status", "");
  std::optional<Object> members;
  if (status) members = reader.ReadObject(*status, "checkpoint", "status");
  if (!reader.ok()) return reader.status();
  if (!members) return std::optional<Checkpoint>();
  Checkpoint checkpoint = read(reader, *members);
  if (!reader.ok()) return reader.status();
  return std::optional<Checkpoint>(std::move(checkpoint));
}

std::string ItemAt(std::string_view list, std::size_t index) {
  return fmt::format("{}.{}[{}]", kCheckpointPath, list, index);
}

BudgetCheckpoint ReadBudget(Reader& reader, Object members) {
  BudgetCheckpoint checkpoint;
  checkpoint.mark = reader.ReadMark(members);
  BudgetStand& stand = checkpoint.stand;
  stand.at = checkpoint.mark.at;
  stand.window = {reader.ReadTime(members, "windowStart", kCheckpointPath),
                  reader.ReadTime(members, "windowEnd", kCheckpointPath)};
  std::size_t index = 0;
  for (const Element item : reader.ReadList(members, "parts", kMostStandParts)) {
    const std::string where = ItemAt("parts", index++);
    const std::optional<Object> part = reader.AsObject(item, where);
    if (!part) break;
    const auto [span, used] = reader.ReadUse(*part, where);
    stand.parts.push_back({span, used});
  }
  index = 0;
  for (const Element item : reader.ReadList(members, "carried", kMostCarried)) {
    const std::string where = ItemAt("carried", index++);
    const std::optional<std::string_view> text = reader.AsText(item, where);
    if (text) stand.carried_in.push_back(reader.AsAmount(*text, where));
  }
  stand.debt_in = reader.ReadAmount(members, "debtIn", kCheckpointPath);
  return checkpoint;
}

LeafCheckpoint ReadLeaf(Reader& reader, Object members) {
  LeafCheckpoint checkpoint;
  checkpoint.mark = reader.ReadMark(members);
  std::size_t index = 0;
  for (const Element item : reader.ReadList(members, "uses", kMostLeafUses)) {
    const std::string where = ItemAt("uses", index++);
    const std::optional<Object> use = reader.AsObject(item, where);
    if (!use) break;
    const std::string_view model = reader.ReadText(*use, "model", where);
    if (model.empty() || model.size() > kMostModel) {
      reader.Fail(fmt::format("{}.model: expected 1 to {} characters, found {}", where, kMostModel,
                              Quoted(model)));
    }
    const auto [span, time] = reader.ReadUse(*use, where);
    checkpoint.uses.push_back({std::string(model), span, time});
  }
  return checkpoint;
}

}  // namespace

std::string EncodeCheckpoint(const BudgetCheckpoint& checkpoint) {
  const BudgetStand& stand = checkpoint.stand;
  Json json = MarkJson(checkpoint.mark);
  json["windowStart"] = FormatTime(stand.window.start);
  json["windowEnd"] = FormatTime(stand.window.end);
  json["parts"] =
      ListOf(stand.parts, [](const auto& part) { return UseJson(part.span, part.used); });
  json["carried"] = ListOf(stand.carried_in, FormatInt128);
  json["debtIn"] = FormatInt128(stand.debt_in);
  return Dump(json);
}

std::string EncodeCheckpoint(const LeafCheckpoint& checkpoint) {
  Json json = MarkJson(checkpoint.mark);
  json["uses"] = ListOf(checkpoint.uses, [](const LeafUse& use) {
    Json entry = {{"model", use.model}};
    entry.update(UseJson(use.span, use.time));
    return entry;
  });
  return Dump(json);
}

absl::StatusOr<std::optional<BudgetCheckpoint>> DecodeBudgetCheckpoint(std::string_view json) {
  return Decode<BudgetCheckpoint>(json, ReadBudget);
}

absl::StatusOr<std::optional<LeafCheckpoint>> DecodeLeafCheckpoint(std::string_view json) {
  return Decode<LeafCheckpoint>(json, ReadLeaf);
}

}  // namespace tranche::wire
