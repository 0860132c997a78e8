#include "scheduler/cli/cli_reserve.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tranche {
namespace THIS_FILE {

namespace fs = std::filesystem;

class ReserveTest : public testing::Test {
 protected:
  ReserveTest() : root_(testing::TempDir() + "/reserve-" + std::to_string(::getpid())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~ReserveTest() override { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // The GPU, or the error.
  std::string Found(const char* visible) {
    const absl::StatusOr<std::string> gpu = OwnGpu(visible, root_);
    return gpu.ok() ? *gpu : std::string(gpu.status().message());
  }
  std::string root_;
};

TEST_F(ReserveTest, TheEnvironmentNamesTheGpu) {
  EXPECT_EQ(Found("GPU-0fc3eda5"), "GPU-0fc3eda5");
  EXPECT_EQ(Found("2"), "2");
}

TEST_F(ReserveTest, OrTheListThatIsMounted) {
  Write("/var/run/nvidia-container-devices/GPU-a", "");
  EXPECT_EQ(Found("/var/run/nvidia-container-devices"), "GPU-a");
  Write("/var/run/nvidia-container-devices/GPU-b", "");
  EXPECT_EQ(Found("/var/run/nvidia-container-devices"),
            "expected one GPU, found NVIDIA_VISIBLE_DEVICES=\"/var/run/nvidia-container-devices\" "
            "with 2 devices and 0 device nodes /dev/nvidia*");
}

TEST_F(ReserveTest, OrTheOnlyDeviceNodeByTheDriversWord) {
  Write("/proc/driver/nvidia/gpus/0000:17:00.0/information",
        "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-a\nDevice Minor: \t 0\n");
  Write("/proc/driver/nvidia/gpus/0000:65:00.0/information",
        "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-b\nDevice Minor: \t 1\n");
  Write("/dev/nvidiactl", "");
  Write("/dev/nvidia-uvm", "");
  Write("/dev/nvidia1", "");
  EXPECT_EQ(Found(nullptr), "GPU-b");
  EXPECT_EQ(Found("void"), "GPU-b");
  Write("/dev/nvidia0", "");
  EXPECT_EQ(Found(nullptr),
            "expected one GPU, found NVIDIA_VISIBLE_DEVICES=\"\" and 2 device nodes /dev/nvidia*");
}

TEST_F(ReserveTest, TheAnswerIsTheTerminationMessage) {
  ::setenv("NVIDIA_VISIBLE_DEVICES", "GPU-a", 1);
  std::ostringstream err;
  ReserveOptions options;
  options.message_file = root_ + "/termination-log";
  EXPECT_EQ(RunReserve(options, err), 0) << err.str();
  std::ostringstream text;
  text << std::ifstream(options.message_file).rdbuf();
  EXPECT_EQ(text.str(), "GPU-a");
  options.message_file = root_ + "/none/termination-log";
  EXPECT_EQ(RunReserve(options, err), 1);
  EXPECT_NE(err.str().find("--message-file: expected a file that can be written"),
            std::string::npos);
  ::unsetenv("NVIDIA_VISIBLE_DEVICES");
}

}  // namespace THIS_FILE
}  // namespace tranche
