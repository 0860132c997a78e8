#include "scheduler/probe/program.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "test/unit/scheduler/probe/fake_node.h"

namespace tranche::probe {
namespace THIS_FILE {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// What a shell program prints, with the arguments a and "b c".
absl::StatusOr<std::string> Shell(const std::string& script, milliseconds timeout,
                                  std::size_t limit = 1000) {
  const TempFolder folder;
  const std::string path = folder.Write("program", "#!/bin/sh\n" + script + "\n");
  chmod(path.c_str(), 0700);
  return OutputOf({path, {"a", "b c"}, timeout, limit});
}

constexpr milliseconds kLong(20'000);

TEST(ProgramTest, GivesWhatWasPrintedWithFixedArguments) {
  EXPECT_EQ(Shell("printf '%s|' \"$#\" \"$@\"; echo unseen >&2", kLong).value(), "2|a|b c|");
}

TEST(ProgramTest, GivesNoInputAndASmallEnvironment) {
  setenv("TRANCHE_TEST_SECRET", "seen", 1);
  EXPECT_EQ(
      Shell("cat; echo \"${TRANCHE_TEST_SECRET:-unseen} $LC_ALL ${PATH:+path}\"", kLong).value(),
      "unseen C path\n");
  unsetenv("TRANCHE_TEST_SECRET");
}

TEST(ProgramTest, IsLookedForInThePath) {
  EXPECT_EQ(OutputOf({"true", {}}).value(), "");
  const auto missing = OutputOf({"tranche-no-such-program", {}});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()),
              HasSubstr("expected the program tranche-no-such-program, found: No such file"));
}

TEST(ProgramTest, AnExitCodeIsAnError) {
  const auto failed = Shell("echo half; exit 6", kLong);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("expected exit code 0, found 6"));
  EXPECT_THAT(std::string(Shell("kill -9 $$", kLong).status().message()),
              HasSubstr("found a signal"));
}

TEST(ProgramTest, OneThatHangsIsKilledWithWhatItStarted) {
  EXPECT_EQ(Shell("sleep 600 & sleep 600", milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(ProgramTest, OneThatClosesItsOutputAndGoesOnIsKilledToo) {
  EXPECT_EQ(Shell("exec >&-; sleep 600", milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST(ProgramTest, OneThatPrintsTooMuchIsKilled) {
  const auto endless = Shell("yes", kLong);
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(endless.status().message()), HasSubstr("at most 1000 bytes"));
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
