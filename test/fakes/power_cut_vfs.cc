#include "test/fakes/power_cut_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <random>

#include "topology/base/check.h"

namespace tranche::fakes {
namespace {

constexpr int kFollowed = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::string bytes(in ? static_cast<std::size_t>(in.tellg()) : 0, '\0');
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

std::string_view FolderOf(std::string_view path) { return path.substr(0, path.rfind('/')); }

// `piece` at `offset`; a gap before it reads as zeros.
void Overwrite(std::string& bytes, int64_t offset, std::string_view piece) {
  const auto start = static_cast<std::size_t>(offset);
  if (bytes.size() < start + piece.size()) bytes.resize(start + piece.size());
  bytes.replace(start, piece.size(), piece);
}

void Apply(const DiskFile::Change& change, std::string& bytes) {
  if (change.bytes == nullptr) {
    bytes.resize(static_cast<std::size_t>(change.offset));
  } else {
    Overwrite(bytes, change.offset, *change.bytes);
  }
}

// Decides what survives one power cut.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {
    constexpr uint64_t kKept[] = {0, 10, 50, 90, 100};
    kept_percent_ = kKept[Below(std::size(kKept))];
    sector_ = Below(2) == 0 ? 512 : 4096;
  }

  uint64_t Below(uint64_t limit) { return random_() % limit; }
  bool Kept() { return Below(100) < kept_percent_; }

  std::string Survivors(const DiskFile& file) {
    std::string bytes = file.synced;
    for (const DiskFile::Change& change : file.changes) {
      if (change.bytes != nullptr) {
        SurviveBySector(change, bytes);
      } else if (Kept()) {
        Apply(change, bytes);
      }
    }
    return bytes;
  }

 private:
  void SurviveBySector(const DiskFile::Change& change, std::string& bytes) {
    const std::string_view all = *change.bytes;
    for (std::size_t at = 0; at < all.size();) {
      const auto position = static_cast<uint64_t>(change.offset) + at;
      const std::string_view piece = all.substr(at, sector_ - position % sector_);
      at += piece.size();
      if (!Kept()) continue;
      const bool torn = Below(8) == 0;
      Overwrite(bytes, static_cast<int64_t>(position),
                torn ? piece.substr(0, Below(piece.size())) : piece);
    }
  }

  std::mt19937_64 random_;
  uint64_t kept_percent_ = 0;
  uint64_t sector_ = 512;
};

}  // namespace

struct PowerCutVfs::Impl {
  // What SQLite holds of an open file; the real one lies behind it.
  struct Handle {
    sqlite3_file base;
    Impl* owner;
    DiskFile* file;  // null: not followed
    // The default VFS syncs the folder at the first sync of a new journal or WAL.
    bool syncs_folder;
    std::string_view folder;  // a part of the name, which SQLite keeps while the file is open
    sqlite3_file* real;
  };
  struct Plan {
    DiskFault fault = DiskFault::kFull;
    int64_t before = 0;  // calls that still succeed
    int64_t left = 0;    // calls that will fail
  };

  Impl();
  static Impl& Of(sqlite3_vfs* vfs) { return *static_cast<Impl*>(vfs->pAppData); }
  static Handle& Of(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }
  static sqlite3_file* Real(sqlite3_file* file) { return Of(file).real; }

  static int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out);
  static int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder);
  static int Close(sqlite3_file* file);
  static int Write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset);
  static int Truncate(sqlite3_file* file, sqlite3_int64 size);
  static int Sync(sqlite3_file* file, int flags);
  static void PutBack(Handle& handle);

  void SetPassingMethods();
  void Announce();
  // Whether this call is to fail, with which fault.
  std::optional<DiskFault> Draw(bool is_sync);
  // A name that was on its way, new or removed, is settled.
  static void SyncName(DiskFile& file);
  void SyncFolder(std::string_view folder);
  static void Record(DiskFile& file, int64_t offset, std::shared_ptr<const std::string> bytes);

  sqlite3_vfs* real = nullptr;
  sqlite3_vfs vfs = {};
  sqlite3_io_methods methods = {};
  std::function<void(int64_t)> watcher;

  mutable std::mutex mutex;  // guards what follows
  Disk disk;
  int64_t operations = 0;
  Plan plan;
  int64_t faults = 0;
  bool frozen = false;
  std::optional<std::mt19937_64> random;
};

