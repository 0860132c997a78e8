package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is a column of a table.
type Outcome int

const (
	nodeSame Outcome = iota
	// The labels of strategy single tell no GPU's memory: the catalogue's stands in.
	nodeCatalogue
	// Instances stand elsewhere than the probe says: counts are all that is used.
	nodeLaidOut
	// Labels of media instances are under another key than the plugin's.
	nodeOtherKey
	nodeDifferent
	podAdmitted
	podEqual  // foretold was another of several sets that are equal to the plugin
	podStale  // foretold without being told what the plugin took of equal sets before
	podHidden // the paths by which the plugin chooses are beneath NVLinks, which a matrix shows
	podNoRoom
	podByConfig // failRequestsGreaterThanOne, which no label tells
	podRejected
	podRefused
	podMissed
	podRecord
	outcomes
)

var outcomeNames = [outcomes]string{"same", "catalogue", "laid out", "other key", "DIFFERENT",
	"admitted", "equal set", "stale", "hidden", "no room", "by config", "SENT, REJECTED",
	"REFUSED, ADMITTED", "MISSED", "RECORD"}

func (o Outcome) isWrong() bool {
	return strings.ToUpper(outcomeNames[o]) == outcomeNames[o]
}

// Table counts outcomes by the plugin's configuration.
type Table struct {
	counts map[string]*[outcomes]int
	shown  map[string]int
	most   int // differences of a kind to print
	out    io.Writer
}

// NewTable prints the first differences of each kind, at most so many, as they come.
func NewTable(out io.Writer, most int) *Table {
	return &Table{map[string]*[outcomes]int{}, map[string]int{}, most, out}
}

func rowOf(state *State) string {
	method := map[string]string{"": "none", "timeSlicing": "time-slicing", "mps": "mps"}
	ill := map[bool]string{true: " ill"}
	return fmt.Sprintf("%-9s %-13s %-10s", state.Config.Strategy,
		method[state.Config.Sharing.Method], state.Probe+ill[state.Ill])
}

// Add counts an outcome; why says what differs.
func (t *Table) Add(state *State, outcome Outcome, why string) {
	row := rowOf(state)
	if t.counts[row] == nil {
		t.counts[row] = &[outcomes]int{}
	}
	t.counts[row][outcome]++
	if !outcome.isWrong() {
		return
	}
	kind := outcomeNames[outcome] + row
	if t.shown[kind]++; t.shown[kind] <= t.most {
		fmt.Fprintf(t.out, "%s: seed %d, %s, %s: %s\n", outcomeNames[outcome], state.Seed,
			state.Machine.describe(), state.Config.describe(), why)
	}
}

// Agrees is false where anything differs. Where all is to occur, it is false too where a kind of
// agreement never did.
func (t *Table) Agrees(all bool) bool {
	sums := [outcomes]int{}
	for _, row := range t.counts {
		for outcome, count := range row {
			sums[outcome] += count
		}
	}
	for outcome, sum := range sums {
		if Outcome(outcome).isWrong() && sum > 0 {
			return false
		}
	}
	return !all || sums[nodeSame] > 0 && sums[podAdmitted] > 0 && sums[podNoRoom] > 0
}

// Print writes a row for each kind of configuration.
func (t *Table) Print() {
	fmt.Fprintf(t.out, "%-35s", "strategy  sharing       probe")
	for _, name := range outcomeNames {
		fmt.Fprintf(t.out, " %*s", max(len(name), 8), name)
	}
	fmt.Fprintln(t.out)
	var rows []string
	for row := range t.counts {
		rows = append(rows, row)
	}
	slices.Sort(rows)
	for _, row := range rows {
		fmt.Fprintf(t.out, "%-35s", row)
		for outcome, count := range t.counts[row] {
			fmt.Fprintf(t.out, " %*d", max(len(outcomeNames[outcome]), 8), count)
		}
		fmt.Fprintln(t.out)
	}
}

func (m *Machine) describe() string {
	var parts []string
	for i, gpu := range m.Gpus {
		text := fmt.Sprint(i)
		if gpu.MigOn {
			var migs []string
			for _, mig := range gpu.Migs {
				migs = append(migs, fmt.Sprintf("%s@%d", mig.Profile, mig.Start))
			}
			text += "[" + strings.Join(migs, " ") + "]"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%d x %s (%s)", len(m.Gpus), m.Gpus[0].Board, strings.Join(parts, " "))
}

func (c *Config) describe() string {
	if c.Sharing.Method == "" {
		return "strategy " + c.Strategy
	}
	return fmt.Sprintf("strategy %s, %s of %q by %d, renamed %v, failRequestsGreaterThanOne %v",
		c.Strategy, c.Sharing.Method, c.Sharing.Resources, c.Sharing.Replicas, c.Sharing.Rename,
		c.Sharing.FailMore)
}
