#include "scheduler/ledger/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr mode_t kMode = 0640;
constexpr std::size_t kHexDigits = 64;

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EROFS:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status Failed(const char* doing, const std::string& path, int error) {
  return absl::Status(
      CodeOf(error), fmt::format("{} {}: {}", doing, path, std::generic_category().message(error)));
}

int OpenFile(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, kMode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

absl::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : Failed("sync", path, errno);
}

// "ENTRY HEX\n"
std::optional<Head> ParseHead(std::string_view text) {
  Head head;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, head.entry);
  if (error != std::errc() || head.entry < 1 || rest == end || *rest != ' ') return std::nullopt;
  text = std::string_view(rest + 1, static_cast<std::size_t>(end - rest - 1));
  if (text.size() != kHexDigits + 1 || text.back() != '\n') return std::nullopt;
  head.hash = text.substr(0, kHexDigits);
  return head;
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Descriptor> LockLedger(const std::string& path) {
  const std::string lock = path + ".lock";
  Descriptor file(OpenFile(lock, O_RDWR | O_CREAT));
  if (!file.valid()) return Failed("open", lock, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) return Failed("lock", lock, errno);
  return absl::FailedPreconditionError(fmt::format(
      "expected to be the only one to write {}, found {} held by another process", path, lock));
}

absl::StatusOr<std::optional<Head>> ReadHead(const std::string& path) {
  const std::string name = path + ".head";
  const Descriptor file(OpenFile(name, O_RDONLY));
  if (!file.valid()) {
    if (errno == ENOENT) return std::optional<Head>();
    return Failed("open", name, errno);
  }
  char bytes[128];
  const ssize_t size = read(file.get(), bytes, sizeof(bytes));
  if (size < 0) return Failed("read", name, errno);
  std::optional<Head> head = ParseHead(std::string_view(bytes, static_cast<std::size_t>(size)));
  if (head) return head;
  return absl::DataLossError(
      fmt::format("expected an entry's number and hash in {}, found {} other bytes", name, size));
}

absl::Status WriteHead(const std::string& path, const Head& head) {
  const std::string name = path + ".head";
  const std::string aside = name + ".new";
  {
    const Descriptor file(OpenFile(aside, O_WRONLY | O_CREAT | O_TRUNC));
    if (!file.valid()) return Failed("open", aside, errno);
    TRANCHE_RETURN_IF_ERROR(
        WriteAll(file.get(), fmt::format("{} {}\n", head.entry, head.hash), aside));
  }
  if (rename(aside.c_str(), name.c_str()) != 0) return Failed("rename", aside, errno);
  return absl::OkStatus();
}

void ForgetHead(const std::string& path) { unlink((path + ".head").c_str()); }

std::string_view NetworkFileSystem(uint64_t magic) {
  constexpr std::pair<uint64_t, std::string_view> kKinds[] = {
      {0x6969, "NFS"},       {0x517b, "SMB"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
      {0x65735546, "FUSE"},  {0x00c36400, "Ceph"},   {0x01021997, "9P"},    {0x0bd00bd0, "Lustre"},
      {0x5346414f, "AFS"},   {0x6b414653, "AFS"},    {0x47504653, "GPFS"},  {0x73757245, "Coda"},
      {0x013111a8, "IBRIX"}, {0x19830326, "BeeGFS"}, {0xaad7aaea, "PanFS"}, {0x7461636f, "OCFS2"},
      {0x01161970, "GFS2"},
  };
  for (const auto& [kind, name] : kKinds) {
    if (kind == magic) return name;
  }
  return "";
}

absl::Status CheckPlace(const std::string& path, NetworkFiles network) {
  struct stat file {};
  if (stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("expected a file for the ledger, found {} at {}",
                                                  S_ISDIR(file.st_mode) ? "a folder" : "a device",
                                                  path));
  }
  const std::string folder = FolderOf(path);
  struct statfs system {};
  if (statfs(folder.c_str(), &system) != 0) {
    // A disk that does not answer now may do so later; a folder that is not there is a wrong path.
    if (errno != ENOENT && errno != ENOTDIR) return absl::OkStatus();
    return absl::NotFoundError(
        fmt::format("expected a folder for the ledger, found none at {}", folder));
  }
  // 32 bits of a signed member.
  const std::string_view kind = NetworkFileSystem(static_cast<uint32_t>(system.f_type));
  if (network == NetworkFiles::kAccept || kind.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "expected a local file system for the ledger, found {} at {}: its locks and syncs "
      "cannot be relied on; ledger.networkFiles: Accept takes it all the same",
      kind, path));
}

absl::Status KeepWalAside(const std::string& path) {
  const std::string wal = path + "-wal";
  const std::string kept = wal + ".kept";
  const int64_t size = FileBytes(wal);
  if (size == 0 || FileBytes(kept) == size) return absl::OkStatus();
  std::error_code error;
  std::filesystem::copy_file(wal, kept, std::filesystem::copy_options::overwrite_existing, error);
  if (error) return Failed("copy aside", wal, error.value());
  return SyncFolder(path);
}

void MakeReserve(const std::string& path) {
  const std::string name = path + ".reserve";
  if (FileBytes(name) == kReserveBytes) return;
  const Descriptor file(OpenFile(name, O_WRONLY | O_CREAT));
  if (file.valid() && posix_fallocate(file.get(), 0, kReserveBytes) != 0) unlink(name.c_str());
}

bool FreeReserve(const std::string& path) { return unlink((path + ".reserve").c_str()) == 0; }

int64_t FreeBytes(const std::string& path) {
  struct statvfs system {};
  if (statvfs(FolderOf(path).c_str(), &system) != 0) return 0;
  return static_cast<int64_t>(system.f_bavail * system.f_frsize);
}

int64_t FileBytes(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_size : 0;
}

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

bool FileExists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

absl::Status SyncFolder(const std::string& path) {
  const std::string folder = FolderOf(path);
  const Descriptor file(OpenFile(folder, O_RDONLY | O_DIRECTORY));
  if (!file.valid() || fsync(file.get()) != 0) return Failed("sync", folder, errno);
  return absl::OkStatus();
}

}  // namespace tranche::ledger
