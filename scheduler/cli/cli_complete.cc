#include "scheduler/cli/cli_complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "scheduler/cli/cli_commands.h"
#include "scheduler/cli/cli_help.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Calls the program by the word it was called by, so that any path to it works. Bash cuts words at
// '=' and ':' (COMP_WORDBREAKS): they are put together again, and what bash has cut off is taken
// off the answers.
constexpr const char* kBash = R"sh(# bash completion for tranche: source it, or put it into
# ~/.local/share/bash-completion/completions/tranche
_tranche() {
  local program=$1 word line cut directive=0 glue=
  local -a words=() files=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ ${#words[@]} -gt 0 && ( -n $glue || $word == = || $word == : ) ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    if [[ $word == = || $word == : ]]; then glue=1; else glue=; fi
  done
  word=${words[-1]-}
  cut=
  if [[ $word == *=* && $COMP_WORDBREAKS == *=* ]]; then cut=${word%%=*}=; fi
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :*) directive=${line#:} ;;
      *) line=${line%%$'\t'*}; COMPREPLY+=("${line#"$cut"}") ;;
    esac
  done < <("$program" __complete "${words[@]}" 2>/dev/null)
  if (( (directive & 4) == 0 )); then
    compopt -o filenames 2>/dev/null
    mapfile -t files < <(compgen -f -- "${word#"$cut"}")
    COMPREPLY+=("${files[@]}")
  fi
}
complete -F _tranche tranche kubectl-tranche
)sh";

constexpr const char* kZsh = R"sh(#compdef tranche kubectl-tranche
# zsh completion for tranche: put it into a folder of $fpath as _tranche, or source it after
# compinit
_tranche() {
  local line directive=0
  local -a lines candidates
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    case $line in
      :*) directive=${line#:} ;;
      *$'\t'*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      ?*) candidates+=("${line//:/\\:}") ;;
    esac
  done
  (( ${#candidates} )) && _describe -V tranche candidates
  if (( (directive & 4) == 0 )); then
    compset -P '--*='
    _files
  fi
}
if [[ ${funcstack[1]} == _tranche ]]; then
  _tranche "$@"
else
  compdef _tranche tranche kubectl-tranche
fi
)sh";

constexpr const char* kFish =
    R"sh(# fish completion for tranche: put it into ~/.config/fish/completions/tranche.fish, or
# source it
function __tranche_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l files 1
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    switch $line
      case ':4'
        set files 0
      case ':*'
      case '*'
        echo $line
    end
  end
  if test $files = 1
    __fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current")
  end
end
complete -c tranche -f -a '(__tranche_complete)'
complete -c kubectl-tranche -f -a '(__tranche_complete)'
)sh";

constexpr const char* kKubectl = R"sh(#!/bin/sh
# kubectl completion for `kubectl tranche`: put it beside kubectl-tranche as
# kubectl_complete-tranche, executable
exec kubectl-tranche __complete "$@"
)sh";

struct Script {
  const char* shell;
  const char* text;
};
constexpr Script kScripts[] = {
    {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}, {"kubectl", kKubectl}};

// Several values after one flag.
bool TakesMany(const CLI::Option& option) {
  return MayRepeat(option) && option.get_allow_extra_args();
}

std::vector<std::string> SpellingsOf(const CLI::Option& option) {
  std::vector<std::string> spellings;
  for (const std::string& name : option.get_lnames()) spellings.push_back("--" + name);
  for (const std::string& name : option.get_snames()) spellings.push_back("-" + name);
  return spellings;
}

const CLI::Option* FindOption(const CLI::App& app, const std::string& spelling) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string> all = SpellingsOf(*option);
    if (std::find(all.begin(), all.end(), spelling) != all.end()) return option;
  }
  return nullptr;
}

// Where the words before the cursor lead.
class Place {
 public:
  explicit Place(const CLI::App& app) : app_(&app) {}

  void Take(const std::string& word) {
    if (!only_positionals_ && word == "--") {
      only_positionals_ = true;
      pending_ = nullptr;
    } else if (!only_positionals_ && word.size() > 1 && word[0] == '-') {
      TakeOption(word);
    } else if (pending_ != nullptr) {
      if (!TakesMany(*pending_)) pending_ = nullptr;
    } else if (const CLI::App* command = CommandOf(word); command != nullptr) {
      *this = Place(*command);
    } else {
      ++positionals_;
    }
  }

