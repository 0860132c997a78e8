package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Step is a block of commands of a document, with what the document says that they print.
type Step struct {
	Line      int // of the first command, from 1
	Commands  string
	Exit      int // how the last command ends
	Shown     []string
	ShownLine int // of the first line shown; 0 when nothing is
}

var exitWord = regexp.MustCompile(`^exit=(\d+)$`)

// ReadSteps finds the steps of a Markdown document, in order: a fenced block `sh` is run, and a block
// `text` that follows it is what it prints. "sh exit=1" ends with that code. Blocks of other kinds are
// an error, so that no command is overlooked.
func ReadSteps(markdown string) ([]Step, error) {
	const fence = "```"
	var steps []Step
	lines := strings.Split(markdown, "\n")
	fresh := false // the step before has not been shown an answer yet
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], fence) {
			continue
		}
		info, first := strings.Fields(strings.TrimPrefix(lines[i], fence)), i+1
		for i++; i < len(lines) && lines[i] != fence; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("line %d: expected an end of the block, found none", first)
		}
		body := lines[first:i]
		switch {
		case len(info) > 0 && info[0] == "sh" && len(info) <= 2:
			step := Step{Line: first + 1, Commands: strings.Join(body, "\n") + "\n"}
			if len(info) == 2 {
				code := exitWord.FindStringSubmatch(info[1])
				if code == nil {
					return nil, fmt.Errorf("line %d: expected exit=CODE, found %s", first, info[1])
				}
				step.Exit, _ = strconv.Atoi(code[1]) // digits by the expression
			}
			steps, fresh = append(steps, step), true
		case len(info) == 1 && info[0] == "text" && fresh:
			last := &steps[len(steps)-1]
			last.Shown, last.ShownLine, fresh = body, first+1, false
		default:
			return nil, fmt.Errorf("line %d: expected a block sh, or text behind one, found %q", first, lines[first-1])
		}
	}
	return steps, nil
}

// What differs from run to run, and what stands for it on both sides.
var allowances = []struct {
	what *regexp.Regexp
	mark string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`), "MOMENT"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	// Letters and digits as Kubernetes draws them: a ReplicaSet's hash and a pod's suffix.
	{regexp.MustCompile(`-[bcdf-hj-np-tv-xz2456789]{7,10}-[bcdf-hj-np-tv-xz2456789]{5}\b`), "-POD"},
	{regexp.MustCompile(`\b\d+ GPU-s(econds)?\b`), "LOST"},
	{regexp.MustCompile(`\b(\d+d)?(\d+h)?(\d+m)?(\d+s)?\b`), "AGE"},
	{regexp.MustCompile(`\s+`), " "},
}

func plain(line string) string {
	for _, allowance := range allowances {
		line = allowance.what.ReplaceAllStringFunc(line, func(found string) string {
			if found == "" {
				return ""
			}
			return allowance.mark
		})
	}
	return strings.TrimSpace(line)
}

// matches tells whether a printed line is the shown one; "..." in a shown one stands for any text.
func matches(shown, printed string) bool {
	pieces := strings.Split(plain(shown), "...")
	for i := range pieces {
		pieces[i] = regexp.QuoteMeta(pieces[i])
	}
	return regexp.MustCompile("^" + strings.Join(pieces, ".*") + "$").MatchString(plain(printed))
}

// Difference returns the index of the first shown line that was not printed, and of the printed one
// that stands in its place; either may be one behind the last. -1, -1: there is none. A line "..."
// stands for any lines.
func Difference(shown, printed []string) (int, int) {
	farShown, farPrinted := 0, 0
	var same func(s, p int) bool
	same = func(s, p int) bool {
		if s > farShown || (s == farShown && p > farPrinted) {
			farShown, farPrinted = s, p
		}
		switch {
		case s == len(shown):
			return p == len(printed)
		case strings.TrimSpace(shown[s]) == "...":
			for skipped := p; skipped <= len(printed); skipped++ {
				if same(s+1, skipped) {
					return true
				}
			}
			return false
		case p < len(printed) && matches(shown[s], printed[p]):
			return same(s+1, p+1)
		}
		return false
	}
	if same(0, 0) {
		return -1, -1
	}
	return farShown, farPrinted
}