PowerCutVfs::Impl::Impl() : real(sqlite3_vfs_find(nullptr)) {
  vfs.iVersion = 2;
  vfs.szOsFile = static_cast<int>(sizeof(Handle)) + real->szOsFile;
  vfs.mxPathname = real->mxPathname;
  vfs.zName = "power-cut";
  vfs.pAppData = this;
  vfs.xOpen = Open;
  vfs.xDelete = Delete;
  // Two, so that SQLite never maps the file and every write is seen.
  methods.iVersion = 2;
  methods.xClose = Close;
  methods.xWrite = Write;
  methods.xTruncate = Truncate;
  methods.xSync = Sync;
  SetPassingMethods();
}

void PowerCutVfs::Impl::SetPassingMethods() {
  vfs.xAccess = [](sqlite3_vfs* v, const char* name, int flags, int* out) {
    return Of(v).real->xAccess(Of(v).real, name, flags, out);
  };
  vfs.xFullPathname = [](sqlite3_vfs* v, const char* name, int size, char* out) {
    return Of(v).real->xFullPathname(Of(v).real, name, size, out);
  };
  vfs.xRandomness = [](sqlite3_vfs* v, int size, char* out) {
    if (auto& drawn = Of(v).random) {
      std::generate_n(out, size, [&drawn] { return static_cast<char>((*drawn)()); });
      return size;
    }
    return Of(v).real->xRandomness(Of(v).real, size, out);
  };
  vfs.xSleep = [](sqlite3_vfs* v, int micros) { return Of(v).real->xSleep(Of(v).real, micros); };
  vfs.xCurrentTime = [](sqlite3_vfs* v, double* out) {
    return Of(v).real->xCurrentTime(Of(v).real, out);
  };
  vfs.xGetLastError = [](sqlite3_vfs* v, int size, char* out) {
    return Of(v).real->xGetLastError(Of(v).real, size, out);
  };
  vfs.xCurrentTimeInt64 = [](sqlite3_vfs* v, sqlite3_int64* out) {
    return Of(v).real->xCurrentTimeInt64(Of(v).real, out);
  };
  methods.xRead = [](sqlite3_file* f, void* out, int count, sqlite3_int64 offset) {
    return Real(f)->pMethods->xRead(Real(f), out, count, offset);
  };
  methods.xFileSize = [](sqlite3_file* f, sqlite3_int64* out) {
    return Real(f)->pMethods->xFileSize(Real(f), out);
  };
  methods.xLock = [](sqlite3_file* f, int level) {
    return Real(f)->pMethods->xLock(Real(f), level);
  };
  methods.xUnlock = [](sqlite3_file* f, int level) {
    return Real(f)->pMethods->xUnlock(Real(f), level);
  };
  methods.xCheckReservedLock = [](sqlite3_file* f, int* out) {
    return Real(f)->pMethods->xCheckReservedLock(Real(f), out);
  };
  methods.xFileControl = [](sqlite3_file* f, int operation, void* argument) {
    return Real(f)->pMethods->xFileControl(Real(f), operation, argument);
  };
  methods.xSectorSize = [](sqlite3_file* f) { return Real(f)->pMethods->xSectorSize(Real(f)); };
  methods.xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; };
  methods.xShmMap = [](sqlite3_file* f, int page, int size, int extend, void volatile** out) {
    return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, out);
  };
  methods.xShmLock = [](sqlite3_file* f, int offset, int count, int flags) {
    return Real(f)->pMethods->xShmLock(Real(f), offset, count, flags);
  };
  methods.xShmBarrier = [](sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); };
  methods.xShmUnmap = [](sqlite3_file* f, int remove) {
    return Real(f)->pMethods->xShmUnmap(Real(f), remove);
  };
}

void PowerCutVfs::Impl::Announce() {
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex);
    number = ++operations;
  }
  if (watcher) watcher(number);
}

std::optional<DiskFault> PowerCutVfs::Impl::Draw(bool is_sync) {
  const bool plan_is_sync =
      plan.fault == DiskFault::kSyncUnsaid || plan.fault == DiskFault::kSyncReverted;
  if (plan.left == 0 || plan_is_sync != is_sync) return std::nullopt;
  if (plan.before > 0) {
    --plan.before;
    return std::nullopt;
  }
  --plan.left;
  ++faults;
  return plan.fault;
}

