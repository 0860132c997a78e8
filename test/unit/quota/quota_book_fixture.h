// A quota book at work, for its tests.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quota/quota_book.h"
#include "test/builders/policies.h"

namespace tranche {

inline const Instant kMorning = test::Utc(2026, 11, 20, 6);
inline const Instant kMidnight = test::Utc(2026, 11, 21);

// 16 H100 of an organisation: its own pool of 2, team-a 8 and team-b 6.
inline std::vector<GpuQuota> TwoTeams() {
  return {test::Quota("org").Line("h100", "2"),
          test::Quota("team-a").Under("org").Owns("a").Line("h100", "8", "4", "4"),
          test::Quota("team-b").Under("org").Owns("b").Line("h100", "6")};
}

class QuotaBookTest : public testing::Test {
 protected:
  void Set(test::Objects objects) {
    book_.SetPolicies(test::Declare(std::move(objects)), now_);
    Pass(Millis(0));
  }
  void Pass(Millis time) {
    now_ += time;
    book_.Advance(now_, closings_);
  }

  static std::vector<ModelCharge> Parts(int64_t gpus, const std::string& model = "h100") {
    return {{model, test::Gpus(gpus)}};
  }
  Admission Ask(const std::string& ns, int64_t gpus, const std::string& priority_class = "",
                std::optional<Millis> runtime = std::nullopt) {
    return book_.Admit(book_.MembershipOf(ns, priority_class), Parts(gpus), runtime, now_);
  }
  std::string Why(const std::string& ns, int64_t gpus, const std::string& priority_class = "") {
    const QuotaMembership membership = book_.MembershipOf(ns, priority_class);
    const std::vector<ModelCharge> parts = Parts(gpus);
    const Admission admission = book_.Admit(membership, parts, std::nullopt, now_);
    return book_.Explain(membership, admission, parts, now_);
  }
  // From now on.
  void Hold(const std::string& pod, const std::string& ns, int64_t gpus,
            const std::string& workload_class = "", const std::string& model = "h100") {
    HeldWork work;
    work.pod = {ns, pod};
    const QuotaMembership membership = book_.MembershipOf(ns, workload_class);
    if (membership.leaf != kNoQuota) work.leaf = book_.tree().name(membership.leaf);
    work.workload_class = workload_class;
    work.parts = Parts(gpus, model);
    work.since = now_;
    book_.Hold(PodUid(pod), std::move(work));
  }
  void Release(const std::string& pod) { book_.Release(PodUid(pod), now_); }

  // Used GPUs of a quota's H100 line; -1: it is not declared.
  int64_t Used(const std::string& quota) {
    for (const QuotaReport& report : book_.Quotas(now_)) {
      if (report.name == quota) return report.lines[0].line.used.compute / kQuantaPerGpu;
    }
    return -1;
  }
  QuotaReport Report(const std::string& quota) {
    for (const QuotaReport& report : book_.Quotas(now_)) {
      if (report.name == quota) return report;
    }
    return {};
  }
  // In milli GPU-hours.
  int64_t UsedHours(const std::string& budget) {
    for (const BudgetReport& report : book_.Budgets(now_)) {
      if (report.spec.name == budget) {
        return static_cast<int64_t>(report.view.used * 1000 / kGpuHour);
      }
    }
    return -1;
  }
  // Every number people see.
  std::string Numbers() {
    std::string text;
    for (const QuotaReport& report : book_.Quotas(now_)) {
      text += fmt::format("{} {} {}\n", report.name, report.workloads, report.workloads_borrowed);
      for (const auto& [line, borrowed] : report.lines) {
        text += fmt::format("  {}", line.name);
        for (const ChargeLimit& limit :
             std::vector<ChargeLimit>{line.nominal, line.used, line.lent, line.borrowed,
                                      line.available, line.reach, borrowed}) {
          text += fmt::format(" {}/{}", limit.compute.saturated(), limit.memory.saturated());
        }
        text += "\n";
      }
    }
    for (const BudgetReport& report : book_.Budgets(now_)) {
      text += fmt::format("{} {} {}\n", report.spec.name, static_cast<int64_t>(report.view.used),
                          static_cast<int64_t>(report.view.committed));
    }
    return text;
  }

  QuotaBook book_;
  Instant now_ = kMorning;
  std::vector<WindowClosing> closings_;
};

}  // namespace tranche
