#include "topology/machine/machine_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "topology/base/status.h"

namespace tranche {
namespace {

constexpr std::size_t kMostBytes = 256 * 1024;
constexpr std::size_t kMostProblems = 32;
constexpr std::size_t kShownBytes = 32;
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kSelf = "X";
constexpr std::string_view kNotTold = "N/A";

struct PathCode {
  std::string_view code;
  PathClass path;
};
constexpr std::array kPathCodes = {
    PathCode{"SYS", PathClass::kSys},   PathCode{"SOC", PathClass::kSys},  // SOC: before 2017
    PathCode{"NODE", PathClass::kNode}, PathCode{"PHB", PathClass::kPhb},
    PathCode{"PXB", PathClass::kPxb},   PathCode{"PIX", PathClass::kPix},
};

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

// A word of the text in an error.
std::string Shown(std::string_view word) {
  return fmt::format("\"{}\"{}", word.substr(0, kShownBytes),
                     word.size() > kShownBytes ? "..." : "");
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Takes the next word off the front; empty at the end.
std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

std::vector<std::string_view> WordsOf(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::string_view word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
    words.push_back(word);
  }
  return words;
}

// Newer drivers underline the header row: escape sequences and carriage returns go. Names reach
// terminals and JSON, so that only printable characters stay.
std::string Plain(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\x1b' && at + 1 < line.size() && line[at + 1] == '[') {
      at += 2;
      while (at < line.size() && (line[at] < '@' || line[at] > '~')) ++at;
    } else if (line[at] != '\r') {
      plain += line[at] == '\t' || IsPrintable(line[at]) ? line[at] : '?';
    }
  }
  return plain;
}

std::optional<int> ReadNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && text.front() != '-' ? std::optional(number) : std::nullopt;
}

bool IsGpuName(std::string_view name) {
  return name.substr(0, 3) == "GPU" && ReadNumber(name.substr(3)).has_value();
}

// "0,3-9,11-17": digits, commas and ranges.
bool IsNumberList(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,-") == std::string_view::npos;
}

// The lowest number of such a list; nullopt: it is none.
std::optional<int> LowestOf(std::string_view list) {
  std::optional<int> lowest;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    const std::optional<int> first = ReadNumber(range.substr(0, range.find('-')));
    if (!first) return std::nullopt;
    lowest = std::min(lowest.value_or(*first), *first);
    list.remove_prefix(std::min(range.size() + 1, list.size()));
  }
  return lowest;
}

std::optional<PathClass> ReadPath(std::string_view code) {
  const auto* const found = std::find_if(kPathCodes.begin(), kPathCodes.end(),
                                         [&](const PathCode& row) { return row.code == code; });
  return found == kPathCodes.end() ? std::nullopt : std::optional(found->path);
}

// The number of an "NV#"; nullopt: something else.
std::optional<uint8_t> ReadNvlinks(std::string_view code) {
  if (code.substr(0, 2) != "NV") return std::nullopt;
  const std::optional<int> links = ReadNumber(code.substr(2));
  if (!links || *links < 1 || *links > kMaxNvlinks) return std::nullopt;
  return static_cast<uint8_t>(*links);
}

class MatrixReader {
 public:
  absl::StatusOr<ParsedMachine> Read(std::string_view text);

 private:
  // What follows the device cells of a row, in the order the header names it.
  struct Tail {
    std::string_view cpus;
    std::string_view numa;
  };
  struct Row {
    int line = 0;  // 0: not seen
    std::vector<std::string> cells;
  };

  absl::Status ReadLine(std::string_view line);
  absl::Status ReadHeader(std::string_view line);
  absl::Status ReadRow(std::size_t device, std::string_view cells);
  Tail SplitTail(std::string_view tail) const;
  void ReadTail(const Tail& tail, MachineGpu& gpu);
  absl::Status CheckRows() const;
  Link CellOf(std::size_t left, std::size_t right);
  std::vector<Link> Links();
  std::vector<MachineNic> Nics();
  PathClass NicCell(std::size_t row, std::size_t column);

