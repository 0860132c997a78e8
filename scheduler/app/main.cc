// The program tranche: see app/cli.h.
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "scheduler/app/cli.h"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return tranche::app::RunCommandLine(arguments, std::cout, std::cerr);
  } catch (const std::exception& error) {
    std::cerr << "tranche: unexpected failure: " << error.what() << '\n';
  } catch (...) {
    std::cerr << "tranche: unexpected failure\n";
  }
  return 2;
}
