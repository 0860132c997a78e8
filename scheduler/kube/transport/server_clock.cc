#include "scheduler/kube/transport/server_clock.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tranche::kube {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// -1: it is no number.
int Number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && text[0] != '-' ? number : -1;
}

}  // namespace

std::optional<std::chrono::sys_seconds> ParseDate(std::string_view text) {
  constexpr std::string_view kForm = "www, dd mmm yyyy hh:mm:ss GMT";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool fixed = std::string_view(", :GMT").find(kForm[i]) != std::string_view::npos;
    if (fixed && text[i] != kForm[i]) return std::nullopt;
  }
  const auto month = std::ranges::find(kMonths, text.substr(8, 3));
  const int day = Number(text.substr(5, 2));
  const int year = Number(text.substr(12, 4));
  const int hour = Number(text.substr(17, 2));
  const int minute = Number(text.substr(20, 2));
  const int second = Number(text.substr(23, 2));
  // Our clock counts nanoseconds, which hold no much later year.
  const bool in_range = year >= 1970 && year <= 2200;
  if (month == kMonths.end() || day < 0 || !in_range) return std::nullopt;
  // A leap second is the last one of its minute.
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{
      std::chrono::year(year),
      std::chrono::month(static_cast<unsigned>(month - kMonths.begin()) + 1),
      std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

ServerClock::Range ServerClock::Agreed() const {
  Range all = answers_[(count_ - 1) % answers_.size()];
  for (std::size_t back = 2; back <= std::min(count_, answers_.size()); ++back) {
    const Range& older = answers_[(count_ - back) % answers_.size()];
    const Range both{std::max(all.least, older.least), std::min(all.most, older.most)};
    if (both.least > both.most) break;
    all = both;
  }
  return all;
}

void ServerClock::Note(BootTime asked, const Moment& answered, std::chrono::sys_seconds date) {
  // They answered between, at some moment of that second.
  const std::chrono::nanoseconds told = date.time_since_epoch();
  const Range range{told - answered.boot, told + std::chrono::seconds(1) - asked};
  {
    const absl::MutexLock lock(&mutex_);
    answers_[count_++ % answers_.size()] = range;
    known_ = Agreed();
  }
  const milliseconds ahead = *AheadAt(answered);
  const bool too_far = std::chrono::abs(ahead) >= kTooFar;
  {
    const absl::MutexLock lock(&mutex_);
    const bool lately = logged_ && answered.boot - *logged_ < kLogGap;
    if (too_far == too_far_ || lately) return;
    too_far_ = too_far;
    logged_ = answered.boot;
  }
  if (!too_far) return spdlog::info("this machine's clock and the API server's agree again");
  spdlog::error(
      "this machine's clock is {} s {} the API server's: budgets and GPU-hours go by a time "
      "that is wrong",
      std::chrono::abs(ahead).count() / 1'000, ahead.count() > 0 ? "ahead of" : "behind");
}

std::optional<ClusterTime> ServerClock::At(BootTime boot) const {
  const absl::MutexLock lock(&mutex_);
  if (!known_) return std::nullopt;
  return ClusterTime{Instant(std::chrono::floor<Millis>(boot + known_->least)),
                     Instant(std::chrono::ceil<Millis>(boot + known_->most))};
}

std::optional<milliseconds> ServerClock::AheadAt(const Moment& moment) const {
  const auto theirs = At(moment.boot);
  if (!theirs) return std::nullopt;
  const auto wall = std::chrono::floor<milliseconds>(moment.wall);
  return std::clamp(milliseconds(0), milliseconds(wall - theirs->latest),
                    milliseconds(wall - theirs->earliest));
}

}  // namespace tranche::kube
