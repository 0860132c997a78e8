// The program tranche: see cli/cli.h.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "scheduler/cli/cli.h"
#include "scheduler/cli/output/terminal.h"
#include "scheduler/server/log.h"

int main(int argc, char** argv) {
  try {
    tranche::SetTerminal(std::cout, tranche::StandardOutput());
    tranche::LogToStderr("warn");  // what is on stdout is the answer
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return tranche::RunCommandLine(arguments, std::cout, std::cerr,
                                   tranche::ProgramName(argc > 0 ? argv[0] : ""));
  } catch (const std::exception& error) {
    std::cerr << "tranche: unexpected failure: " << error.what() << '\n';
  } catch (...) {
    std::cerr << "tranche: unexpected failure\n";
  }
  return 2;
}
