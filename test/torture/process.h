// A process of its own that keeps a ledger busy until it is killed: this test's binary with a flag.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "topology/base/units.h"

namespace tranche::torture {

inline constexpr const char* kWriterFlag = "--write-ledger-until-killed";

struct WriterJob {
  std::string path;
  int life = 1;  // also the epoch
  uint64_t seed = 0;
  Instant now;
};

// The job of the process: opens, appends what Load(seed, life, now, what was open) gives, and
// prints a line with the number of batches at each acknowledgement. Never returns unless the ledger
// cannot be opened, which it prints.
int WriteUntilKilled(int argc, char** argv);
// It never has more batches without an acknowledgement than these.
inline constexpr std::size_t kMostUnacknowledged = 200;

class WriterProcess {
 public:
  explicit WriterProcess(const WriterJob& job);
  ~WriterProcess();
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;

  // The next line it printed; "" at the end.
  std::string ReadLine();
  // kill -9, and waits until it is gone. Lines it printed before can still be read.
  void Kill();

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

}  // namespace tranche::torture
