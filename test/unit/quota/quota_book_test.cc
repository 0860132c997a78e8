#include "test/unit/quota/quota_book_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Declare;
using test::Gpus;
using test::Hours;
using test::Minutes;
using test::Quota;

// ---- holdings and leaves

TEST_F(QuotaBookTest, WhatIsHeldAndReleasedLeavesNoTrace) {
  Set({.quotas = TwoTeams(),
       .budgets = {DayBudget("team-a", 100), DayBudget("org", 300)},
       .classes = {Class("serve", 3, Preemptible::kNever)}});
  const std::string before = Numbers();
  Hold("one", "a", 3, "serve");
  Hold("two", "a", 9);
  Hold("three", "b", 7);
  Hold("nowhere", "c", 4);
  EXPECT_NE(Numbers(), before);
  EXPECT_EQ(Ask("a", 6, "serve").code, AdmissionCode::kWaitingForQuota);
  for (const char* pod : {"two", "one", "nowhere", "three"}) Release(pod);
  EXPECT_EQ(Numbers(), before);
  EXPECT_EQ(Ask("a", 6, "serve").code, AdmissionCode::kAdmitted);
}

TEST_F(QuotaBookTest, AskingChangesNothing) {
  Set({.quotas = TwoTeams()});
  const std::string before = Numbers();
  const std::vector<ModelCharge> mixed = {{"h100", Gpus(2)}, {"l4", Gpus(1)}, {"t4", Gpus(1)}};
  EXPECT_EQ(book_.Admit(book_.MembershipOf("a", ""), mixed, std::nullopt, now_).code,
            AdmissionCode::kAdmitted);
  EXPECT_EQ(Ask("a", 99).code, AdmissionCode::kExceedsMaxQuota);
  const QuotaId a = book_.tree().Find("team-a"), b = book_.tree().Find("team-b");
  EXPECT_TRUE(book_.FitsBeside(a, Parts(8), b, Parts(8)));
  EXPECT_FALSE(book_.FitsBeside(a, Parts(9), b, Parts(8)));
  EXPECT_EQ(Numbers(), before);
}

TEST_F(QuotaBookTest, QuotaGivenBackEarlyLeavesTheMeterRunning) {
  Set({.quotas = TwoTeams(), .budgets = {DayBudget("team-a", 100)}});
  Hold("leaving", "a", 8);
  book_.ReleaseQuota(PodUid("leaving"));
  book_.ReleaseQuota(PodUid("leaving"));
  EXPECT_EQ(Used("team-a"), 0);
  Pass(Hours(1));
  EXPECT_EQ(UsedHours("team-a-day"), 8000);
  Release("leaving");
  EXPECT_EQ(Used("team-a"), 0);
  Pass(Hours(1));
  EXPECT_EQ(UsedHours("team-a-day"), 8000);
}

TEST_F(QuotaBookTest, RunningWorkKeepsTheLeafItWasAdmittedTo) {
  Set({.quotas = TwoTeams()});
  Hold("pod", "a", 5);

  // The namespace goes over to another team.
  Set({.quotas = {Quota("org").Line("h100", "2"),
                  Quota("team-a").Under("org").Owns("other").Line("h100", "8", "4", "4"),
                  Quota("team-b").Under("org").Owns("a").Owns("b").Line("h100", "6")}});
  EXPECT_EQ(Used("team-a"), 5);
  EXPECT_EQ(Used("team-b"), 0);
  EXPECT_EQ(book_.tree().name(book_.MembershipOf("a", "").leaf), "team-b");

  // Its leaf gets another parent.
  Set({.quotas = {Quota("org").Line("h100", "2"), Quota("lab").Line("h100", "1"),
                  Quota("team-a").Under("lab").Owns("a").Line("h100", "8")}});
  EXPECT_EQ(Used("team-a"), 5);
  EXPECT_EQ(Used("lab"), 5);
  EXPECT_EQ(Used("org"), 0);

  // Its leaf goes, and comes back.
  Set({.quotas = {Quota("org").Line("h100", "2")}});
  EXPECT_EQ(Used("team-a"), -1);
  EXPECT_EQ(book_.StateOf(PodUid("pod")), std::nullopt);
  EXPECT_EQ(Used("org"), 0);
  Set({.quotas = TwoTeams()});
  EXPECT_EQ(Used("team-a"), 5);
  EXPECT_EQ(Used("org"), 5);
  Release("pod");
  EXPECT_EQ(Used("org"), 0);
}

