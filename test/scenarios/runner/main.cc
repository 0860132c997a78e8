// tranche-scenario FILE...|--help: tells each scenario to an engine of its own. The last line
// counts them; exit 1 when one failed, 2 when the call itself was wrong.
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "test/scenarios/runner/runner.h"

namespace {

using tranche::scenario::FailureText;
using tranche::scenario::Outcome;
using tranche::scenario::RunScenario;

int Run(int count, char** files) {
  int passed = 0, failed = 0;
  for (int i = 0; i < count; ++i) {
    const std::string file = files[i];
    std::ifstream stream(file);
    if (!stream) {
      std::fprintf(stderr, "expected a file that can be read, found %s\n", file.c_str());
      return 2;
    }
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    const Outcome outcome = RunScenario(text);
    if (outcome.failure) {
      ++failed;
      std::printf("%s\n", FailureText(file, *outcome.failure).c_str());
    } else {
      ++passed;
      std::printf("ok %s: %s\n", file.c_str(), outcome.name.c_str());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::printf(
        "Tells each scenario to an engine of its own, and says which expectations fail.\n"
        "Usage: tranche-scenario FILES...\n\n"
        "Positionals:\n"
        "  FILES FILE ... REQUIRED     scenarios\n");
    return 0;
  }
  if (argc < 2) {
    std::fprintf(stderr, "expected tranche-scenario FILE..., found no file\n");
    return 2;
  }
  try {
    return Run(argc - 1, argv + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "expected to finish, found %s\n", error.what());
    return 2;
  }
}
