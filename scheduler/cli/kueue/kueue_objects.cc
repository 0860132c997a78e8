#include "scheduler/cli/kueue/kueue_objects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "policy/decode.h"
#include "policy/line_name.h"
#include "scheduler/cli/output/output_format.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche::kueue {
namespace {

constexpr std::string_view kVersion = "kueue.x-k8s.io/v1beta2";
constexpr const char* kProductLabel = "nvidia.com/gpu.product";
constexpr const char* kNameLabel = "kubernetes.io/metadata.name";
// Work that names no queue goes to the one of this name in its namespace.
constexpr const char* kLocalQueue = "default";

// Of ResourceFlavors: lower case letters, digits, '-' and '.'.
std::string FlavorName(const QuotaLine& line) {
  const bool any = line.model == kAnyModel;
  std::string name = line.pool.empty() ? (any ? "any-gpu" : line.model)
                     : any             ? line.pool
                                       : line.model + "-" + line.pool;
  for (char& c : name) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (!fine) c = '-';
  }
  return name;
}

// As labels that a node must have; nullopt: it demands more than that.
std::optional<Labels> AsLabels(const LabelSelector& selector) {
  Labels labels = selector.match_labels;
  for (const SelectorTerm& term : selector.match_expressions) {
    if (term.op != SelectorTerm::Operator::kIn || term.values.size() != 1) return std::nullopt;
    const auto [at, fresh] = labels.emplace(term.key, term.values.front());
    if (!fresh && at->second != term.values.front()) return std::nullopt;
  }
  return labels;
}

Json SelectorJson(const LabelSelector& selector) {
  constexpr const char* kOperators[] = {"In", "NotIn", "Exists", "DoesNotExist"};
  Json json = Json::object();
  if (!selector.match_labels.empty()) json["matchLabels"] = selector.match_labels;
  for (const SelectorTerm& term : selector.match_expressions) {
    Json one = {{"key", term.key}, {"operator", kOperators[static_cast<int>(term.op)]}};
    if (!term.values.empty()) one["values"] = term.values;
    json["matchExpressions"].push_back(std::move(one));
  }
  return json;
}