TEST_F(QuotaBookTest, NamespacesOfNoneAndOfSeveralTeamsAreToldApart) {
  Set({.quotas = {Quota("team-a").Owns("a").Owns("both").Line("h100", "8"),
                  Quota("team-b").Owns("both").Line("h100", "6")}});
  EXPECT_EQ(book_.MembershipOf("a", "").leaf_found, QuotaMembership::Leaf::kFound);
  EXPECT_EQ(book_.MembershipOf("both", "").leaf_found, QuotaMembership::Leaf::kConflict);
  EXPECT_EQ(book_.MembershipOf("c", "").leaf_found, QuotaMembership::Leaf::kNone);
  EXPECT_EQ(Ask("c", 1000).code, AdmissionCode::kAdmitted);
}

TEST_F(QuotaBookTest, WorkThatIsNeverPreemptedMustFitNominal) {
  Set({.quotas = TwoTeams(), .classes = {Class("serve", 3, Preemptible::kNever)}});
  EXPECT_EQ(Ask("a", 9).code, AdmissionCode::kAdmitted);
  EXPECT_EQ(Ask("a", 9, "serve").code, AdmissionCode::kExceedsMaxQuota);
  EXPECT_EQ(Ask("a", 8, "serve").code, AdmissionCode::kAdmitted);
  Hold("served", "a", 6, "serve");
  const Admission more = Ask("a", 3, "serve");
  EXPECT_EQ(more.code, AdmissionCode::kWaitingForQuota);
  EXPECT_EQ(more.quota.short_by, kQuantaPerGpu);
  EXPECT_EQ(Ask("a", 2, "serve").code, AdmissionCode::kAdmitted);
  Release("served");
  // Work that may be preempted takes nothing of it, but the room must be there.
  Hold("trained", "a", 6);
  EXPECT_EQ(Ask("a", 6, "serve").code, AdmissionCode::kAdmitted);
  EXPECT_EQ(Report("team-a").non_preemptible, Charge{});
  Hold("served", "a", 2, "serve");
  EXPECT_EQ(Report("team-a").non_preemptible, Gpus(2));
}

TEST_F(QuotaBookTest, WorkThatIsNeverPreemptedMustFitNominalOfAnyModelToo) {
  Set({.quotas = {Quota("org").Line("any", "8"),
                  Quota("team-a").Under("org").Owns("a").Line("any", "4")},
       .classes = {Class("serve", 3, Preemptible::kNever)}});
  Hold("of-h100", "a", 2, "serve", "h100");
  Hold("of-l4", "a", 1, "serve", "l4");
  EXPECT_EQ(Ask("a", 1, "serve").code, AdmissionCode::kAdmitted);
  EXPECT_EQ(Ask("a", 2, "serve").code, AdmissionCode::kWaitingForQuota);
  EXPECT_EQ(Ask("a", 2).code, AdmissionCode::kAdmitted);
}

// ---- marks

TEST_F(QuotaBookTest, MarksFollowRankAndAge) {
  Set({.quotas = TwoTeams(),
       .classes = {Class("serve", 3, Preemptible::kNever), Class("train", 2),
                   Class("scavenge", 0)}});
  const auto marks = [this] {
    std::string text;
    for (const auto& [uid, work] : book_.holdings()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", uid.str(),
                          QuotaStateName(*book_.StateOf(uid)));
    }
    return text;
  };
  Hold("free", "a", 1, "scavenge");
  Pass(Minutes(1));
  Hold("old", "a", 4, "train");
  Pass(Minutes(1));
  Hold("young", "a", 4, "train");
  EXPECT_EQ(marks(), "free scavenging, old in-quota, young in-quota");
  Pass(Minutes(1));
  Hold("top", "a", 3, "serve");
  EXPECT_EQ(marks(), "free scavenging, old in-quota, top in-quota, young borrowed");
  EXPECT_EQ(Report("team-a").workloads, 4);
  EXPECT_EQ(Report("team-a").workloads_borrowed, 2);
  EXPECT_EQ(Report("team-a").lines[0].marked_borrowed, Gpus(5));
  Release("old");
  EXPECT_EQ(marks(), "free scavenging, top in-quota, young in-quota");
}

