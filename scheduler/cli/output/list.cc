#include "scheduler/cli/output/list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include "scheduler/cli/output/suggestion.h"
#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

using Kind = OutputFormat::Kind;

// "FREE GIB", "free-gib" and "free_gib" are one column.
std::string ColumnKey(std::string_view title) {
  std::string key;
  for (const char c : title) {
    if (c == ' ' || c == '-' || c == '_') continue;
    key += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return key;
}

bool IsPath(std::string_view key) { return key.starts_with('.') || key.starts_with('{'); }

// The place of the column that the key names.
std::optional<std::size_t> ColumnOf(const ListShape& shape, std::string_view key) {
  for (std::size_t at = 0; at < shape.columns.size(); ++at) {
    if (ColumnKey(shape.columns[at].title) == ColumnKey(key)) return at;
  }
  return std::nullopt;
}

// "40", "12.5%" and "3m" are no texts, so that 9 stands before 10.
std::optional<double> NumberIn(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.empty() || unit == "%" || unit == " GPU-s") return number;
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return number * factor;
  }
  return std::nullopt;
}

// Numbers before texts, "-" (nothing is known) last.
bool Before(const std::string& left, const std::string& right) {
  const auto nothing = [](const std::string& text) { return text.empty() || text == "-"; };
  if (nothing(left) || nothing(right)) return !nothing(left) && nothing(right);
  const std::optional<double> a = NumberIn(left);
  const std::optional<double> b = NumberIn(right);
  if (a && b) return *a < *b;
  if (a || b) return a.has_value();
  return left < right;
}

// What an object is sorted by. The key has passed CheckSortKey.
std::vector<std::string> SortCells(const ListShape& shape, std::string_view key,
                                   const Json& answer) {
  std::vector<std::string> cells;
  const std::optional<std::size_t> column = ColumnOf(shape, key);
  const absl::StatusOr<JsonPath> path =
      column ? absl::NotFoundError("a column") : JsonPath::Parse(key);
  for (const Json& object : answer.at(shape.member)) {
    std::string& cell = cells.emplace_back("-");
    if (column) {
      const Rows rows = shape.rows(object, answer);
      if (!rows.empty()) cell = rows.front()[*column];
    } else if (path.ok()) {
      const std::vector<const Json*> found = path->Find(object);
      if (!found.empty() && !found.front()->is_null()) cell = PlainText(*found.front());
    }
  }
  return cells;
}

void Sort(const ListShape& shape, std::string_view key, Json& answer) {
  const bool backwards = key.starts_with('-');
  if (backwards) key.remove_prefix(1);
  const std::vector<std::string> cells = SortCells(shape, key, answer);
  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return backwards ? Before(cells[right], cells[left]) : Before(cells[left], cells[right]);
  });
  Json& objects = answer.at(shape.member);
  Json sorted = Json::array();
  for (const std::size_t at : order) sorted.push_back(std::move(objects[at]));
  objects = std::move(sorted);
}

// The name that was asked for, or it alone without its namespace.
bool IsCalled(const ListShape& shape, const Json& object, const std::string& name) {
  const std::string whole = shape.name(object);
  if (whole == name) return true;
  return shape.of_namespaces && name.find('/') == std::string::npos && Text(object, "name") == name;
}

bool IsIn(const ListShape& shape, const Json& object, const std::string& ns) {
  if (shape.belongs != nullptr && !shape.belongs(object)) return false;
  return !shape.of_namespaces || ns.empty() || Text(object, "namespace") == ns;
}

std::string Titles(const ListShape& shape) {
  std::vector<std::string> titles;
  for (const ListColumn& column : shape.columns) titles.emplace_back(column.title);
  return fmt::format("{}", fmt::join(titles, ", "));
}

