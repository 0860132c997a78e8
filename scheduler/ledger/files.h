// The files beside the database: the lock, the remembered head, the reserve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tranche::ledger {

// An open file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// `path`.lock, held with flock until the descriptor is closed, also by a kill.
// Errors: FailedPrecondition (somebody holds it), NotFound (no such folder), PermissionDenied.
absl::StatusOr<Descriptor> LockLedger(const std::string& path);

// `path`.head: the newest entry as last seen on disk, kept apart from the database so that an older
// database put in its place is noticed. Never ahead of the database.
struct Head {
  int64_t entry = 0;
  std::string hash;  // hex
  friend bool operator==(const Head&, const Head&) = default;
};
// nullopt: there is none. Errors: Unavailable, DataLoss (it is not what WriteHead wrote).
absl::StatusOr<std::optional<Head>> ReadHead(const std::string& path);
// Written aside, synced and renamed: one more sync for each group of commits.
absl::Status WriteHead(const std::string& path, const Head& head);
void ForgetHead(const std::string& path);

// Can a ledger ever be at `path`? Errors: InvalidArgument (a folder or a device, or a file system
// over a network unless those are accepted, on which neither locks nor syncs can be relied on),
// NotFound (no folder to hold it).
enum class NetworkFiles : uint8_t { kRefuse, kAccept };
absl::Status CheckPlace(const std::string& path, NetworkFiles network);
// What statfs calls a file system of that kind; "" unless it is one over a network.
std::string_view NetworkFileSystem(uint64_t magic);

// Copies `path`-wal to `path`-wal.kept unless that is there and as long, or there is no log:
// opening the database for writing would take away what is behind a damaged place of the log.
absl::Status KeepWalAside(const std::string& path);

// `path`.reserve: 16 MiB that a full disk gets back. Best effort: without it only the reserve is
// missing.
inline constexpr int64_t kReserveBytes = 16 << 20;
void MakeReserve(const std::string& path);
// True when there was one.
bool FreeReserve(const std::string& path);

// Of the file system `path` lies on, for us. 0: unknown.
int64_t FreeBytes(const std::string& path);
// 0: no such file.
int64_t FileBytes(const std::string& path);
bool FileExists(const std::string& path);
// Which file has that name now, whatever its content; nullopt: none.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
std::optional<FileIdentity> IdentityOf(const std::string& path);
// Makes a rename in the folder of `path` durable.
absl::Status SyncFolder(const std::string& path);

}  // namespace tranche::ledger