  template <typename... Args>
  absl::Status Error(fmt::format_string<Args...> format, Args&&... args) const {
    return absl::InvalidArgumentError(
        fmt::format("line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...)));
  }
  void Problem(std::string text);
  // "line 4, row GPU2, column GPU5"
  std::string Place(std::size_t row, std::size_t column) const {
    return fmt::format("line {}, row {}, column {}", rows_[row].line, devices_[row],
                       devices_[column]);
  }

  int line_ = 0;
  bool in_legend_ = false;
  bool has_numa_column_ = false;
  std::vector<std::string> devices_;           // as the header has them
  std::map<std::string, std::size_t> column_;  // of a device
  std::vector<std::size_t> gpu_columns_;
  std::vector<std::size_t> nic_columns_;
  std::vector<Row> rows_;  // by column of their device
  std::vector<MachineGpu> gpus_;
  std::map<std::string, std::string> legend_;  // NIC0 -> mlx5_0
  std::vector<std::string> problems_;
  std::size_t unlisted_problems_ = 0;
};

void MatrixReader::Problem(std::string text) {
  if (problems_.size() < kMostProblems) {
    problems_.push_back(std::move(text));
  } else {
    ++unlisted_problems_;
  }
}

absl::Status MatrixReader::ReadHeader(std::string_view line) {
  std::string_view rest = line;
  std::string_view tail = rest;
  for (std::string_view word = TakeWord(rest); !word.empty(); word = TakeWord(rest)) {
    if (word == "CPU" || word == "NUMA" || word == "GPU") break;
    if (word == kSelf) {
      return Error("expected the header row with the names of the devices, found {}",
                   Shown(Trimmed(line)));
    }
    if (!column_.emplace(word, devices_.size()).second) {
      return Error("expected every device once in the header, found {} again", Shown(word));
    }
    (IsGpuName(word) ? gpu_columns_ : nic_columns_).push_back(devices_.size());
    devices_.emplace_back(word);
    tail = rest;
  }
  has_numa_column_ = tail.find("NUMA Affinity") != tail.npos;
  if (gpu_columns_.empty()) {
    return Error("expected GPUs in the header row, found {}", Shown(Trimmed(line)));
  }
  if (gpu_columns_.size() > std::size_t{kMaxMachineGpus}) {
    return Error("expected at most {} GPUs, found {}", kMaxMachineGpus, gpu_columns_.size());
  }
  rows_.resize(devices_.size());
  return absl::OkStatus();
}

absl::Status MatrixReader::ReadLine(std::string_view line) {
  std::string_view rest = line;
  const std::string_view word = TakeWord(rest);
  if (word.empty() || word.front() == '#') return absl::OkStatus();
  if (devices_.empty()) {
    const std::vector<std::string_view> words = WordsOf(line);  // a prompt may stand before it
    return std::any_of(words.begin(), words.end(), IsGpuName) ? ReadHeader(line) : absl::OkStatus();
  }
  if (line.find("Legend:") != line.npos) in_legend_ = true;
  if (in_legend_) {
    // "NIC0: mlx5_0"; what the codes mean is printed as "X = Self".
    if (word.back() == ':') {
      const std::string_view name = TakeWord(rest);
      if (!name.empty()) legend_.emplace(word.substr(0, word.size() - 1), name);
    }
    return absl::OkStatus();
  }
  const auto device = column_.find(std::string(word));
  if (device != column_.end()) return ReadRow(device->second, rest);
  if (IsGpuName(word)) return Error("expected rows of the header's devices, found {}", Shown(word));
  Problem(
      fmt::format("line {}: expected the row of a device, found {}; left out", line_, Shown(word)));
  return absl::OkStatus();
}

absl::Status MatrixReader::ReadRow(std::size_t device, std::string_view cells) {
  Row& row = rows_[device];
  if (row.line != 0) {
    return Error("expected one row of {}, found another after line {}", devices_[device], row.line);
  }
  row.line = line_;
  const bool is_gpu = IsGpuName(devices_[device]);
  if (is_gpu && device != gpu_columns_[gpus_.size()]) {
    return Error("expected the row of {}, in the order of the header, found {}",
                 devices_[gpu_columns_[gpus_.size()]], devices_[device]);
  }
  while (row.cells.size() < devices_.size()) {
    const std::string_view cell = TakeWord(cells);
    if (cell.empty()) {
      return Error("row {}: expected {} cells, found {}: none in column {}", devices_[device],
                   devices_.size(), row.cells.size(), devices_[row.cells.size()]);
    }
    row.cells.emplace_back(cell);
  }
  if (row.cells[device] != kSelf) {
    return Error("row {}: expected X in column {}, found {}", devices_[device], devices_[device],
                 Shown(row.cells[device]));
  }
  if (is_gpu) {
    gpus_.push_back({devices_[device], {}, {}, {}});
    ReadTail(SplitTail(cells), gpus_.back());
  }
  return absl::OkStatus();
}

// With tabs a cell may be empty (no affinity known); where only blanks survived it cannot be seen.
MatrixReader::Tail MatrixReader::SplitTail(std::string_view tail) const {
  Tail split;
  if (tail.find('\t') == tail.npos) {
    split.cpus = TakeWord(tail);
    split.numa = TakeWord(tail);
    return split;
  }
  tail.remove_prefix(tail.find('\t') + 1);
  const std::size_t end = std::min(tail.find('\t'), tail.size());
  split.cpus = Trimmed(tail.substr(0, end));
  tail.remove_prefix(std::min(end + 1, tail.size()));
  split.numa = Trimmed(tail.substr(0, tail.find('\t')));
  return split;
}

void MatrixReader::ReadTail(const Tail& tail, MachineGpu& gpu) {
  if (IsNumberList(tail.cpus)) {
    gpu.cpus = tail.cpus;
  } else if (!tail.cpus.empty() && tail.cpus != kNotTold) {
    Problem(fmt::format("line {}, row {}, column CPU Affinity: expected CPU numbers, found {}",
                        line_, gpu.name, Shown(tail.cpus)));
  }
  if (!has_numa_column_ || tail.numa.empty() || tail.numa == kNotTold) return;
  gpu.numa = LowestOf(tail.numa);
  if (!gpu.numa) {
    Problem(fmt::format("line {}, row {}, column NUMA Affinity: expected numbers or N/A, found {}",
                        line_, gpu.name, Shown(tail.numa)));
  }
}

absl::Status MatrixReader::CheckRows() const {
  for (const std::size_t column : gpu_columns_) {
    if (rows_[column].line == 0) {
      return Error("expected a row for each of {} GPUs, found the end and none of {}",
                   gpu_columns_.size(), devices_[column]);
    }
  }
  return absl::OkStatus();
}

Link MatrixReader::CellOf(std::size_t left, std::size_t right) {
  const std::size_t row = gpu_columns_[left];
  const std::size_t column = gpu_columns_[right];
  const std::string& code = rows_[row].cells[column];
  if (const std::optional<PathClass> path = ReadPath(code)) return {*path, 0};
  if (const std::optional<uint8_t> links = ReadNvlinks(code)) {
    return {InferredPath(gpus_[left].numa, gpus_[right].numa), *links};
  }
  Problem(
      fmt::format("{}: expected NV1 to NV{}, PIX, PXB, PHB, NODE or SYS, found {}; taken as "
                  "SYS",
                  Place(row, column), kMaxNvlinks, Shown(code)));
  return {};
}

std::vector<Link> MatrixReader::Links() {
  const std::size_t count = gpus_.size();
  std::vector<Link> links(count * count);
  for (std::size_t left = 0; left < count; ++left) {
    for (std::size_t right = 0; right < count; ++right) {
      if (left == right) continue;
      const Link link = links[left * count + right] = CellOf(left, right);
      const Link back = links[right * count + left];
      if (right > left || link == back) continue;
      Problem(fmt::format("{}: expected {} as in line {}, found {}; the worse counts",
                          Place(gpu_columns_[left], gpu_columns_[right]), LinkName(back),
                          rows_[gpu_columns_[right]].line, LinkName(link)));
    }
  }
  return links;
}

PathClass MatrixReader::NicCell(std::size_t row, std::size_t column) {
  const std::string& code = rows_[row].cells[column];
  if (const std::optional<PathClass> path = ReadPath(code)) return *path;
  Problem(fmt::format("{}: expected PIX, PXB, PHB, NODE or SYS, found {}; taken as SYS",
                      Place(row, column), Shown(code)));
  return PathClass::kSys;
}

std::vector<MachineNic> MatrixReader::Nics() {
  std::vector<MachineNic> nics;
  for (const std::size_t column : nic_columns_) {
    MachineNic nic;
    const auto legend = legend_.find(devices_[column]);
    nic.name = legend == legend_.end() ? devices_[column] : legend->second;
    for (const std::size_t row : gpu_columns_) {
      PathClass path = NicCell(row, column);
      if (rows_[column].line != 0 && rows_[column].cells[row] != rows_[row].cells[column]) {
        Problem(fmt::format("{}: expected {} as in line {}, found {}; the worse counts",
                            Place(column, row), Shown(rows_[row].cells[column]), rows_[row].line,
                            Shown(rows_[column].cells[row])));
        path = std::min(path, NicCell(column, row));
      }
      nic.paths.push_back(path);
    }
    nics.push_back(std::move(nic));
  }
  MarkFabric(nics);
  return nics;
}

absl::StatusOr<ParsedMachine> MatrixReader::Read(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++line_;
    TRANCHE_RETURN_IF_ERROR(ReadLine(Plain(text.substr(0, end))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (devices_.empty()) return Error("expected a header row that names GPU0, found the end");
  TRANCHE_RETURN_IF_ERROR(CheckRows());
  std::vector<Link> links = Links();
  std::vector<MachineNic> nics = Nics();
  if (unlisted_problems_ > 0) {
    problems_.push_back(fmt::format("and {} more of the kind", unlisted_problems_));
  }
  return ParsedMachine{Machine(std::move(gpus_), std::move(links), std::move(nics)),
                       std::move(problems_)};
}

}  // namespace

absl::StatusOr<ParsedMachine> ParseMachine(std::string_view text) {
  if (text.size() > kMostBytes) {
    return absl::InvalidArgumentError(
        fmt::format("expected at most {} bytes of matrix, found {}", kMostBytes, text.size()));
  }
  return MatrixReader().Read(text);
}

}  // namespace tranche
