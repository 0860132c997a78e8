// Source: SQLite's "Database File Format", sections 1.5, 1.6, 2.1 and 4.1.
#include "test/torture/ledger_bytes.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

namespace tranche::torture {
namespace fs = std::filesystem;
namespace {

struct LedgerByte {
  std::string file;  // of the database or its log
  int64_t offset = 0;
};

constexpr std::size_t kLogHeader = 32;
constexpr std::size_t kFrameHeader = 24;
constexpr std::size_t kLeafHeader = 8;
constexpr uint64_t kTableLeaf = 13;
constexpr uint64_t kIndexLeaf = 10;

// A big-endian number.
uint64_t Number(const std::string& bytes, std::size_t at, int width) {
  uint64_t number = 0;
  for (int i = 0; i < width; ++i) {
    number = number << 8 | static_cast<unsigned char>(bytes.at(at + static_cast<std::size_t>(i)));
  }
  return number;
}

// One of seven bits a byte; moves `at` behind it.
uint64_t Varint(const std::string& bytes, std::size_t& at) {
  uint64_t number = 0;
  for (int i = 0; i < 9; ++i) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    number = number << 7 | (byte & 0x7f);
    if (byte < 0x80) break;
  }
  return number;
}

// Where tables and indices begin.
std::vector<uint64_t> Roots(const std::string& path) {
  sqlite3* database = nullptr;
  std::vector<uint64_t> roots;
  if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
    sqlite3_exec(
        database, "SELECT rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage",
        [](void* out, int, char** values, char**) {
          static_cast<std::vector<uint64_t>*>(out)->push_back(std::stoull(values[0]));
          return 0;
        },
        &roots, nullptr);
  }
  sqlite3_close(database);
  return roots;
}

// The newest content of each page that a log holds.
std::map<uint64_t, std::size_t> PagesOfLog(const std::string& log, std::size_t page_size) {
  std::map<uint64_t, std::size_t> pages;
  for (std::size_t at = kLogHeader; at + kFrameHeader + page_size <= log.size();
       at += kFrameHeader + page_size) {
    // Frames of an earlier round of the log have other salts.
    if (log.compare(at + 8, 8, log, 16, 8) != 0) break;
    pages[Number(log, at, 4)] = at + kFrameHeader;
  }
  return pages;
}

std::optional<LedgerByte> AnyByteOfARow(const std::string& path, std::mt19937_64& random) {
  std::vector<uint64_t> roots = Roots(path);
  std::shuffle(roots.begin(), roots.end(), random);
  const std::string file = BytesOf(path);
  const std::string log = BytesOf(path + "-wal");
  if (file.size() < 100) return std::nullopt;
  const auto page_size = static_cast<std::size_t>(Number(file, 16, 2));
  const std::map<uint64_t, std::size_t> logged = PagesOfLog(log, page_size);
  for (const uint64_t root : roots) {
    const auto newest = logged.find(root);
    const bool in_log = newest != logged.end();
    const std::size_t start = in_log ? newest->second : (root - 1) * page_size;
    if (!in_log && start + page_size > file.size()) continue;
    const std::string page = (in_log ? log : file).substr(start, page_size);
    const uint64_t type = Number(page, 0, 1);
    const uint64_t rows = Number(page, 3, 2);
    if ((type != kTableLeaf && type != kIndexLeaf) || rows == 0) continue;
    std::size_t at = Number(page, kLeafHeader + 2 * (random() % rows), 2);
    const uint64_t length = Varint(page, at);
    if (type == kTableLeaf) Varint(page, at);
    const std::size_t there = std::min<std::size_t>(length, page_size - at);
    return LedgerByte{in_log ? path + "-wal" : path,
                      static_cast<int64_t>(start + at + random() % there)};
  }
  return std::nullopt;
}

void FlipBitAt(const std::string& path, std::streamoff at, std::mt19937_64& random) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ (1 << (random() % 8))));
}

}  // namespace

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void FlipOneBit(const std::string& path, std::mt19937_64& random) {
  std::error_code none;
  const uintmax_t size = fs::file_size(path, none);
  if (none || size == 0) return;
  FlipBitAt(path, static_cast<std::streamoff>(random() % size), random);
}

void FlipInUse(const std::string& path, std::mt19937_64& random) {
  const std::optional<LedgerByte> byte = AnyByteOfARow(path, random);
  if (!byte) return FlipOneBit(path, random);
  FlipBitAt(byte->file, byte->offset, random);
}

}  // namespace tranche::torture