void PowerCutVfs::Impl::Record(DiskFile& file, int64_t offset,
                               std::shared_ptr<const std::string> bytes) {
  file.changes.push_back({offset, std::move(bytes)});
}

void PowerCutVfs::Impl::SyncName(DiskFile& file) {
  if (file.name == DiskFile::Name::kNew) file.name = DiskFile::Name::kThere;
  if (file.name == DiskFile::Name::kRemoved) file.name = DiskFile::Name::kGone;
  file.replaced.reset();
}

void PowerCutVfs::Impl::SyncFolder(std::string_view folder) {
  for (auto& [path, file] : disk) {
    if (FolderOf(path) == folder) SyncName(file);
  }
}

int PowerCutVfs::Impl::Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                            int* out) {
  Impl& impl = Of(vfs);
  Handle& handle = Of(file);
  handle.base.pMethods = nullptr;
  handle.owner = &impl;
  handle.file = nullptr;
  handle.real = reinterpret_cast<sqlite3_file*>(&handle + 1);
  const bool followed = name != nullptr && (flags & kFollowed) != 0;
  const bool existed = followed && std::filesystem::exists(name);
  const int code = impl.real->xOpen(impl.real, name, handle.real, flags, out);
  if (handle.real->pMethods != nullptr) handle.base.pMethods = &impl.methods;
  if (code != SQLITE_OK || !followed) return code;
  const std::lock_guard lock(impl.mutex);
  const auto [place, is_new] = impl.disk.try_emplace(name);
  DiskFile& known = place->second;
  if (is_new && existed) {
    known.name = DiskFile::Name::kThere;
    known.synced = ReadAll(name);
  } else if (known.name == DiskFile::Name::kRemoved || known.name == DiskFile::Name::kGone) {
    DiskFile fresh;
    if (known.name == DiskFile::Name::kRemoved) fresh.replaced = std::move(known.synced);
    known = std::move(fresh);
  }
  handle.file = &known;
  handle.syncs_folder = known.name == DiskFile::Name::kNew && (flags & SQLITE_OPEN_MAIN_DB) == 0;
  handle.folder = FolderOf(name);
  return code;
}

int PowerCutVfs::Impl::Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  Impl& impl = Of(vfs);
  impl.Announce();
  if (impl.frozen) return SQLITE_IOERR_DELETE;
  const int code = impl.real->xDelete(impl.real, name, 0);
  const std::lock_guard lock(impl.mutex);
  const auto place = impl.disk.find(name);
  if (code != SQLITE_OK || place == impl.disk.end()) return code;
  const bool sure = sync_folder != 0 || place->second.name == DiskFile::Name::kNew;
  place->second.name = sure ? DiskFile::Name::kGone : DiskFile::Name::kRemoved;
  return code;
}

int PowerCutVfs::Impl::Close(sqlite3_file* file) {
  return Real(file)->pMethods->xClose(Real(file));
}

int PowerCutVfs::Impl::Write(sqlite3_file* file, const void* bytes, int count,
                             sqlite3_int64 offset) {
  Handle& handle = Of(file);
  const auto pass = [&](int some) {
    return handle.real->pMethods->xWrite(handle.real, bytes, some, offset);
  };
  if (handle.file == nullptr) return pass(count);
  Impl& impl = *handle.owner;
  impl.Announce();
  const std::lock_guard lock(impl.mutex);
  if (impl.frozen) return SQLITE_IOERR_WRITE;
  const std::optional<DiskFault> fault = impl.Draw(false);
  if (fault == DiskFault::kFull) return SQLITE_FULL;
  if (fault == DiskFault::kWriteError) return SQLITE_IOERR_WRITE;
  if (fault == DiskFault::kReadOnly) return SQLITE_READONLY;
  const int done = fault == DiskFault::kShortWrite ? count / 2 : count;
  const int code = pass(done);
  if (code != SQLITE_OK) return code;
  impl.Record(*handle.file, offset,
              std::make_shared<const std::string>(static_cast<const char*>(bytes),
                                                  static_cast<std::size_t>(done)));
  return fault == DiskFault::kShortWrite ? SQLITE_FULL : SQLITE_OK;
}

int PowerCutVfs::Impl::Truncate(sqlite3_file* file, sqlite3_int64 size) {
  Handle& handle = Of(file);
  if (handle.file != nullptr) handle.owner->Announce();
  const std::lock_guard lock(handle.owner->mutex);
  if (handle.owner->frozen) return SQLITE_IOERR_TRUNCATE;
  const int code = handle.real->pMethods->xTruncate(handle.real, size);
  if (code == SQLITE_OK && handle.file != nullptr) {
    handle.owner->Record(*handle.file, size, nullptr);
  }
  return code;
}