Json ObjectOf(const char* kind, const std::string& name) {
  return {{"apiVersion", kVersion}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

// The namespaces a selector names, where it says them itself.
std::vector<std::string> NamedBy(const LabelSelector& selector) {
  if (selector.Requirements() != 1) return {};
  if (const auto name = selector.match_labels.find(kNameLabel);
      name != selector.match_labels.end()) {
    return {name->second};
  }
  if (selector.match_expressions.empty()) return {};
  const SelectorTerm& term = selector.match_expressions.front();
  const bool names = term.key == kNameLabel && term.op == SelectorTerm::Operator::kIn;
  return names ? term.values : std::vector<std::string>();
}

class Exporter {
 public:
  explicit Exporter(const Declared& declared) : declared_(declared) {}

  Exported Run() {
    std::vector<Json> queues;
    for (const auto& [name, quota] : declared_.quotas) {
      queues.push_back(quota.namespaces ? ClusterQueue(quota) : Cohort(quota));
    }
    out_.notes.insert(out_.notes.begin(), Advice());
    for (const auto& [name, line] : flavors_) out_.objects.push_back(Flavor(name, line));
    NoteNodesOfSeveral();
    out_.objects.insert(out_.objects.end(), queues.begin(), queues.end());
    for (const auto& [name, quota] : declared_.quotas) {
      if (quota.namespaces) AddLocalQueues(quota);
    }
    return std::move(out_);
  }

 private:
  std::string Advice() const {
    std::vector<std::string> enforcing;
    for (const auto& [name, quota] : declared_.quotas) {
      if (quota.mode == QuotaMode::kEnforce && quota.namespaces) enforcing.push_back(name);
    }
    const std::string observe =
        enforcing.empty()
            ? std::string()
            : fmt::format(" Set spec.mode to Observe in {}, or both refuse the same pods.",
                          fmt::join(enforcing, ", "));
    return "Kueue admits, Tranche places and meters." + observe +
           " Only GPUs are covered: Kueue's configuration has to leave out the rest "
           "(resources.excludeResourcePrefixes: [cpu, memory, ephemeral-storage]).";
  }

  // A number of GPUs; nullopt: it is written in another form, or is none.
  std::optional<std::string> Gpus(const GpuQuota& quota, const QuotaLine& line, const char* field,
                                  const QuotaAmount& amount) {
    const std::string where =
        fmt::format("GPUQuota {}, line {}, {}", quota.name, LineName(line.model, line.pool), field);
    if (amount.form != QuotaAmount::Form::kGpus) {
      out_.notes.push_back(where + ": slices and memory are not exported; the line is left out");
      return std::nullopt;
    }
    const int64_t milli = amount.gpus.count();
    if (milli % kWholeGpu.count() != 0) {
      out_.notes.push_back(fmt::format("{}: {} thousandths of a GPU are left out", where,
                                       milli % kWholeGpu.count()));
    }
    return std::to_string(milli / kWholeGpu.count());
  }

  std::optional<Json> QuotaOf(const GpuQuota& quota, const QuotaLine& line) {
    if (line.model == kAnyModel && line.pool.empty() && quota.lines.size() > 1) {
      out_.notes.push_back(fmt::format(
          "GPUQuota {}, line any: Kueue has no limit over several flavors; it is left out",
          quota.name));
      return std::nullopt;
    }
    Json resource = {{"name", kGpuKey}};
    const auto add = [&](const char* field, const char* as, const QuotaAmount& amount) {
      const std::optional<std::string> gpus = Gpus(quota, line, field, amount);
      if (gpus) resource[as] = *gpus;
      return gpus.has_value();
    };
    if (!add("nominal", "nominalQuota", line.nominal)) return std::nullopt;
    // A root has nobody to borrow from, and Kueue refuses limits there.
    if (!quota.parent.empty()) {
      if (line.borrow_limit && !add("borrowLimit", "borrowingLimit", *line.borrow_limit)) {
        return std::nullopt;
      }
      if (line.lend_limit && !add("lendLimit", "lendingLimit", *line.lend_limit)) {
        return std::nullopt;
      }
    }
    const std::string flavor = FlavorName(line);
    flavors_.emplace(flavor, line);
    return Json{{"name", flavor}, {"resources", Json::array({std::move(resource)})}};
  }

  // Adds "resourceGroups", unless there is nothing to say.
  void AddLines(const GpuQuota& quota, Json& spec) {
    Json flavors = Json::array();
    for (const QuotaLine& line : quota.lines) {
      if (std::optional<Json> one = QuotaOf(quota, line)) flavors.push_back(*std::move(one));
    }
    if (flavors.empty()) return;
    spec["resourceGroups"] = Json::array(
        {{{"coveredResources", Json::array({kGpuKey})}, {"flavors", std::move(flavors)}}});
  }

  Json ClusterQueue(const GpuQuota& quota) {
    Json queue = ObjectOf("ClusterQueue", quota.name);
    Json& spec = queue["spec"];
    if (!quota.parent.empty()) spec["cohortName"] = quota.parent;
    spec["namespaceSelector"] = SelectorJson(*quota.namespaces);
    AddLines(quota, spec);
    if (!spec.contains("resourceGroups")) {
      out_.notes.push_back(
          fmt::format("GPUQuota {}: without lines Kueue admits nobody", quota.name));
    }
    // As Tranche: what was lent is taken back, and a class makes room among its own.
    spec["preemption"] = {{"reclaimWithinCohort", "Any"}, {"withinClusterQueue", "LowerPriority"}};
    AddWeight(quota, spec);
    return queue;
  }

  Json Cohort(const GpuQuota& quota) {
    Json cohort = ObjectOf("Cohort", quota.name);
    Json& spec = cohort["spec"] = Json::object();
    if (!quota.parent.empty()) spec["parentName"] = quota.parent;
    AddLines(quota, spec);
    AddWeight(quota, spec);
    return cohort;
  }

  static void AddWeight(const GpuQuota& quota, Json& spec) {
    if (quota.weight != 1) spec["fairSharing"] = {{"weight", std::to_string(quota.weight)}};
  }

  Json Flavor(const std::string& name, const QuotaLine& line) {
    Json flavor = ObjectOf("ResourceFlavor", name);
    Json labels = Json::object();
    if (!line.pool.empty()) AddPoolLabels(name, line, labels);
    if (line.model != kAnyModel) AddModelLabel(name, line, labels);
    flavor["spec"] = Json::object();
    if (!labels.empty()) flavor["spec"]["nodeLabels"] = std::move(labels);
    return flavor;
  }

  void AddPoolLabels(const std::string& name, const QuotaLine& line, Json& labels) {
    const auto pool = declared_.pools.find(line.pool);
    if (pool == declared_.pools.end()) {
      out_.notes.push_back(
          fmt::format("flavor {}: GPUPool {} was not given, so that its nodes have no labels here",
                      name, line.pool));
      return;
    }
    const std::optional<Labels> demanded = AsLabels(pool->second.nodes);
    if (!demanded) {
      out_.notes.push_back(
          fmt::format("flavor {}: GPUPool {} demands more than labels of its nodes; give them a "
                      "label of their own, and write it to spec.nodeLabels",
                      name, line.pool));
      return;
    }
    for (const auto& [key, value] : *demanded) labels[key] = value;
  }

  void AddModelLabel(const std::string& name, const QuotaLine& line, Json& labels) {
    const auto products = declared_.products.find(line.model);
    if (products == declared_.products.end()) {
      out_.notes.push_back(fmt::format(
          "flavor {}: no Node with a GPU of that model was given; write the label {} of its nodes "
          "to spec.nodeLabels",
          name, kProductLabel));
    } else if (products->second.size() > 1) {
      out_.notes.push_back(fmt::format(
          "flavor {}: its nodes have the labels {}={}; give them one in common, and write it to "
          "spec.nodeLabels",
          name, kProductLabel, fmt::join(products->second, ", ")));
    } else {
      labels[kProductLabel] = *products->second.begin();
    }
  }

  // A flavor of a model is of its nodes in pools too.
  void NoteNodesOfSeveral() {
    for (const auto& [name, line] : flavors_) {
      if (line.pool.empty()) continue;
      for (const auto& [wider, other] : flavors_) {
        const bool within =
            other.pool.empty() && (other.model == line.model || line.model == kAnyModel);
        if (!within) continue;
        out_.notes.push_back(
            fmt::format("flavors {} and {} have nodes in common, which Kueue counts "
                        "for each: Tranche charges them to {} alone",
                        name, wider, name));
      }
    }
  }

  void AddLocalQueues(const GpuQuota& quota) {
    std::vector<std::string> names;
    for (const auto& [ns, labels] : declared_.namespaces) {
      if (quota.namespaces->Matches(labels)) names.push_back(ns);
    }
    if (declared_.namespaces.empty()) names = NamedBy(*quota.namespaces);
    if (names.empty()) {
      out_.notes.push_back(
          fmt::format("GPUQuota {}: no Namespace of it was given; each needs a LocalQueue {} of "
                      "ClusterQueue {}",
                      quota.name, kLocalQueue, quota.name));
    }
    for (const std::string& ns : names) {
      Json queue = ObjectOf("LocalQueue", kLocalQueue);
      queue["metadata"]["namespace"] = ns;
      queue["spec"] = {{"clusterQueue", quota.name}};
      out_.objects.push_back(std::move(queue));
    }
  }

  const Declared& declared_;
  Exported out_;
  std::map<std::string, QuotaLine> flavors_;  // by name
};

absl::Status InObject(const Manifest& manifest, std::string_view kind, std::string_view name,
                      const absl::Status& problem) {
  return absl::InvalidArgumentError(fmt::format(
      "{}: {} {}: {}", manifest.name, kind, wire::Quoted(name), std::string(problem.message())));
}

// One object; a List stands for its items.
absl::Status Take(const Manifest& manifest, const Json& object, Declared& declared) {
  if (!object.is_object()) return absl::OkStatus();
  const std::string kind = Text(object, "kind");
  const auto items = object.find("items");
  if (kind.ends_with("List") && items != object.end() && items->is_array()) {
    for (const Json& item : *items) TRANCHE_RETURN_IF_ERROR(Take(manifest, item, declared));
    return absl::OkStatus();
  }
  const Json metadata = object.value("metadata", Json::object());
  const std::string name = metadata.is_object() ? Text(metadata, "name") : "-";
  const std::string json = object.dump();
  if (kind == "GPUQuota") {
    absl::StatusOr<GpuQuota> quota = DecodeGpuQuota(json);
    if (!quota.ok()) return InObject(manifest, kind, name, quota.status());
    quota->name = name;
    declared.quotas.insert_or_assign(name, *std::move(quota));
  } else if (kind == "GPUPool") {
    absl::StatusOr<GpuPool> pool = DecodeGpuPool(json);
    if (!pool.ok()) return InObject(manifest, kind, name, pool.status());
    declared.pools.insert_or_assign(name, *std::move(pool));
  } else if (kind == "Namespace") {
    absl::StatusOr<Labels> labels = DecodeNamespaceLabels(name, json);
    if (!labels.ok()) return InObject(manifest, kind, name, labels.status());
    declared.namespaces.insert_or_assign(name, *std::move(labels));
  } else if (kind == "Node" && metadata.contains("labels") && metadata["labels"].is_object()) {
    const std::string product = Text(metadata["labels"], kProductLabel);
    if (product != "-") declared.products[GpuModelName(product)].insert(product);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const Manifest& manifest, Declared& declared) {
  TRANCHE_ASSIGN_OR_RETURN(const std::string edits, EditsOf(manifest));
  const Json documents = Json::parse(edits);
  for (const Json& object : documents.at("objects")) {
    TRANCHE_RETURN_IF_ERROR(Take(manifest, object, declared));
  }
  return absl::OkStatus();
}

Exported Export(const Declared& declared) { return Exporter(declared).Run(); }

std::string YamlOf(const Exported& exported) {
  std::string text = "# Made of GPUQuotas and GPUPools by tranche export kueue.\n";
  for (const std::string& note : exported.notes) text += "# - " + note + "\n";
  for (const Json& object : exported.objects) text += "---\n" + ToYaml(object);
  return text;
}

}  // namespace tranche::kueue
