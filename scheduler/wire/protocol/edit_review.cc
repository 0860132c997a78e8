#include "scheduler/wire/protocol/edit_review.h"

#include <fmt/format.h>

#include <charconv>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/protocol/admission_review.h"
#include "topology/base/status.h"

namespace tranche::wire {
namespace {

// A number that cannot be read agrees to nothing.
int64_t AcceptedBy(Object object) {
  const std::optional<Object> metadata = FindObject(object, "metadata");
  const auto annotations = metadata ? FindObject(*metadata, "annotations") : std::nullopt;
  const auto text = annotations ? FindText(*annotations, kAcceptEvictionsKey) : std::nullopt;
  if (!text) return 0;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), count);
  return error == std::errc() && end == text->data() + text->size() && count > 0 ? count : 0;
}

std::string SpecOf(Object object) {
  const std::optional<Element> spec = Find(object, "spec");
  return spec ? simdjson::minify(*spec) : std::string();
}

}  // namespace

absl::StatusOr<std::optional<EditAsk>> ReadEditReview(Element document) {
  TRANCHE_ASSIGN_OR_RETURN(const AdmissionAsk review, ReadAdmissionReview(document));
  FieldReader reader;
  const Object request = *FindObject(document.get_object().value_unsafe(), "request");
  const std::string_view operation = reader.ReadText(request, "operation", "request");
  const bool goes = operation == "DELETE";
  if (!goes && review.verb == AdmissionVerb::kOther) return std::nullopt;
  if (!FindText(request, "subResource").value_or("").empty()) return std::nullopt;
  const std::optional<Object> object =
      reader.ReadObject(request, goes ? "oldObject" : "object", "request");
  if (!object) {
    reader.Fail(fmt::format("expected object, found nothing, in request.{}",
                            goes ? "oldObject" : "object"));
    return reader.status();
  }
  EditAsk ask;
  ask.uid = review.uid;
  ask.kind = reader.ReadText(*object, "kind", "object");
  const std::optional<Object> metadata = reader.ReadObject(*object, "metadata", "object");
  if (metadata) ask.name = reader.ReadText(*metadata, "name", "object.metadata");
  if (ask.kind.empty()) reader.Fail("expected a text, found none, in object.kind");
  if (!reader.ok()) return reader.status();
  // A name that the API server is yet to give is of an object that is not there.
  if (ask.name.empty()) return std::nullopt;
  ask.accepted = AcceptedBy(*object);
  ask.user = review.user;
  ask.dry_run = review.dry_run;
  if (goes) return ask;
  ask.spec = SpecOf(*object);
  ask.json = simdjson::minify(*object);
  if (review.verb == AdmissionVerb::kUpdate) {
    const std::optional<Object> before = reader.ReadObject(request, "oldObject", "request");
    if (!reader.ok()) return reader.status();
    ask.changes = !before || SpecOf(*before) != ask.spec;
  }
  return ask;
}

}  // namespace tranche::wire
