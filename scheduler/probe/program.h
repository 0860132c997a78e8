// Runs another program for what it prints.
//
// Thread rule: any thread. The program gets no shell and, unless it is said otherwise, no input and
// of the environment only PATH and LD_LIBRARY_PATH, by which container images find NVIDIA's
// programs and libraries.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tranche::probe {

struct Program {
  std::string path;                    // without a slash: looked for in PATH
  std::vector<std::string> arguments;  // after the name
  std::chrono::milliseconds timeout{20'000};
  std::size_t output_limit = 256 * 1024;
  std::string input = {};  // what it reads, a few lines; empty: nothing
};

// What it finds around it.
struct Surroundings {
  std::vector<std::string> environment;  // "NAME=VALUE"; empty: the two above
  bool shows_errors = false;             // its standard error is ours
  // It may ask the person at the terminal: its input is ours, and it stays in our group, so that
  // what it started is not killed with it.
  bool interactive = false;
};

// What it sees of ours where it is given nothing else.
std::vector<std::string> SmallEnvironment();
// As exec wants it: pointers to texts, which it does not change, and a null.
std::vector<char*> ExecPointers(std::vector<std::string>& texts);

// What it wrote to standard output. Errors: NotFound when there is no such program;
// DeadlineExceeded and ResourceExhausted past the limits, when it and what it started are killed;
// Unavailable for an exit code other than 0.
absl::StatusOr<std::string> OutputOf(const Program& program, const Surroundings& around = {});

}  // namespace tranche::probe
