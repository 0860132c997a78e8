// How a tree comes from what administrators declared: links, lines and the numbers that follow.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "absl/status/status.h"
#include "quota/tree/quota_tree.h"
#include "topology/base/status.h"

namespace tranche {

absl::StatusOr<QuotaTree> QuotaTree::Build(std::vector<QuotaNode> nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const QuotaNode& a, const QuotaNode& b) { return a.name < b.name; });
  QuotaTree tree;
  TRANCHE_RETURN_IF_ERROR(tree.Link(nodes));
  tree.Declare(nodes);
  tree.ImplyAny();
  tree.Suspend(nodes);
  tree.Derive();
  return tree;
}

absl::Status QuotaTree::Link(const std::vector<QuotaNode>& nodes) {
  for (const QuotaNode& node : nodes) {
    if (!names_.empty() && names_.back() == node.name) {
      return absl::InvalidArgumentError(
          fmt::format("quota {}: expected each name once, found it twice", node.name));
    }
    names_.push_back(node.name);
  }
  children_.resize(names_.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const QuotaNode& node = nodes[i];
    parents_.push_back(node.parent.empty() ? kNoQuota : Find(node.parent));
    if (node.parent.empty()) {
      order_.push_back(static_cast<QuotaId>(i));
    } else if (parents_.back() == kNoQuota) {
      return absl::InvalidArgumentError(
          fmt::format("quota {}: expected a parent that exists, found {}", node.name, node.parent));
    } else {
      children_[parents_.back()].push_back(static_cast<QuotaId>(i));
    }
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::vector<QuotaId>& below = children_[order_[i]];
    order_.insert(order_.end(), below.begin(), below.end());
  }
  if (order_.size() == names_.size()) return absl::OkStatus();
  // A quota that no root leads to is on a cycle or below one.
  const std::set<QuotaId> reached(order_.begin(), order_.end());
  QuotaId lost{0};
  while (reached.count(lost) != 0) ++lost;
  return absl::InvalidArgumentError(fmt::format(
      "quota {}: expected parents that lead to a root, found a cycle above it", name(lost)));
}

void QuotaTree::Declare(const std::vector<QuotaNode>& nodes) {
  std::set<std::string> names;
  for (const QuotaNode& node : nodes) {
    for (const auto& [name, limits] : node.lines) names.insert(name);
  }
  names.erase(kAnyModel);
  lines_.push_back(kAnyModel);
  lines_.insert(lines_.end(), names.begin(), names.end());
  defined_.resize(size() * lines_.size());
  limited_.resize(size() * lines_.size());
  cells_.resize(size() * lines_.size() * 2);
  for (const QuotaId id : order_) {
    for (const auto& [name, limits] : nodes[id].lines) {
      const LineId line = FindLine(name);
      defined_[LineIndex(id, line)] = 1;
      limited_[LineIndex(root(id), line)] = 1;
      for (const Dimension dimension : kDimensions) {
        SetLimits(At(id, Column(line, dimension)), limits, dimension);
      }
    }
  }
  for (const QuotaId id : order_) {
    for (LineId line{0}; line < lines_.size(); ++line) {
      limited_[LineIndex(id, line)] = limited_[LineIndex(root(id), line)];
    }
  }
}

void QuotaTree::SetLimits(Cell& cell, const LineLimits& limits, Dimension dimension) {
  cell.nominal = PartOf(limits.nominal, dimension).saturated();
  cell.borrow_limit = PartOf(limits.borrow_limit, dimension).saturated();
  cell.lend_limit = PartOf(limits.lend_limit, dimension).saturated();
}

void QuotaTree::ImplyAny() {
  for (const QuotaId id : order_) {
    if (!Limited(id, kAnyLine) || Defined(id, kAnyLine)) continue;
    defined_[LineIndex(id, kAnyLine)] = 1;
    for (const Dimension dimension : kDimensions) {
      int64_t& implied = At(id, Column(kAnyLine, dimension)).nominal;
      for (LineId line{1}; line < lines_.size(); ++line) {
        implied = AddSaturating(implied, At(id, Column(line, dimension)).nominal);
      }
    }
  }
}

void QuotaTree::Suspend(const std::vector<QuotaNode>& nodes) {
  // Children first: what a suspended parent was given goes up with its own.
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    if (!nodes[static_cast<std::size_t>(*id)].suspended || parent(*id) == kNoQuota) continue;
    for (std::size_t column = 0; column < lines_.size() * 2; ++column) {
      int64_t& pool = At(parent(*id), column).nominal;
      pool = AddSaturating(pool, At(*id, column).nominal);
      At(*id, column).nominal = 0;
    }
    for (LineId line{0}; line < lines_.size(); ++line) {
      if (Defined(*id, line)) defined_[LineIndex(parent(*id), line)] = 1;
    }
  }
}

void QuotaTree::Derive() {
  for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
    for (std::size_t column = 0; column < lines_.size() * 2; ++column) {
      Cell& cell = At(*id, column);
      cell.whole = cell.subtree = cell.nominal;
      for (const QuotaId child : children_[static_cast<std::size_t>(*id)]) {
        cell.whole = AddSaturating(cell.whole, At(child, column).whole);
        cell.subtree = AddSaturating(cell.subtree, At(child, column).exposed);
      }
      cell.exposed = std::min(cell.subtree, cell.lend_limit);
      // Nothing is held back where all is exposed, be it without limit.
      cell.local = cell.exposed == cell.subtree ? 0 : AddSaturating(cell.subtree, -cell.exposed);
    }
  }
}

}  // namespace tranche
