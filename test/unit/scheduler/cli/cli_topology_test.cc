#include "scheduler/cli/cli_topology.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/cli/cli.h"
#include "test/fakes/places.h"

namespace tranche {
namespace THIS_FILE {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Case(const std::string& name) {
  return fakes::SourceFolder() + "/test/cases/topologies/" + name + ".txt";
}

class CliTopologyTest : public testing::Test {
 protected:
  int Run(const std::vector<std::string>& arguments) {
    out_.str("");
    err_.str("");
    std::vector<std::string> all = {"topology"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunCommandLine(all, out_, err_);
  }
  Json Best(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "best");
    arguments.insert(arguments.end(), {"-o", "json"});
    EXPECT_EQ(Run(arguments), 0) << err_.str();
    return Json::parse(out_.str());
  }
  std::string Write(std::string_view text) {
    const std::string path = (std::filesystem::path(testing::TempDir()) /
                              testing::UnitTest::GetInstance()->current_test_info()->name())
                                 .string();
    std::ofstream(path) << text;
    return path;
  }

  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CliTopologyTest, ShowDrawsTheMachineWithoutColoursIntoAPipe) {
  EXPECT_EQ(Run({"show", Case("dgx1-v100-numa")}), 0);
  EXPECT_THAT(out_.str(), StartsWith("NUMA node 0  CPUs 0-19,40-59\n  GPU0 GPU1  -- PIX  -- "));
  EXPECT_THAT(out_.str(), HasSubstr("hybrid cube mesh of 8 GPUs (NV1 to NV2)"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b")));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(CliTopologyTest, ShowSaysWhatIsOddOnTheOtherStream) {
  const std::string file = Write("GPU0 GPU1\nGPU0 X XGMI\nGPU1 PIX X\n");
  EXPECT_EQ(Run({"show", file}), 0);
  EXPECT_THAT(err_.str(), StartsWith("tranche: " + file + ": line 2, row GPU0, column GPU1: "));
}

TEST_F(CliTopologyTest, ShowReadsStandardInput) {
  std::istringstream input("GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n");
  std::streambuf* const before = std::cin.rdbuf(input.rdbuf());
  EXPECT_EQ(Run({"show", "-"}), 0);
  std::cin.rdbuf(before);
  std::cin.clear();
  EXPECT_THAT(out_.str(), HasSubstr("1 NVLink pair (NV4)"));
}

TEST_F(CliTopologyTest, FilesThatCannotBeReadAreOneLine) {
  EXPECT_EQ(Run({"show", "/no/such/file"}), 2);
  EXPECT_THAT(err_.str(), StartsWith("tranche: /no/such/file: expected a readable file"));
  const std::string file = Write("GPU0 GPU1\nGPU0 X NV1\n");
  for (const char* command : {"show", "best"}) {
    EXPECT_EQ(Run({command, file}), 2);
    EXPECT_EQ(err_.str(), "tranche: " + file +
                              ": line 2: expected a row for each of 2 GPUs, found the end and none "
                              "of GPU1\n");
    EXPECT_EQ(out_.str(), "");
  }
}

TEST_F(CliTopologyTest, BestListsSetsOfTwoToEight) {
  EXPECT_EQ(Run({"best", Case("dgx1-v100-numa"), "-n", "1"}), 0);
  EXPECT_THAT(out_.str(), StartsWith("hybrid cube mesh of 8 GPUs (NV1 to NV2)\n\nGPUS  SET "));
  EXPECT_THAT(out_.str(), HasSubstr("\n   4  0,1,2,3          NV1: 0-1-2-3 "));
  EXPECT_THAT(out_.str(), HasSubstr("\n   8  0,1,2,3,4,5,6,7  NV2: 0-"));
}

TEST_F(CliTopologyTest, BestAsJsonTellsEverythingOfASet) {
  const Json root = Best({Case("8x-h100-nvl"), "--gpus", "3", "-n", "1"});
  EXPECT_EQ(root["machine"], "4 NVLink pairs (NV12)");
  EXPECT_EQ(root["free"], Json::parse("[0,1,2,3,4,5,6,7]"));
  EXPECT_EQ(root["problems"], Json::array());
  ASSERT_EQ(root["sets"].size(), 1U);
  const Json& set = root["sets"][0];
  EXPECT_EQ(set["gpus"], 3);
  EXPECT_EQ(set["set"], Json::parse("[0,1,2]"));
  EXPECT_EQ(set["connected"], false);
  EXPECT_EQ(set["ring"], nullptr);
  EXPECT_EQ(set["links"], 12);
  EXPECT_EQ(set["path"], "NODE");
  EXPECT_EQ(set["numaNodes"], 1);
  EXPECT_EQ(set["left"], Json::parse("[3,4,5,6,7]"));
  EXPECT_EQ(set["loss"], 0);
  EXPECT_TRUE(set["damage"].is_number_integer());
  EXPECT_EQ(set["exact"], true);
}

TEST_F(CliTopologyTest, ShowAsJsonHasEveryPair) {
  ASSERT_EQ(Run({"show", Case("dgx1-v100"), "-o", "json"}), 0) << err_.str();
  const Json root = Json::parse(out_.str());
  EXPECT_EQ(root["gpus"].size(), 8U);
  ASSERT_EQ(root["links"].size(), 28U);
  EXPECT_EQ(root["links"][0], Json::parse(R"({"gpus":[0,1],"nvlinks":1,"path":null})"));
  EXPECT_EQ(root["links"][4], Json::parse(R"({"gpus":[0,5],"nvlinks":0,"path":"SYS"})"));
  ASSERT_EQ(root["nics"].size(), 4U);
  EXPECT_EQ(root["nics"][0]["name"], "mlx5_2");
  EXPECT_EQ(root["nics"][0]["paths"][0], "SYS");
}

TEST_F(CliTopologyTest, BestKeepsToTheFreeGpus) {
  const Json root = Best({"--free", "0,2,3,7", "--gpus", "2", Case("dgx1-v100-numa"), "-n", "9"});
  EXPECT_EQ(root["free"], Json::parse("[0,2,3,7]"));
  EXPECT_EQ(root["sets"].size(), 6U) << "all pairs of four";
  EXPECT_EQ(root["sets"][0]["links"], 2);
  EXPECT_EQ(root["sets"][0]["ring"]["nvlinks"], 2);
}

TEST_F(CliTopologyTest, ASizeForWhichNothingIsFreeIsADomainNo) {
  EXPECT_EQ(Run({"best", Case("dgx1-v100"), "--free", "1,2", "--gpus", "2", "--gpus", "3"}), 1);
  EXPECT_EQ(err_.str(), "tranche: expected 3 free GPUs, found 2\n");
  EXPECT_THAT(out_.str(), HasSubstr("1,2")) << "the others are listed all the same";
  EXPECT_EQ(Run({"best", Case("1x-single-gpu")}), 1);
  EXPECT_EQ(err_.str(), "tranche: expected 2 free GPUs, found 1\n");
}

TEST_F(CliTopologyTest, WrongOptionsAreUsageErrors) {
  EXPECT_EQ(Run({"best", Case("dgx1-v100"), "--free", "1,9"}), 2);
  EXPECT_EQ(err_.str(), "tranche: --free: expected GPUs of the file (0,1,2,3,4,5,6,7), found 9\n");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"show"},
                                                {"best"},
                                                {"draw", "x"},
                                                {"best", "x", "--gpus", "0"},
                                                {"best", "x", "--gpus", "65"},
                                                {"best", "x", "-n", "0"},
                                                {"best", "x", "--free", "a"},
                                                {"show", "x", "-o", "yaml"}}) {
    EXPECT_EQ(Run(wrong), 2) << testing::PrintToString(wrong);
    EXPECT_THAT(err_.str(), StartsWith("tranche: ")) << testing::PrintToString(wrong);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
