#include "scheduler/cli/screen/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "scheduler/cli/output/table.h"
#include "scheduler/cli/output/words.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {
namespace {

constexpr std::string_view kKeys =
    "q quit  arrows j k move  / search  n name  s state  t team  g GPUs  w "
    "waits  r reverse";

std::vector<std::string> LinesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Without escapes of colours, which have no width.
std::string Cut(const std::string& line, std::size_t columns) {
  if (columns == 0) return line;
  std::string cut;
  std::size_t width = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b') {
      const std::size_t end = std::min(line.find('m', at), line.size() - 1);
      cut += line.substr(at, end - at + 1);
      at = end;
      continue;
    }
    const bool begins = (static_cast<unsigned char>(line[at]) & 0xc0U) != 0x80U;
    if (begins && ++width > columns) continue;
    if (width <= columns) cut += line[at];
  }
  return cut;
}

}  // namespace

void TopView::Take(std::string sums, const Json& pods) {
  const std::string now =
      wire::FormatTime(std::chrono::floor<Millis>(std::chrono::system_clock::now()));
  std::vector<Row> rows;
  for (const Json& pod : pods) {
    Row& row = rows.emplace_back();
    row.ns = Text(pod, "namespace");
    row.name = Text(pod, "name");
    row.state = Text(pod, "state");
    row.team = Text(pod, "leaf");
    row.node = Text(pod, "node");
    row.reason = ReasonOf(pod);
    row.waits_since = Text(pod, "waitsSince");
    row.waits = Age(row.waits_since, now);
    for (const Json& device : pod.at("devices")) row.milli += Whole(device, "milli");
    row.gpus = pod.at("devices").empty() ? AsksOf(pod) : Thousandths(row.milli);
  }
  rows_ = std::move(rows);
  sums_ = std::move(sums);
  problem_.clear();
}

bool TopView::ComesFirst(const Row& left, const Row& right) const {
  const auto by = [&](const auto& a, const auto& b) { return reversed_ ? b < a : a < b; };
  switch (order_) {
    case Order::kName:
      break;
    case Order::kState:
      if (left.state != right.state) return by(left.state, right.state);
      break;
    case Order::kTeam:
      if (left.team != right.team) return by(left.team, right.team);
      break;
    case Order::kGpus:
      if (left.milli != right.milli) return by(right.milli, left.milli);
      break;
    case Order::kWaits: {
      const bool waits = left.waits_since != "-";
      if (waits != (right.waits_since != "-")) return waits;
      if (left.waits_since != right.waits_since) return by(left.waits_since, right.waits_since);
      break;
    }
  }
  const bool reversed = order_ == Order::kName && reversed_;
  const std::pair a(left.ns, left.name);
  const std::pair b(right.ns, right.name);
  return reversed ? b < a : a < b;
}

std::vector<const TopView::Row*> TopView::Shown() const {
  const std::string wanted = Lower(search_);
  std::vector<const Row*> shown;
  for (const Row& row : rows_) {
    const std::string text = Lower(fmt::format("{}/{} {} {} {} {}", row.ns, row.name, row.state,
                                               row.team, row.node, row.reason));
    if (text.find(wanted) != std::string::npos) shown.push_back(&row);
  }
  std::ranges::stable_sort(
      shown, [this](const Row* left, const Row* right) { return ComesFirst(*left, *right); });
  return shown;
}

