#include "scheduler/dra/claim_constraints.h"

#include <algorithm>

namespace tranche::dra {
namespace {

bool IsList(const AttributeValue& value) { return std::holds_alternative<OtherValue>(value); }

using Answer = ClaimConstraints::Answer;

Answer Judge(const Constraint& constraint, const std::vector<const AttributeValue*>& values,
             const AttributeValue& value) {
  if (IsList(value)) return Answer::kUnknown;
  Answer answer = Answer::kYes;
  for (const AttributeValue* other : values) {
    if (IsList(*other)) {
      answer = Answer::kUnknown;
    } else if ((*other == value) == constraint.distinct) {
      return Answer::kNo;
    }
  }
  return answer;
}

}  // namespace

ClaimConstraints::ClaimConstraints(const Claim& claim)
    : claim_(&claim), values_(claim.constraints.size()) {}

bool ClaimConstraints::Applies(const Constraint& constraint, const std::string& request,
                               const std::string& choice) {
  if (constraint.requests.empty()) return true;
  return std::ranges::any_of(constraint.requests, [&](const std::string& name) {
    return name == request || (!choice.empty() && name == request + "/" + choice);
  });
}

Answer ClaimConstraints::Add(const std::string& request, const std::string& choice,
                             const Device& device) {
  Answer answer = Answer::kYes;
  std::vector<const AttributeValue*> added(claim_->constraints.size());
  for (std::size_t i = 0; i < claim_->constraints.size(); ++i) {
    const Constraint& constraint = claim_->constraints[i];
    if (!Applies(constraint, request, choice)) continue;
    const Attribute* attribute =
        FindAttribute(device, constraint.attribute.domain, constraint.attribute.name);
    if (attribute == nullptr) return Answer::kNo;
    const Answer judged = Judge(constraint, values_[i], attribute->value);
    if (judged == Answer::kNo) return Answer::kNo;
    if (judged == Answer::kUnknown) answer = judged;
    added[i] = &attribute->value;
  }
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (added[i] != nullptr) values_[i].push_back(added[i]);
  }
  return answer;
}

void ClaimConstraints::RemoveLast(const std::string& request, const std::string& choice) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (Applies(claim_->constraints[i], request, choice)) values_[i].pop_back();
  }
}

}  // namespace tranche::dra
