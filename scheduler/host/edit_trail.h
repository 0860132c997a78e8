// Changes of objects of ours, and who made them, in a line for people.
//
// What changed is what the cluster shows; who did it is what a review of the same change said
// before (POST /admission/edits), if there was one. Reviews may be made up by whoever reaches that
// port, so that a name is told only with a change that came true, and as what a review said.
// Kubernetes' audit log is what proves it. A value; externally synchronised. Memory: the specs of
// all objects of ours, of each at most kMostSpecBytes, and kMostReviews names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace tranche {

class EditTrail {
 public:
  static constexpr std::size_t kMostSpecBytes = 64 * 1024;
  static constexpr std::size_t kMostReviews = 256;
  static constexpr std::size_t kMostUserBytes = 128;

  // Somebody is about to make the object so, or to delete it (`spec` empty). Of larger specs no
  // name is kept: anybody may send them.
  void Reviewed(std::string kind, std::string name, std::string_view spec, std::string_view user);
  // The object as it is by now, or that it is gone: "GPUQuota language: lines.0.nominal.gpus
  // 8 -> 10, by alice as its review says". Empty: its spec is what it was.
  std::string Changed(const std::string& kind, const std::string& name, std::string_view object);
  std::string Gone(const std::string& kind, const std::string& name);

 private:
  using Key = std::pair<std::string, std::string>;  // kind, name
  struct Review {
    Key object;
    uint64_t digest = 0;
    std::string user;
  };
  // ", by alice as its review says", or "".
  std::string ByWhom(const Key& object, std::string_view spec);

  std::map<Key, std::string> specs_;
  std::deque<Review> reviews_;
};

}  // namespace tranche
