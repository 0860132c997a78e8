package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
)

const nodeName = "gpu-node"

// Tranche is a running server with an embedded cluster.
type Tranche struct {
	program *Program
	url     string
}

var listening = regexp.MustCompile(`listening on ([0-9.:]+),`)

// Serve starts one on the objects.
func (p *Place) Serve(objects []any, options ...string) (*Tranche, error) {
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return nil, err
	}
	file := p.path("state", "objects.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return nil, err
	}
	program, err := p.Start(p.tranche,
		append([]string{"serve", "--listen", "127.0.0.1:0", "--objects", file}, options...)...)
	if err != nil {
		return nil, err
	}
	if word, err := program.Said("listening on"); err != nil || word == "" {
		program.Stop()
		return nil, fmt.Errorf("tranche serve: %w\n%s", err, program.Log())
	}
	return &Tranche{program, "http://" + listening.FindStringSubmatch(program.Log())[1]}, nil
}

// Stop ends the server.
func (t *Tranche) Stop() { t.program.Stop() }

// Ask sends a request and reads the JSON of a 200 into answer.
func (t *Tranche) Ask(method, target string, body, answer any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, t.url+target, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	found, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: expected 200, found %d: %s", method, target, response.StatusCode,
			found)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(found, answer)
}

// SeenMig is a MIG instance as Tranche shows it.
type SeenMig struct {
	Profile string
	Start   int
	Size    int
}

// SeenGpu is a card as Tranche shows it. Nil: not known, or no MIG mode.
type SeenGpu struct {
	Index      *int
	UUID       *string
	MemoryMiB  int
	FreeMilli  int
	Healthy    bool
	Mig        []SeenMig
	Replicas   int
	EnforcedBy *string
}

// SeenNode is a node as Tranche shows it.
type SeenNode struct {
	Name      string
	Model     *string
	Ready     bool
	Closed    *struct{ Code, Text, Detail string }
	Knowledge string
	Gpus      []SeenGpu
	Problems  []any
}

// Node is what Tranche says of the one node.
func (p *Place) Node(tranche *Tranche) (*SeenNode, error) {
	text, err := p.Run(p.tranche, "nodes", "--server", tranche.url, "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct{ Nodes []SeenNode }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("%w, in %s", err, text)
	}
	if len(list.Nodes) != 1 {
		return nil, fmt.Errorf("expected one node, found %s", text)
	}
	return &list.Nodes[0], nil
}