TEST_F(QuotaBookTest, ComparesWhoBorrowsByWeightAndPastUse) {
  Set({.quotas = {Quota("org").Line("h100", "8"),
                  Quota("light").Under("org").Owns("l").Line("h100", "0"),
                  Quota("heavy").Under("org").Owns("h").Line("h100", "0").Weight(3)}});
  const QuotaId light = book_.tree().Find("light"), heavy = book_.tree().Find("heavy");
  Hold("one", "l", 2);
  Hold("two", "h", 2);
  EXPECT_GT(book_.CompareShares(light, heavy, now_), 0) << "2 of weight 1 is more than of 3";
  Hold("three", "h", 5);
  EXPECT_LT(book_.CompareShares(light, heavy, now_), 0);
  EXPECT_GT(book_.CompareShares(heavy, light, now_), 0);
  EXPECT_EQ(book_.CompareShares(heavy, heavy, now_), 0);
}

// ---- words

TEST_F(QuotaBookTest, SaysInNumbersWhyItRefuses) {
  Set({.quotas = {Quota("org").Line("h100", "0").Line("any", "20"),
                  Quota("team-a").Under("org").Owns("a").Line("h100", "8", "2"),
                  Quota("team-b").Under("org").Owns("b").Line("h100", "4"),
                  Quota("team-c").Under("org").Owns("c").Line("h100", "6", "", "1")},
       .budgets = {DayBudget("team-c", 10)},
       .classes = {Class("serve", 3, Preemptible::kNever)}});
  Hold("of-a", "a", 7);
  Hold("of-b", "b", 5);
  struct Row {
    const char* ns;
    int64_t gpus;
    const char* workload_class;
    const char* why;
  };
  const std::vector<Row> rows = {
      {"a", 1, "", ""},
      {"elsewhere", 100, "", ""},
      {"a", 11, "",
       "team-a uses 7 h100 (nominal 8, may reach 10), needs 11; 1 can be had now, short by 10"},
      {"a", 4, "",
       "team-a uses 7 h100 (nominal 8, may reach 10), needs 4; 1 can be had now, short by 3; "
       "team-b holds 1 borrowed"},
      {"a", 2, "serve",
       "team-a uses 7 h100 (nominal 8, may reach 10), needs 2; 1 can be had now, short by 1; the "
       "lendLimit of team-c binds"},
      {"a", 9, "serve",
       "team-a uses 7 h100 (nominal 8, may reach 10), needs 9; 1 can be had now, short by 1; work "
       "that is never preempted must fit nominal"},
      {"b", 1, "", ""},
      {"b", 3, "",
       "team-b uses 5 h100 (nominal 4, may reach 13), needs 3; 1 can be had now, short by 2; the "
       "lendLimit of team-c binds"},
      {"b", 9, "",
       "team-b uses 5 h100 (nominal 4, may reach 13), needs 9; 1 can be had now, short by 8"},
      {"c", 6, "", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Why(row.ns, row.gpus, row.workload_class), row.why)
        << row.ns << " " << row.gpus << " " << row.workload_class;
  }
  Hold("of-c", "c", 2);
  Pass(Hours(5));
  EXPECT_EQ(Why("c", 1),
            "budget team-c-day: 10.000 of 10.000 GPU-hours are used and 0.500 promised to running "
            "work");
  Release("of-b");
  EXPECT_EQ(Why("a", 4),
            "team-a uses 7 h100 (nominal 8, may reach 10), needs 4; 3 can be had now, short by 1; "
            "the borrowLimit of team-a binds");
}

}  // namespace THIS_FILE
}  // namespace tranche
