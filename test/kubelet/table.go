package main

import (
	"fmt"
	"io"
	"sort"
)

// Table counts outcomes by policy and scope.
type Table struct {
	counts map[string]*[outcomes]int
	lines  int
}

// NewTable is empty.
func NewTable() *Table { return &Table{counts: map[string]*[outcomes]int{}} }

// Lines is how many cases were counted.
func (t *Table) Lines() int { return t.lines }

// Add counts a case.
func (t *Table) Add(c *Case, verdict Verdict) {
	key := fmt.Sprintf("%-17s %-9s", c.Policy, c.Scope)
	if t.counts[key] == nil {
		t.counts[key] = &[outcomes]int{}
	}
	t.counts[key][verdict.Outcome]++
	t.lines++
}

// Agrees is false where the two differ, where a policy is missing, or where a policy that refuses
// pods refused none: then nothing was tried.
func (t *Table) Agrees(states int) bool {
	good := t.lines > 0
	for _, row := range t.counts {
		sum := 0
		for outcome, count := range row {
			sum += count
			good = good && (count == 0 || !Outcome(outcome).isWrong())
		}
		good = good && (states == 0 || sum == states)
	}
	return good && (states == 0 || t.lines == states*8)
}

// Print writes a row for each policy and scope.
func (t *Table) Print(out io.Writer) {
	fmt.Fprintf(out, "%-28s", "policy            scope")
	for _, name := range outcomeNames {
		fmt.Fprintf(out, " %*s", max(len(name), 9), name)
	}
	fmt.Fprintln(out)
	keys := make([]string, 0, len(t.counts))
	for key := range t.counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		fmt.Fprintf(out, "%-28s", key)
		for outcome, count := range t.counts[key] {
			fmt.Fprintf(out, " %*d", max(len(outcomeNames[outcome]), 9), count)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "%d cases\n", t.lines)
}