// Which columns the format shows.
std::vector<std::size_t> ShownColumns(const ListShape& shape, Kind kind) {
  std::vector<std::size_t> shown;
  for (std::size_t at = 0; at < shape.columns.size(); ++at) {
    if (!shape.columns[at].wide || kind == Kind::kWide) shown.push_back(at);
  }
  return shown;
}

std::vector<std::string> TableTitles(const ListShape& shape, const ListWish& wish) {
  std::vector<std::string> titles;
  for (const CustomColumn& column : wish.format.columns) titles.push_back(column.title);
  if (wish.format.kind == Kind::kCustomColumns) return titles;
  for (const std::size_t at : ShownColumns(shape, wish.format.kind)) {
    titles.emplace_back(shape.columns[at].title);
  }
  return titles;
}

Rows TableRows(const ListShape& shape, const ListWish& wish, const Json& object,
               const Json& answer) {
  Rows rows;
  if (wish.format.kind == Kind::kCustomColumns) {
    std::vector<std::string> cells;
    for (const CustomColumn& column : wish.format.columns) {
      std::string cell;
      for (const Json* value : column.path.Find(object)) {
        cell += (cell.empty() ? "" : ",") + PlainText(*value);
      }
      cells.push_back(cell.empty() ? "<none>" : std::move(cell));
    }
    rows.push_back(std::move(cells));
    return rows;
  }
  const std::vector<std::size_t> shown = ShownColumns(shape, wish.format.kind);
  for (const std::vector<std::string>& row : shape.rows(object, answer)) {
    std::vector<std::string>& cells = rows.emplace_back();
    for (const std::size_t at : shown) cells.push_back(row[at]);
  }
  return rows;
}

}  // namespace

absl::Status CheckSortKey(const ListShape& shape, const std::string& sort_by) {
  std::string_view key = sort_by;
  if (key.empty()) return absl::OkStatus();
  if (key.starts_with('-')) key.remove_prefix(1);
  if (IsPath(key)) {
    const absl::Status read = JsonPath::Parse(key).status();
    if (read.ok()) return read;
    return absl::InvalidArgumentError(fmt::format("--sort-by: {}", std::string(read.message())));
  }
  if (ColumnOf(shape, key)) return absl::OkStatus();
  std::vector<std::string> titles;
  for (const ListColumn& column : shape.columns) titles.emplace_back(column.title);
  return absl::InvalidArgumentError(
      fmt::format("--sort-by: expected a path such as .name or one of {}, found {}{}",
                  Titles(shape), wire::Quoted(key), DidYouMean(key, titles)));
}

