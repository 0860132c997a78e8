// Lists of like objects: which of them are shown, in which order, and how; and what changes in one
// that is looked at again and again.
//
// Members that are missing or of another type throw Json::exception. Plain values; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/output_format.h"
#include "scheduler/cli/output/table.h"

namespace tranche {

struct ListColumn {
  const char* title;
  bool wide = false;  // shown by -o wide alone
};

using Rows = std::vector<std::vector<std::string>>;

// One kind of list.
struct ListShape {
  const char* member;  // of the answer: the array
  const char* one;     // "node": what an object is called
  const char* none;    // printed instead of a table without rows
  std::vector<ListColumn> columns;
  // The object's rows, as many cells as columns; the later ones have blanks where a cell is the
  // object's own. `answer` is the whole.
  Rows (*rows)(const Json& object, const Json& answer);
  // The name by which other commands take it: NAME or NAMESPACE/NAME.
  std::string (*name)(const Json& object);
  bool of_namespaces = false;  // objects have a namespace
  // Which objects of the array belong to the list; null: all.
  bool (*belongs)(const Json& object) = nullptr;
  const char* order = "";  // sorted by this where nobody says otherwise, as --sort-by has it
  // What tells the objects apart, where several have one name and none ever changes or is taken
  // back; null: the name.
  std::string (*key)(const Json& object) = nullptr;
};

// What was asked for. Names without a namespace are those of `ns`, or of any where it is empty.
struct ListWish {
  OutputFormat format;
  std::string sort_by;  // a column's title, or a path; behind a '-' the other way round; "": as is
  std::string ns;       // "": all
  std::vector<std::string> names;  // none: all
};

// Errors: InvalidArgument where there is no such column, with those there are.
absl::Status CheckSortKey(const ListShape& shape, const std::string& sort_by);

// Errors: NotFound naming the first name that no object of the answer has.
absl::Status CheckNames(const ListShape& shape, const ListWish& wish, const Json& answer);

// The answer with those objects alone that are asked for, in the order asked for, which
// CheckSortKey has passed.
Json Chosen(const ListShape& shape, const ListWish& wish, Json answer);

// The text of an answer of Chosen, in any format.
std::string WriteList(const ListShape& shape, const ListWish& wish, const Json& answer,
                      const Terminal& terminal);

// Tells what changed since the last look, as kubectl's --watch: in tables a first column EVENT and
// rows of objects that are new, other or gone; as JSON and YAML one document for each, with `type`
// and `object`; in the other formats the new and other objects.
class ListChanges {
 public:
  ListChanges(const ListShape& shape, const ListWish& wish) : shape_(shape), wish_(wish) {}
  // Of an answer of Chosen; "" where nothing changed.
  std::string Look(const Json& answer, const Terminal& terminal);

 private:
  struct Change {
    const char* event;
    const Json* object;
  };
  std::string Write(const std::vector<Change>& changes, const Json& answer,
                    const Terminal& terminal) const;
  std::string WriteObject(const Change& change, const Json& answer) const;
  // What is told of an object: two that read the same are the same.
  std::string Told(const Json& object, const Json& answer) const;

  ListShape shape_;
  ListWish wish_;
  std::map<std::string, std::pair<std::string, Json>> seen_;  // by name: what was told, the object
};

}  // namespace tranche