  std::string Candidates(const std::string& word) const {
    std::string out;
    bool files = false;
    const std::size_t equals = word.find('=');
    if (!only_positionals_ && word.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* const option = FindOption(*app_, word.substr(0, equals));
      if (option != nullptr) files = AddValues(*option, word.substr(0, equals + 1), word, out);
    } else if (!only_positionals_ && word.starts_with('-')) {
      AddOptions(word, out);
    } else if (pending_ != nullptr) {
      files = AddValues(*pending_, "", word, out);
    } else {
      AddCommands(word, out);
      const CLI::Option* const next = NextPositional();
      if (next != nullptr) files = AddValues(*next, "", word, out);
      // Nothing but flags can follow.
      if (next == nullptr && out.empty() && word.empty() && !only_positionals_) {
        AddOptions(word, out);
      }
    }
    return out + (files ? ":0\n" : ":4\n");
  }

 private:
  void TakeOption(const std::string& word) {
    pending_ = nullptr;
    const std::size_t equals = word.find('=');
    // -ojson: the value is in the word.
    const bool is_long = word.starts_with("--");
    const bool has_value = is_long ? equals != std::string::npos : word.size() > 2;
    const CLI::Option* const option =
        FindOption(*app_, is_long ? word.substr(0, equals) : word.substr(0, 2));
    if (option == nullptr) return;
    used_.insert(option);
    if (TakesValue(*option) && (!has_value || TakesMany(*option))) pending_ = option;
  }

  const CLI::App* CommandOf(const std::string& name) const {
    for (const CLI::App* command : Commands()) {
      if (command->get_name() == name) return command;
    }
    return nullptr;
  }
  std::vector<const CLI::App*> Commands() const {
    return app_->get_subcommands(std::function<bool(const CLI::App*)>());
  }

  const CLI::Option* NextPositional() const {
    std::size_t at = 0;
    for (const CLI::Option* option : app_->get_options()) {
      if (option->get_positional() && at++ == positionals_) return option;
    }
    return nullptr;
  }

  static void Add(const std::string& text, const std::string& start, const std::string& help,
                  std::string& out) {
    if (text.starts_with(start)) out += fmt::format("{}\t{}\n", text, help);
  }
  void AddCommands(const std::string& start, std::string& out) const {
    for (const CLI::App* command : Commands()) {
      Add(command->get_name(), start, command->get_description(), out);
    }
  }
  // Flags that were not given yet. A short one stands for itself only once it was begun.
  void AddOptions(const std::string& start, std::string& out) const {
    for (const CLI::Option* option : app_->get_options()) {
      if (used_.contains(option) && !MayRepeat(*option)) continue;
      for (const std::string& spelling : SpellingsOf(*option)) {
        const bool is_short = spelling.size() == 2;
        if (is_short && start != spelling && !option->get_lnames().empty()) continue;
        Add(spelling, start, option->get_description(), out);
      }
    }
  }
  // True: file names are among the values.
  static bool AddValues(const CLI::Option& option, const std::string& before,
                        const std::string& start, std::string& out) {
    for (const std::string& word : WordsOf(option.get_type_name())) {
      Add(before + word, start, "", out);
    }
    return option.get_type_name() == kFileType;
  }

  const CLI::App* app_;
  const CLI::Option* pending_ = nullptr;  // whose value comes next
  std::set<const CLI::Option*> used_;
  std::size_t positionals_ = 0;
  bool only_positionals_ = false;
};

}  // namespace

std::string Complete(const CLI::App& app, const std::vector<std::string>& words) {
  Place place(app);
  for (std::size_t at = 0; at + 1 < words.size(); ++at) place.Take(words[at]);
  return place.Candidates(words.empty() ? "" : words.back());
}

std::vector<std::string> CompletionShells() {
  std::vector<std::string> shells;
  for (const Script& script : kScripts) shells.emplace_back(script.shell);
  return shells;
}

std::string CompletionScript(const std::string& shell) {
  const auto* const found =
      std::find_if(std::begin(kScripts), std::end(kScripts),
                   [&shell](const Script& script) { return script.shell == shell; });
  TRANCHE_CHECK(found != std::end(kScripts));
  return found->text;
}

}  // namespace tranche