absl::Status CheckNames(const ListShape& shape, const ListWish& wish, const Json& answer) {
  for (const std::string& name : wish.names) {
    std::vector<std::string> known;
    bool met = false;
    for (const Json& object : answer.at(shape.member)) {
      if (!IsIn(shape, object, wish.ns)) continue;
      met = met || IsCalled(shape, object, name);
      known.push_back(shape.name(object));
      if (shape.of_namespaces) known.push_back(Text(object, "name"));
    }
    if (met) continue;
    const std::string in =
        shape.of_namespaces && !wish.ns.empty() ? fmt::format(" in namespace {}", wish.ns) : "";
    return absl::NotFoundError(fmt::format("no {} {}{} is known{}", shape.one, wire::Quoted(name),
                                           in, DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

Json Chosen(const ListShape& shape, const ListWish& wish, Json answer) {
  Json& objects = answer.at(shape.member);
  Json chosen = Json::array();
  for (Json& object : objects) {
    const auto called = [&shape, &object](const std::string& name) {
      return IsCalled(shape, object, name);
    };
    const bool wanted =
        wish.names.empty() || std::any_of(wish.names.begin(), wish.names.end(), called);
    if (wanted && IsIn(shape, object, wish.ns)) chosen.push_back(std::move(object));
  }
  objects = std::move(chosen);
  const std::string order = wish.sort_by.empty() ? shape.order : wish.sort_by;
  if (!order.empty()) Sort(shape, order, answer);
  return answer;
}

std::string WriteList(const ListShape& shape, const ListWish& wish, const Json& answer,
                      const Terminal& terminal) {
  const Json& objects = answer.at(shape.member);
  switch (wish.format.kind) {
    case Kind::kJson:
    case Kind::kYaml:
    case Kind::kJsonPath:
      return WriteAnswer(wish.format, answer.dump(), answer);
    case Kind::kName: {
      std::string out;
      for (const Json& object : objects) out += Harmless(shape.name(object)) + '\n';
      return out;
    }
    case Kind::kTable:
    case Kind::kWide:
    case Kind::kCustomColumns:
      break;
  }
  Table table(TableTitles(shape, wish));
  for (const Json& object : objects) {
    for (std::vector<std::string>& row : TableRows(shape, wish, object, answer)) {
      table.Add(std::move(row));
    }
  }
  return table.empty() ? fmt::format("{}\n", shape.none) : table.Text(terminal);
}

std::string ListChanges::Look(const Json& answer, const Terminal& terminal) {
  const Json& objects = answer.at(shape_.member);
  std::map<std::string, std::pair<std::string, Json>> now;
  std::vector<Change> changes;
  for (const Json& object : objects) {
    std::string name = shape_.key == nullptr ? shape_.name(object) : shape_.key(object);
    std::string told = Told(object, answer);
    const auto before = seen_.find(name);
    if (before == seen_.end()) {
      changes.push_back({"ADDED", &object});
    } else if (before->second.first != told) {
      changes.push_back({"MODIFIED", &object});
    }
    now.insert_or_assign(std::move(name), std::pair(std::move(told), object));
  }
  for (const auto& [name, last] : seen_) {
    if (shape_.key != nullptr || now.contains(name)) continue;
    changes.push_back({"DELETED", &last.second});
  }
  const std::string out = changes.empty() ? "" : Write(changes, answer, terminal);
  seen_ = std::move(now);
  return out;
}

std::string ListChanges::Told(const Json& object, const Json& answer) const {
  const Kind kind = wish_.format.kind;
  if (kind != Kind::kTable && kind != Kind::kWide && kind != Kind::kCustomColumns) {
    return object.dump();
  }
  std::string told;
  for (const auto& row : TableRows(shape_, wish_, object, answer)) {
    for (const std::string& cell : row) told += cell + '\n';
  }
  return told;
}

std::string ListChanges::Write(const std::vector<Change>& changes, const Json& answer,
                               const Terminal& terminal) const {
  const Kind kind = wish_.format.kind;
  if (kind != Kind::kTable && kind != Kind::kWide && kind != Kind::kCustomColumns) {
    std::string out;
    for (const Change& change : changes) out += WriteObject(change, answer);
    return out;
  }
  std::vector<std::string> titles = TableTitles(shape_, wish_);
  titles.insert(titles.begin(), "EVENT");
  Table table(std::move(titles));
  for (const Change& change : changes) {
    for (std::vector<std::string>& row : TableRows(shape_, wish_, *change.object, answer)) {
      row.insert(row.begin(), change.event);
      table.Add(std::move(row));
    }
  }
  return table.Text(terminal);
}

std::string ListChanges::WriteObject(const Change& change, const Json& answer) const {
  const Json event = {{"type", change.event}, {"object", *change.object}};
  const bool gone = std::string_view(change.event) == "DELETED";
  switch (wish_.format.kind) {
    case Kind::kJson:
      return event.dump() + '\n';
    case Kind::kYaml:
      return "---\n" + ToYaml(event);
    case Kind::kName:
      return gone ? "" : Harmless(shape_.name(*change.object)) + '\n';
    default:
      break;
  }
  if (gone) return "";
  // A template is written for a list: of this object alone.
  Json alone = answer;
  alone[shape_.member] = Json::array({*change.object});
  return wish_.format.text.Write(alone);
}

}  // namespace tranche