// The file shows again what was synced, and no more.
void PowerCutVfs::Impl::PutBack(Handle& handle) {
  constexpr std::size_t kPiece = 65'536;  // SQLite writes no more at once
  const std::string_view synced = handle.file->synced;
  const sqlite3_io_methods& methods = *handle.real->pMethods;
  TRANCHE_CHECK(methods.xTruncate(handle.real, static_cast<int64_t>(synced.size())) == SQLITE_OK);
  for (std::size_t at = 0; at < synced.size(); at += kPiece) {
    const std::string_view piece = synced.substr(at, kPiece);
    TRANCHE_CHECK(methods.xWrite(handle.real, piece.data(), static_cast<int>(piece.size()),
                                 static_cast<int64_t>(at)) == SQLITE_OK);
  }
}

int PowerCutVfs::Impl::Sync(sqlite3_file* file, int) {
  Handle& handle = Of(file);
  if (handle.file == nullptr) return SQLITE_OK;
  Impl& impl = *handle.owner;
  impl.Announce();
  const std::lock_guard lock(impl.mutex);
  if (impl.frozen) return SQLITE_IOERR_FSYNC;
  DiskFile& disk_file = *handle.file;
  const std::optional<DiskFault> fault = impl.Draw(true);
  if (!fault.has_value()) {
    for (const DiskFile::Change& change : disk_file.changes) Apply(change, disk_file.synced);
    impl.SyncName(disk_file);
    if (handle.syncs_folder) impl.SyncFolder(handle.folder);
    handle.syncs_folder = false;
  } else if (*fault == DiskFault::kSyncReverted) {
    PutBack(handle);
  }
  disk_file.changes.clear();
  return fault.has_value() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

PowerCutVfs::PowerCutVfs() : impl_(std::make_unique<Impl>()) {
  TRANCHE_CHECK(sqlite3_vfs_register(&impl_->vfs, 1) == SQLITE_OK);
}

PowerCutVfs::~PowerCutVfs() {
  sqlite3_vfs_unregister(&impl_->vfs);
  sqlite3_vfs_register(impl_->real, 1);
}

void PowerCutVfs::SetWatcher(std::function<void(int64_t)> watcher) {
  impl_->watcher = std::move(watcher);
}

PowerCutVfs::Disk PowerCutVfs::disk() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->disk;
}

void PowerCutVfs::Restore(const Disk& disk, uint64_t seed, const std::string& from,
                          const std::string& to) {
  Chance chance(seed);
  for (const auto& [path, file] : disk) {
    if (FolderOf(path) != from || file.name == DiskFile::Name::kGone) continue;
    std::optional<std::string> left = chance.Survivors(file);
    if (file.name == DiskFile::Name::kRemoved && chance.Kept()) continue;
    if (file.name == DiskFile::Name::kNew && !chance.Kept()) left = file.replaced;
    if (!left.has_value()) continue;
    std::ofstream(to + path.substr(from.size()), std::ios::binary) << *left;
  }
}

void PowerCutVfs::Inject(DiskFault fault, int64_t n, int64_t times) {
  const std::lock_guard lock(impl_->mutex);
  impl_->plan = {fault, n - 1, times};
  impl_->faults = 0;
}

void PowerCutVfs::Heal() {
  const std::lock_guard lock(impl_->mutex);
  impl_->plan.left = 0;
}

void PowerCutVfs::Freeze() {
  const std::lock_guard lock(impl_->mutex);
  impl_->frozen = true;
}

void PowerCutVfs::Thaw() {
  const std::lock_guard lock(impl_->mutex);
  impl_->frozen = false;
}

void PowerCutVfs::Forget(const std::string& folder) {
  const std::lock_guard lock(impl_->mutex);
  std::erase_if(impl_->disk,
                [&folder](const auto& known) { return FolderOf(known.first) == folder; });
}

void PowerCutVfs::Seed(uint64_t seed) {
  impl_->random.emplace(seed);
  sqlite3_randomness(0, nullptr);  // what was drawn ahead is thrown away
}

int64_t PowerCutVfs::faults() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->faults;
}

}  // namespace tranche::fakes
