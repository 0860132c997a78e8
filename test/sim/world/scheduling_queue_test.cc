// The rules of kube-scheduler's queue, one scenario each.
#include "test/sim/world/scheduling_queue.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::minutes;
using std::chrono::seconds;
using Event = SchedulingQueue::Event;
using Failure = SchedulingQueue::Failure;

std::string Popped(SchedulingQueue& queue, SimTime now) { return queue.Pop(now).value_or("-"); }

TEST(SchedulingQueueTest, HigherPriorityFirstThenOlder) {
  SchedulingQueue queue({});
  queue.Add("young", 5, seconds(2));
  queue.Add("old", 5, seconds(1));
  queue.Add("high", 9, seconds(3));
  EXPECT_EQ(Popped(queue, seconds(4)), "high");
  EXPECT_EQ(Popped(queue, seconds(4)), "old");
  EXPECT_EQ(Popped(queue, seconds(4)), "young");
  EXPECT_EQ(Popped(queue, seconds(4)), "-");
}

TEST(SchedulingQueueTest, BackoffsDoubleUpToTheMost) {
  QueueOptions options;
  options.most_backoff = seconds(10);
  SchedulingQueue queue(options);
  queue.Add("p", 0, seconds(0));
  SimTime now = seconds(0);
  for (const int64_t backoff : {1, 2, 4, 8, 10, 10}) {
    ASSERT_EQ(Popped(queue, now), "p");
    queue.Failed("p", Failure::kError, now);
    queue.Tick(now + seconds(backoff) - SimTime(1));
    EXPECT_FALSE(queue.ready()) << backoff;
    now += seconds(backoff);
    queue.Tick(now);
    EXPECT_TRUE(queue.ready()) << backoff;
  }
}

// What brings back a pod that failed for this reason, after its backoff.
TEST(SchedulingQueueTest, EventsBringBackThoseTheyMayHelp) {
  struct Row {
    Failure why;
    Event event;
    bool back;
  };
  for (const Row& row :
       {Row{Failure::kExtender, Event::kOther, true}, Row{Failure::kExtender, Event::kFreed, true},
        Row{Failure::kFit, Event::kOther, false}, Row{Failure::kFit, Event::kFreed, true},
        Row{Failure::kFit, Event::kNodeChanged, true}}) {
    SchedulingQueue queue({});
    queue.Add("p", 0, seconds(0));
    queue.Pop(seconds(0));
    queue.Failed("p", row.why, seconds(0));
    queue.Tick(seconds(60));
    EXPECT_FALSE(queue.ready());
    queue.Happened(row.event, seconds(60));
    EXPECT_EQ(queue.ready(), row.back);
  }
}

TEST(SchedulingQueueTest, AnEventDuringTheAttemptCounts) {
  SchedulingQueue queue({});
  queue.Add("p", 0, seconds(0));
  queue.Pop(seconds(0));
  queue.Happened(Event::kFreed, seconds(0));
  queue.Failed("p", Failure::kFit, seconds(0));
  EXPECT_FALSE(queue.ready());  // it backs off first
  queue.Tick(seconds(1));
  EXPECT_TRUE(queue.ready());
}

TEST(SchedulingQueueTest, ItsOwnChangeBringsBackAPodThatAnExtenderRefused) {
  for (const bool by_extender : {true, false}) {
    SchedulingQueue queue({});
    queue.Add("p", 0, seconds(0));
    queue.Pop(seconds(0));
    queue.Failed("p", by_extender ? Failure::kExtender : Failure::kFit, seconds(0));
    queue.Update("p", seconds(60));
    EXPECT_EQ(queue.ready(), by_extender);
  }
}

TEST(SchedulingQueueTest, LeftoversAreTriedAfterFiveMinutes) {
  SchedulingQueue queue({});
  queue.Add("p", 0, seconds(0));
  queue.Pop(seconds(0));
  queue.Failed("p", Failure::kFit, seconds(0));
  queue.Tick(minutes(5) - SimTime(1));
  EXPECT_FALSE(queue.ready());
  queue.Tick(minutes(5));
  EXPECT_TRUE(queue.ready());
}

TEST(SchedulingQueueTest, AnEmptyQueuePopsThoseThatBackOffButNotErrors) {
  QueueOptions options;
  options.pops_early = true;
  for (const Failure why : {Failure::kExtender, Failure::kError}) {
    SchedulingQueue queue(options);
    queue.Add("p", 0, seconds(0));
    queue.Pop(seconds(0));
    queue.Happened(Event::kFreed, seconds(0));
    queue.Failed("p", why, seconds(0));
    EXPECT_EQ(Popped(queue, seconds(0)), why == Failure::kError ? "-" : "p");
  }
}

TEST(SchedulingQueueTest, OneThatIsRemovedDoesNotComeBack) {
  SchedulingQueue queue({});
  queue.Add("p", 0, seconds(0));
  queue.Pop(seconds(0));
  queue.Remove("p");
  queue.Failed("p", Failure::kError, seconds(0));
  queue.Tick(minutes(10));
  EXPECT_FALSE(queue.ready());
  EXPECT_EQ(queue.size(), 0U);
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
