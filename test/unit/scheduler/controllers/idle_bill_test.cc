// From what is measured to what is billed: a pod that holds GPUs, somebody who measures them, a
// real ledger, and the bill of its file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/controllers/use_reader.h"
#include "scheduler/host/clocks.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "test/builders/cluster.h"
#include "test/unit/scheduler/controllers/measured_pod.h"
#include "test/unit/scheduler/ledger/ledger_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ledger::Minute;

class IdleBillTest : public ledger::LedgerTest {
 protected:
  void SetUp() override {
    book_ = MustOpen();
    HostOptions options;
    options.ledger = book_.get();
    host_ = std::make_unique<Host>(std::move(options), clock_);
    book_->NoteFleet(
        {Minute(0), {{FleetKind::kNode, "n1", ledger::NodeText({"n1", {{"h100", 8}}, {}})}}, true});
    host_->cluster.Receive(NodeChanged{test::StockNode("n1", 8)});
    host_->cluster.Receive(PodChanged{test::MeasuredPod(clock_.Now())});
    host_->cluster.Receive(Synced());
    ns_ = host_->engine.Pods().at(0).name.ns;
  }
  // One answer a minute, for so many minutes.
  void Measure(UseReader& reader, int minutes, const char* value) {
    for (int minute = 0; minute < minutes; ++minute) {
      std::string rows;
      for (const int gpu : {1, 2}) {
        rows += fmt::format(
            R"({}{{"metric":{{"UUID":"G{}","namespace":"{}","pod":"p"}},"value":[1,"{}"]}})",
            rows.empty() ? "" : ",", gpu, ns_, value);
      }
      reader.Take(fmt::format(
          R"({{"status":"success","data":{{"resultType":"vector","result":[{}]}}}})", rows));
      clock_.AdvanceBy(std::chrono::minutes(1));
    }
  }

  ManualClock clock_{Minute(0)};
  std::unique_ptr<ledger::SqliteLedger> book_;
  std::unique_ptr<Host> host_;
  std::string ns_;
};

TEST_F(IdleBillTest, WhatWasMeasuredIdleIsIdleOnTheBill) {
  UseReader reader(*host_, 1, clock_.Now(), book_.get(), {});
  Measure(reader, 30, "0.5");
  Measure(reader, 61, "0");  // from the first measurement to the last: an hour
  Measure(reader, 29, "0.9");
  EXPECT_TRUE(Committed(*book_)) << book_->health().problem;
  book_->Heartbeat(clock_.Now(), {});
  host_.reset();
  book_->Close();
  auto file = ledger::Reader::Open(options_.path);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<ledger::Bill> bill = file->MakeBill({Minute(0), Minute(120)});
  ASSERT_TRUE(bill.ok()) << bill.status();
  EXPECT_EQ(ledger::FormatBilledHours(bill->used.quantity), "4.000");
  EXPECT_EQ(ledger::FormatBilledHours(bill->idle.quantity), "2.000");
}

}  // namespace THIS_FILE
}  // namespace tranche
