#include "test/sim/claims/device_allocator.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tranche::sim {
namespace {

struct Device {
  std::string driver, pool, name;
  const Json* object = nullptr;
  std::string id() const { return pool + "/" + name; }
};

const Json* Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// Of pools that are whole, by their highest generation.
std::vector<Device> DevicesOf(const std::vector<const Json*>& slices) {
  struct Pool {
    int64_t generation = 0;
    std::vector<const Json*> specs;
  };
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const Json* const slice : slices) {
    const Json& spec = slice->at("spec");
    const auto generation = spec.at("pool").at("generation").get<int64_t>();
    Pool& pool = pools[{spec.at("driver"), spec.at("pool").at("name")}];
    if (generation < pool.generation) continue;
    if (generation > pool.generation) pool = {generation, {}};
    pool.specs.push_back(&spec);
  }
  std::vector<Device> devices;
  for (const auto& [name, pool] : pools) {
    const auto whole = pool.specs.front()->at("pool").at("resourceSliceCount").get<std::size_t>();
    if (pool.specs.size() != whole) continue;
    for (const Json* const spec : pool.specs) {
      for (const Json& device : spec->at("devices")) {
        devices.push_back({name.first, name.second, device.at("name"), &device});
      }
    }
  }
  return devices;
}

// The value of a text attribute of the driver's domain; nullptr: it has none.
const std::string* TextOf(const Device& device, const std::string& name) {
  const Json* const attribute = Find(device.object->at("attributes"), name.c_str());
  const Json* const text = attribute == nullptr ? nullptr : Find(*attribute, "string");
  return text == nullptr ? nullptr : text->get_ptr<const std::string*>();
}

enum class Match : uint8_t { kNo, kYes, kError };

// "device.driver == 'V'" or "device.attributes['D'].NAME == 'V'".
Match TermMatches(const std::string& term, const Device& device) {
  const std::size_t equals = term.find(" == '");
  if (equals == std::string::npos || term.back() != '\'') return Match::kError;
  const std::string value = term.substr(equals + 5, term.size() - equals - 6);
  if (term.starts_with("device.driver")) {
    return device.driver == value ? Match::kYes : Match::kNo;
  }
  const std::size_t name = term.find("'].") + 3;
  const std::string* const text = TextOf(device, term.substr(name, equals - name));
  if (text == nullptr) return Match::kError;
  return *text == value ? Match::kYes : Match::kNo;
}

Match ExpressionMatches(const std::string& expression, const Device& device) {
  for (std::size_t at = 0; at < expression.size();) {
    const std::size_t end = std::min(expression.find(" && ", at), expression.size());
    const Match match = TermMatches(expression.substr(at, end - at), device);
    if (match != Match::kYes) return match;
    at = end + 4;
  }
  return Match::kYes;
}

Match SelectorsMatch(const Json& holder, const Device& device) {
  const Json* const selectors = Find(holder, "selectors");
  if (selectors == nullptr) return Match::kYes;
  for (const Json& selector : *selectors) {
    const Match match = ExpressionMatches(selector.at("cel").at("expression"), device);
    if (match != Match::kYes) return match;
  }
  return Match::kYes;
}

class Search {
 public:
  Search(const std::vector<const Json*>& specs, const AllocatorView& view)
      : specs_(specs), view_(view), devices_(DevicesOf(view.slices)), results_(specs.size()) {}

  bool Run() { return Request(0, 0) && !error_; }
  std::vector<std::vector<Json>> results() { return std::move(results_); }

 private:
  // Everything from request `at` of a claim on.
  bool Request(std::size_t claim, std::size_t at) {
    if (claim == specs_.size()) return true;
    const Json& requests = specs_[claim]->at("devices").at("requests");
    if (at == requests.size()) return Request(claim + 1, 0);
    const Json& request = requests.at(at);
    const std::string name = request.at("name");
    const auto next = [&] { return Request(claim, at + 1); };
    const Json* const ways = Find(request, "firstAvailable");
    if (ways == nullptr) return Choose(claim, name, request.at("exactly"), next);
    return std::ranges::any_of(*ways, [&](const Json& way) {
      return !error_ && Choose(claim, name + "/" + way.at("name").get<std::string>(), way, next);
    });
  }

  template <typename Next>
  bool Choose(std::size_t claim, const std::string& name, const Json& choice, const Next& next) {
    const auto device_class = view_.classes->find(choice.at("deviceClassName"));
    if (device_class == view_.classes->end()) {
      error_ = true;
      return false;
    }
    return Take(claim, name, choice, device_class->second->at("spec"),
                choice.value("count", int64_t{1}), 0, next);
  }

  template <typename Next>
  bool Take(std::size_t claim, const std::string& name, const Json& choice, const Json& of,
            int64_t left, std::size_t from, const Next& next) {
    if (left == 0) return next();
    for (std::size_t i = from; i < devices_.size() && !error_; ++i) {
      const Device& device = devices_[i];
      const std::string id = device.id();
      if (view_.taken->contains(id) || chosen_.contains(id)) continue;
      Match match = SelectorsMatch(of, device);
      if (match == Match::kYes) match = SelectorsMatch(choice, device);
      error_ = error_ || match == Match::kError;
      if (match != Match::kYes || !Agrees(claim, device)) continue;
      chosen_.emplace(id, &device);
      results_[claim].push_back({{"request", name},
                                 {"driver", device.driver},
                                 {"pool", device.pool},
                                 {"device", device.name}});
      if (Take(claim, name, choice, of, left - 1, i + 1, next)) return true;
      results_[claim].pop_back();
      chosen_.erase(id);
    }
    return false;
  }

  // With those chosen for the claim, in the attributes in which all of them have to.
  bool Agrees(std::size_t claim, const Device& device) const {
    const Json* const constraints = Find(specs_[claim]->at("devices"), "constraints");
    if (constraints == nullptr || results_[claim].empty()) return true;
    const Json& first = results_[claim].front();
    const Device& other = *chosen_.at(first.at("pool").get<std::string>() + "/" +
                                      first.at("device").get<std::string>());
    return std::ranges::all_of(*constraints, [&](const Json& constraint) {
      return ValueOf(device, constraint.at("matchAttribute")) ==
             ValueOf(other, constraint.at("matchAttribute"));
    });
  }

  static Json ValueOf(const Device& device, std::string name) {
    const std::string own = device.driver + "/";
    if (name.starts_with(own)) name.erase(0, own.size());
    return device.object->at("attributes").value(name, Json());
  }

  const std::vector<const Json*>& specs_;
  const AllocatorView& view_;
  const std::vector<Device> devices_;
  std::vector<std::vector<Json>> results_;  // by claim
  std::map<std::string, const Device*> chosen_;
  bool error_ = false;
};

}  // namespace

std::optional<std::vector<Json>> AllocateOn(const std::string& node,
                                            const std::vector<const Json*>& specs,
                                            const AllocatorView& view) {
  Search search(specs, view);
  if (!search.Run()) return std::nullopt;
  std::vector<Json> allocations;
  for (std::vector<Json>& results : search.results()) {
    const Json term = {{"matchFields", Json::array({{{"key", "metadata.name"},
                                                     {"operator", "In"},
                                                     {"values", Json::array({node})}}})}};
    allocations.push_back({{"devices", {{"results", std::move(results)}}},
                           {"nodeSelector", {{"nodeSelectorTerms", Json::array({term})}}}});
  }
  return allocations;
}

}  // namespace tranche::sim