void TopView::Move(std::ptrdiff_t lines) {
  const std::vector<const Row*> shown = Shown();
  if (shown.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
  const auto place =
      std::clamp(static_cast<std::ptrdiff_t>(place_) + lines, std::ptrdiff_t{0}, last);
  place_ = static_cast<std::size_t>(place);
  chosen_ = fmt::format("{}/{}", shown[place_]->ns, shown[place_]->name);
}

bool TopView::PressInSearch(const Key& key) {
  switch (key.kind) {
    case Key::Kind::kText:
      search_ += key.text;
      break;
    case Key::Kind::kBackspace:
      if (!search_.empty()) search_.pop_back();
      break;
    case Key::Kind::kEscape:
      search_.clear();
      searching_ = false;
      break;
    case Key::Kind::kEnter:
      searching_ = false;
      break;
    default:
      break;
  }
  return true;
}

bool TopView::Press(const Key& key) {
  using Kind = Key::Kind;
  if (key.kind == Kind::kInterrupt) return false;
  if (searching_) return PressInSearch(key);
  const auto page = static_cast<std::ptrdiff_t>(visible_);
  const auto all = static_cast<std::ptrdiff_t>(rows_.size());
  switch (key.kind) {
    case Kind::kUp:
      Move(-1);
      return true;
    case Kind::kDown:
      Move(1);
      return true;
    case Kind::kPageUp:
      Move(-page);
      return true;
    case Kind::kPageDown:
      Move(page);
      return true;
    case Kind::kHome:
      Move(-all);
      return true;
    case Kind::kEnd:
      Move(all);
      return true;
    case Kind::kEscape:
      search_.clear();
      return true;
    case Kind::kText:
      break;
    default:
      return true;
  }
  constexpr std::pair<char, Order> kOrders[] = {{'n', Order::kName},
                                                {'s', Order::kState},
                                                {'t', Order::kTeam},
                                                {'g', Order::kGpus},
                                                {'w', Order::kWaits}};
  for (const auto& [letter, order] : kOrders) {
    if (key.text == letter) order_ = order;
  }
  if (key.text == 'r') reversed_ = !reversed_;
  if (key.text == 'j') Move(1);
  if (key.text == 'k') Move(-1);
  if (key.text == '/') searching_ = true;
  return key.text != 'q';
}

std::string TopView::Foot(std::size_t shown) const {
  if (!problem_.empty()) return Harmless(problem_);
  if (searching_) return fmt::format("/{}_  enter keeps it, escape ends it", search_);
  const std::string found =
      search_.empty() ? "" : fmt::format("/{}: {} of {} pods  ", search_, shown, rows_.size());
  return found + std::string(kKeys);
}

std::string TopView::Page(std::size_t rows, const Terminal& terminal) {
  std::vector<std::string> lines = {"tranche top  " + Harmless(server_), ""};
  for (std::string& line : LinesOf(sums_)) lines.push_back(std::move(line));
  lines.emplace_back();
  const std::vector<const Row*> shown = Shown();
  // The chosen pod stays so, wherever it stands now; where it is gone, its place does.
  const auto chosen = std::ranges::find_if(shown, [this](const Row* row) {
    return fmt::format("{}/{}", row->ns, row->name) == chosen_;
  });
  if (chosen != shown.end()) place_ = static_cast<std::size_t>(chosen - shown.begin());
  place_ = std::min(place_, shown.empty() ? 0 : shown.size() - 1);
  // A title and the foot besides.
  const std::size_t taken = lines.size() + 2;
  visible_ = rows > taken ? rows - taken : 1;
  first_ = std::min(first_, place_);
  if (place_ >= first_ + visible_) first_ = place_ - visible_ + 1;
  if (shown.size() <= visible_) first_ = 0;
  Table table({"", "NAMESPACE", "NAME", "STATE", "QUOTA", "NODE", "GPUS", "WAITS", "REASON"});
  for (std::size_t at = first_; at < std::min(shown.size(), first_ + visible_); ++at) {
    const Row& row = *shown[at];
    table.Add({at == place_ ? ">" : " ", row.ns, row.name, row.state, row.team, row.node, row.gpus,
               row.waits, row.reason});
  }
  // Lines that are too long are cut: a row is one line.
  for (std::string& line : LinesOf(table.Text({.columns = 0, .colour = terminal.colour}))) {
    lines.push_back(std::move(line));
  }
  // In a low window the pods go before the foot does.
  lines.resize(std::max<std::size_t>(rows, 2) - 1);
  lines.push_back(Foot(shown.size()));
  std::string page;
  for (const std::string& line : lines) {
    page += (page.empty() ? "" : "\n") + Cut(line, terminal.columns);
  }
  return page;
}

}  // namespace tranche
