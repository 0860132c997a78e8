// The program tranche: see app/cli.h.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "scheduler/app/cli.h"
#include "scheduler/app/cli_terminal.h"
#include "scheduler/app/log.h"

int main(int argc, char** argv) {
  try {
    tranche::app::SetTerminal(std::cout, tranche::app::StandardOutput());
    tranche::app::LogToStderr("warn");  // what is on stdout is the answer
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return tranche::app::RunCommandLine(arguments, std::cout, std::cerr,
                                        tranche::app::ProgramName(argc > 0 ? argv[0] : ""));
  } catch (const std::exception& error) {
    std::cerr << "tranche: unexpected failure: " << error.what() << '\n';
  } catch (...) {
    std::cerr << "tranche: unexpected failure\n";
  }
  return 2;
}
