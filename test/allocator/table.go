package main

import (
	"fmt"
	"io"
	"sort"
)

// Outcome is how two answers compare.
type Outcome int

// The outcomes from WrongFits on are differences.
const (
	Fits Outcome = iota
	NoRoom
	Error
	Unknown
	Refused
	WrongFits
	WrongNo
	WrongDevices
	WrongError
	outcomes
)

var outcomeNames = [outcomes]string{
	"fits", "no", "error", "unknown", "refused", "FITS", "NO", "DEVICES", "ERROR",
}

func (o Outcome) String() string { return outcomeNames[o] }
func (o Outcome) isWrong() bool  { return o >= WrongFits }

// Verdict is an outcome with what both say.
type Verdict struct {
	Outcome Outcome
	Why     string // Unknown: what Tranche does not know
}

// Table counts outcomes by part.
type Table struct {
	counts   map[string]*[outcomes]int
	lines    map[string]int
	unknowns map[string]int
}

// NewTable is empty.
func NewTable() *Table {
	return &Table{map[string]*[outcomes]int{}, map[string]int{}, map[string]int{}}
}

// Begin counts a line.
func (t *Table) Begin(part string) {
	t.lines[part]++
	if t.counts[part] == nil {
		t.counts[part] = &[outcomes]int{}
	}
}

// Add counts an answer of a line.
func (t *Table) Add(part string, verdict Verdict) {
	t.counts[part][verdict.Outcome]++
	if verdict.Outcome == Unknown {
		t.unknowns[verdict.Why]++
	}
}

// Agrees is false where the two differ, where nothing was tried, and where a part has fewer lines
// than it should have.
func (t *Table) Agrees(states int) bool {
	good := len(t.lines) > 0
	for part, row := range t.counts {
		good = good && t.lines[part] >= states
		for outcome, count := range row {
			good = good && (count == 0 || !Outcome(outcome).isWrong())
		}
	}
	return good
}

// Print writes a row for each part, and why Tranche did not know.
func (t *Table) Print(out io.Writer) {
	fmt.Fprintf(out, "%-14s %8s", "part", "lines")
	for _, name := range outcomeNames {
		fmt.Fprintf(out, " %8s", name)
	}
	fmt.Fprintln(out)
	for _, part := range sortedKeys(t.lines) {
		fmt.Fprintf(out, "%-14s %8d", part, t.lines[part])
		for _, count := range t.counts[part] {
			fmt.Fprintf(out, " %8d", count)
		}
		fmt.Fprintln(out)
	}
	whys := sortedKeys(t.unknowns)
	sort.SliceStable(whys, func(i, j int) bool { return t.unknowns[whys[i]] > t.unknowns[whys[j]] })
	const most = 15
	for i, why := range whys {
		if i == most {
			fmt.Fprintf(out, "unknown for %d other reasons\n", len(whys)-most)
			break
		}
		fmt.Fprintf(out, "%8d unknown: %s\n", t.unknowns[why], why)
	}
}

func sortedKeys(of map[string]int) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
