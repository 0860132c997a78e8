// A SQLite VFS that knows what a disk could hold after a power cut, and fails calls on demand.
//
// Everything goes through to the VFS that was the default before; on the way it is noted, for each
// file, which bytes were synced and which writes and truncations came since. A sync is noted, never
// done, so that tests are fast. Files other than databases, journals and WALs are not followed.
//
// Model of the disk: synced bytes stay. Of what was not synced each sector of each write, each
// change of size, each new and each removed name survives or not on its own, and a sector can be
// written in part. Bytes outside a write are never harmed (SQLite's "powersafe overwrite").
//
// Thread rule: any thread. One of them at a time; it is the default VFS while it lives, and all
// databases opened through it are closed before it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tranche::fakes {

enum class DiskFault : uint8_t {
  kFull,        // a write fails with SQLITE_FULL
  kWriteError,  // a write fails with SQLITE_IOERR_WRITE
  kReadOnly,    // a write fails with SQLITE_READONLY
  kShortWrite,  // half of a write is done, then SQLITE_FULL
  // A sync fails with SQLITE_IOERR_FSYNC. What was not synced will never be; readers still see it,
  // as from a cache ...
  kSyncUnsaid,
  // ... or see the old bytes at once.
  kSyncReverted,
};

// One file on the disk, and what is on the way to it.
struct DiskFile {
  struct Change {
    int64_t offset = 0;                        // of a truncation: the new size
    std::shared_ptr<const std::string> bytes;  // null: a truncation
  };
  enum class Name : uint8_t { kNew, kThere, kRemoved, kGone };  // kNew, kRemoved: maybe not yet
  Name name = Name::kNew;
  std::string synced;
  std::vector<Change> changes;          // since, oldest first
  std::optional<std::string> replaced;  // bytes of a removed file of the same name
};

class PowerCutVfs {
 public:
  using Disk = std::map<std::string, DiskFile>;  // by path

  PowerCutVfs();
  ~PowerCutVfs();
  PowerCutVfs(const PowerCutVfs&) = delete;
  PowerCutVfs& operator=(const PowerCutVfs&) = delete;

  // Called before each write, truncation, sync and removal, on the thread that does it, with its
  // number, 1, 2, ... The power goes off just there for a test that calls disk() in it. Set before
  // the first database is opened.
  void SetWatcher(std::function<void(int64_t operation)> watcher);
  Disk disk() const;
  // Writes into the folder `to` what could be left of the files in the folder `from`.
  static void Restore(const Disk& disk, uint64_t seed, const std::string& from,
                      const std::string& to);

  // Calls of the fault's kind fail, the n-th from now (n >= 1) and the `times - 1` after it.
  void Inject(DiskFault fault, int64_t n, int64_t times);
  void Heal();
  int64_t faults() const;  // that came true since the last Inject

  // From now on every write, truncation, sync and removal fails, as those that a process would have
  // done had it not been killed; until Thaw.
  void Freeze();
  void Thaw();
  // Files in that folder were changed behind this, or are gone; none of them is open.
  void Forget(const std::string& folder);
  // What SQLite draws at random follows from the seed.
  void Seed(uint64_t seed);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::fakes
