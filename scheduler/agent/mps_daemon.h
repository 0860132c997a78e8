// NVIDIA's MPS control daemon, started and watched: through it containers that share a GPU are held
// to their parts.
//
// Without it a program takes no notice of its limits and uses the whole GPU, or none where the GPU
// is for MPS alone; so nothing may start while there is a problem. After a program's fatal fault
// its server takes nobody new until all who were there have ended. One daemon serves all GPUs and
// the containers of all users.
//
// Thread rule: one thread, which is to live as long as this does: the daemon ends with it. A step
// takes as long as the daemon does to answer, two seconds at most. Source: NVIDIA, "Multi-Process
// Service"; what it does on an H100 is in docs/adr/0049.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

namespace tranche::agent {

class MpsDaemon {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    std::string control;   // NVIDIA's program
    std::string pipe;      // folder of its sockets; made where it is missing
    bool verbose = false;  // what it writes is shown
  };

  explicit MpsDaemon(Options options) : options_(std::move(options)) {}
  ~MpsDaemon();
  MpsDaemon(const MpsDaemon&) = delete;
  MpsDaemon& operator=(const MpsDaemon&) = delete;

  // Starts it where it does not run, some seconds after it ended, and asks how its servers are.
  // Called about once a second.
  void Step(Time now);
  // Why no container may start on a GPU that is shared; empty: nothing is in the way.
  const std::string& problem() const { return problem_; }

 private:
  void Start(Time now);
  void NoteEnd();
  std::string Ask(const std::string& question, std::string& answer) const;
  std::string Inquire() const;

  const Options options_;
  pid_t pid_ = 0;  // 0: it does not run
  std::optional<Time> started_at_;
  std::optional<Time> asked_at_;
  std::string problem_ = "the MPS control daemon has not been started yet";
};

}  // namespace tranche::agent
