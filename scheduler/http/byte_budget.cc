#include "scheduler/http/byte_budget.h"

#include <utility>

namespace tranche::http {

bool ByteBudget::TakeLocked(std::size_t bytes) {
  if (used_ > 0 && (bytes > most_ || used_ > most_ - bytes)) return false;
  used_ += bytes;
  return true;
}

bool ByteBudget::Take(std::size_t bytes) {
  const absl::MutexLock lock(&mutex_);
  return TakeLocked(bytes);
}

void ByteBudget::Give(std::size_t bytes) {
  const absl::MutexLock lock(&mutex_);
  used_ -= bytes;
}

bool ByteBudget::TakeText(const std::shared_ptr<const std::string>& text) {
  const absl::MutexLock lock(&mutex_);
  if (const auto found = readers_.find(text.get()); found != readers_.end()) {
    ++found->second;
    return true;
  }
  if (!TakeLocked(text->size())) return false;
  readers_.emplace(text.get(), 1);
  return true;
}

void ByteBudget::GiveText(const std::string* text, std::size_t bytes) {
  const absl::MutexLock lock(&mutex_);
  const auto found = readers_.find(text);
  if (--found->second > 0) return;
  readers_.erase(found);
  used_ -= bytes;
}

std::size_t ByteBudget::used() const {
  const absl::MutexLock lock(&mutex_);
  return used_;
}

void HeldBody::Begin(ByteBudget* budget) {
  End();
  budget_ = budget;
}

bool HeldBody::GrowTo(std::size_t bytes) {
  if (budget_ == nullptr || bytes <= held_) return true;
  if (!budget_->Take(bytes - held_)) return false;
  held_ = bytes;
  return true;
}

void HeldBody::End() {
  if (budget_ != nullptr && held_ > 0) budget_->Give(held_);
  budget_ = nullptr;
  held_ = 0;
}

bool HeldText::Take(ByteBudget* budget, std::shared_ptr<const std::string> text) {
  End();
  const bool counts = budget != nullptr && text->size() > kSmall;
  if (counts && !budget->TakeText(text)) return false;
  budget_ = counts ? budget : nullptr;
  text_ = std::move(text);
  return true;
}

void HeldText::End() {
  if (budget_ != nullptr) budget_->GiveText(text_.get(), text_->size());
  budget_ = nullptr;
  text_.reset();
}

const std::string& HeldText::text() const {
  static const std::string nothing;
  return text_ ? *text_ : nothing;
}

}  // namespace tranche::http
