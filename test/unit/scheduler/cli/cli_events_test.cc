// `tranche events` against a running server.
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/cli/cli.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

struct Answered {
  int code = 0;
  std::string out;
  std::string err;
};

class CliEvents : public LiveServer {
 protected:
  Answered Ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--server", url()});
    std::ostringstream out, err;
    const int code = RunCommandLine(arguments, out, err);
    return {code, out.str(), err.str()};
  }
};

TEST_F(CliEvents, EventsTellWhatHappenedInOrder) {
  Apply(MakeNode("gpu-1", 2));
  EXPECT_EQ(Ask({"events"}).out, "nothing has happened lately\n");
  const Json first = MakePod("first", {{"nvidia.com/gpu", "1"}});
  Apply(first);
  ASSERT_EQ(Schedule(first, {"gpu-1"}), "gpu-1");
  const Json second = MakePod("second", {{"nvidia.com/gpu", "1"}});
  Apply(second);
  ASSERT_EQ(Schedule(second, {"gpu-1"}), "gpu-1");
  const std::string lines = "jsonpath={range .events[*]}{.kind} {.name} {.node};{end}";
  const std::pair<std::vector<std::string>, std::string> table[] = {
      {{"events", "-o", lines},
       "Placed first gpu-1;Running first gpu-1;Placed second gpu-1;Running second gpu-1;"},
      {{"events", "second", "-o", lines}, "Placed second gpu-1;Running second gpu-1;"},
      {{"events", "-n", "team-b"}, "nothing has happened lately\n"},
  };
  for (const auto& [arguments, wanted] : table) {
    const Answered outcome = Ask(arguments);
    EXPECT_EQ(outcome.out, wanted) << outcome.err;
    EXPECT_EQ(outcome.code, 0);
  }
  EXPECT_EQ(Ask({"events", "third"}).code, 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
