// Command allocator judges what Tranche foresees of resource claims by the allocator of Kubernetes
// itself. It reads the lines of tranche-allocator-cases from standard input and exits 1 where the
// two differ.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Line is a case: the objects that the API shows, and what Tranche concludes from them.
type Line struct {
	Kind string // "state", "cel" or "resource"
	Part string // what it was drawn for

	// Of a state: claims that hold devices, those of a pod that comes, and an answer for each node.
	Slices  []resourceapi.ResourceSlice
	Classes []resourceapi.DeviceClass
	Held    []resourceapi.ResourceClaim
	Claims  []resourceapi.ResourceClaim
	Rules   []resourceapi.DeviceTaintRule
	Nodes   []corev1.Node
	Answers []Answer

	// Of an expression: the device it is about.
	Expression string
	Driver     string
	Device     resourceapi.Device

	// Of an extended resource: its name. The answer's class is the one that serves it.
	Resource string

	Answer Answer
}

// Answer is what Tranche says of a node, of an expression, or of an extended resource.
type Answer struct {
	Kind    string // "fits", "no", "error", "unknown"; of an expression "yes" in place of "fits"
	Why     string
	Devices [][]Device // by claim, where it fits
	Reaches []bool     // by claim that holds devices: the node can use these
	Class   string
}

// Device is one that a claim gets.
type Device struct {
	Request, Driver, Pool, Device string
	Admin, Shared                 bool
	Consumed                      map[string]string
}

func main() {
	log.SetFlags(0)
	states := flag.Int("states", 0, "how many lines each part must have at least")
	show := flag.Int("show", 5, "how many differences to print in full")
	flag.Parse()
	table, err := judgeAll(os.Stdin, *show)
	if err != nil {
		log.Fatal(err)
	}
	table.Print(os.Stdout)
	if !table.Agrees(*states) {
		os.Exit(1)
	}
}

func judgeAll(lines io.Reader, show int) (*Table, error) {
	judge := NewJudge()
	table := NewTable()
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<24)
	for number := 1; scanner.Scan(); number++ {
		var line Line
		decoder := json.NewDecoder(bytes.NewReader(scanner.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&line); err != nil {
			return nil, fmt.Errorf("line %d: %w in %s", number, err, scanner.Bytes())
		}
		verdicts, err := judge.Judge(&line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w in %s", number, err, scanner.Bytes())
		}
		table.Begin(line.Part)
		for _, verdict := range verdicts {
			table.Add(line.Part, verdict)
			if verdict.Outcome.isWrong() && show > 0 {
				show--
				fmt.Printf("%s: line %d: %s\n  %s\n", verdict.Outcome, number, verdict.Why, scanner.Bytes())
			}
		}
	}
	return table, scanner.Err()
}
