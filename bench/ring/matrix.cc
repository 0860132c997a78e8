#include "bench/ring/matrix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <utility>

#include "fmt/format.h"

namespace tranche::bench {
namespace {

absl::StatusOr<std::vector<double>> ReadRow(const std::string& where, std::string_view line) {
  std::vector<double> cells;
  std::size_t begin = 0;
  while (begin <= line.size()) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    const std::string_view cell = line.substr(begin, end - begin);
    double value = 0;
    const auto [rest, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || rest != cell.data() + cell.size() || !(value >= 0)) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: expected a bandwidth in GB/s, found \"{}\"", where, begin + 1, cell));
    }
    cells.push_back(value);
    begin = end + 1;
  }
  return cells;
}

}  // namespace

absl::StatusOr<RingMatrix> RingMatrix::Read(const std::string& file) {
  std::ifstream in(file);
  if (!in) return absl::NotFoundError(fmt::format("expected a matrix in {}, found no file", file));
  RingMatrix matrix;
  matrix.name_ = std::filesystem::path(file).stem().string();
  std::vector<std::size_t> widths;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const auto row = ReadRow(fmt::format("{}:{}", file, widths.size() + 1), line);
    if (!row.ok()) return row.status();
    widths.push_back(row->size());
    matrix.cells_.insert(matrix.cells_.end(), row->begin(), row->end());
  }
  const std::size_t size = widths.size();
  const bool square =
      std::all_of(widths.begin(), widths.end(), [&](std::size_t width) { return width == size; });
  if (!square || size < kMostJobGpus || size > kMostRingGpus) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: expected a square matrix of {} to {} GPUs, found {} rows of {} to {} cells", file,
        kMostJobGpus, kMostRingGpus, size,
        size == 0 ? 0 : *std::min_element(widths.begin(), widths.end()),
        size == 0 ? 0 : *std::max_element(widths.begin(), widths.end())));
  }
  matrix.size_ = static_cast<int>(size);
  for (const double cell : matrix.cells_) {
    if (IsPcie(cell)) continue;
    matrix.one_nvlink_ = matrix.one_nvlink_ == 0 ? cell : std::min(matrix.one_nvlink_, cell);
  }
  matrix.FindRings();
  return matrix;
}

std::shared_ptr<const Machine> RingMatrix::AsMachine() const {
  std::vector<Link> links;
  for (const double cell : cells_) {
    const double nvlinks = IsPcie(cell) ? 0 : std::round(cell / one_nvlink_);
    links.push_back({PathClass::kSys, static_cast<uint8_t>(std::min(nvlinks, 1.0 * kMaxNvlinks))});
  }
  return std::make_shared<const Machine>(std::vector<MachineGpu>(static_cast<std::size_t>(size_)),
                                         std::move(links), std::vector<MachineNic>());
}

double RingMatrix::RingBandwidth(const RingOrder& order) const {
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += bandwidth(order[i], order[(i + 1) % order.size()]);
  }
  return sum;
}

double RingMatrix::Bottleneck(const RingOrder& order) const {
  double least = bandwidth(order.back(), order.front());
  for (std::size_t i = 1; i < order.size(); ++i) {
    least = std::min(least, bandwidth(order[i - 1], order[i]));
  }
  return least;
}

const RingOrder& RingMatrix::BestRing(GpuSet set) const { return best_[set.bits()]; }

std::vector<GpuSet> RingMatrix::Sets(GpuSet free, int count) const {
  std::vector<GpuSet> sets;
  for (uint64_t bits = 0; bits < best_.size(); ++bits) {
    const GpuSet set = GpuSet::Of(bits);
    if (set.size() == count && free.Contains(set)) sets.push_back(set);
  }
  return sets;
}

void RingMatrix::FindRings() {
  best_.resize(std::size_t{1} << size_);
  for (uint64_t bits = 0; bits < best_.size(); ++bits) {
    const GpuSet set = GpuSet::Of(bits);
    if (set.size() < kFewestJobGpus || set.size() > kMostJobGpus) continue;
    std::pair<double, double> most = {-1, -1};
    ForEachRing(set, [&](const RingOrder& order) {
      const std::pair<double, double> found = {RingBandwidth(order), Bottleneck(order)};
      if (found <= most) return;
      most = found;
      best_[bits] = order;
    });
    double& ideal = ideal_[static_cast<std::size_t>(set.size())];
    ideal = std::max(ideal, most.first);
  }
}

}  // namespace tranche::bench
