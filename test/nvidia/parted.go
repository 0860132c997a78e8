package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// Outcomes of a plan, a table of its own.
const (
	planNone   = "no plan"
	planMade   = "made"
	planBeside = "beside pods"  // made while a pod held a GPU of the node
	planStarts = "other starts" // the instances are those planned, where mig-parted let them stand
	planWrong  = "DIFFERENT"
)

// DrawPlan makes a machine of MIG boards under the strategy mixed, that mig-manager looks after.
func DrawPlan(seed uint64) *State {
	random := rand.New(rand.NewPCG(seed, 23))
	state := &State{Seed: seed, Config: Config{"mixed", Sharing{}, byEnvironment, "uuid"}}
	state.Machine = drawMachine(random)
	for len(boards[state.Machine.Gpus[0].Board].Profiles) == 0 {
		state.Machine = drawMachine(random)
	}
	if random.IntN(2) == 0 {
		drawMig(random, &state.Machine, "mixed")
	}
	// A GPU in MIG mode without instances keeps the plugin from starting.
	for i := range state.Machine.Gpus {
		gpu := &state.Machine.Gpus[i]
		gpu.MigOn = len(gpu.Migs) > 0
	}
	state.Machine.Above = random.IntN(2) == 0
	state.Probe = pick(random, noProbe, probeOfPods)
	return state
}

// planner is a node whose layout Tranche plans, and the part of mig-manager.
type planner struct {
	place   *Place
	state   *State
	running *Running
	server  *Tranche
	held    []holder
	waiting []Pod
}

const configLabel = "nvidia.com/mig.config"

// judgePlan has Tranche plan for pods that wait, has mig-parted make what it planned, and looks
// whether the pods then get their devices.
func judgePlan(place *Place, state *State) (string, string, error) {
	running, err := place.Begin(state)
	if err != nil {
		return "", "", err
	}
	p := &planner{place: place, state: state, running: running}
	defer func() { p.running.Close() }()
	if err := place.Probe(state, running); err != nil {
		return "", "", err
	}
	running.Node.Labels[configLabel] = "all-disabled"
	running.Node.Labels[configLabel+".state"] = "success"
	policy := map[string]any{"apiVersion": "tranche.dev/v1alpha1", "kind": "GPUPolicy",
		"metadata": map[string]string{"name": "all"}, "spec": map[string]string{"mig": "Apply"}}
	objects := []any{running.Node.Object(), policy}
	if p.server, err = place.Serve(objects, "--clock", "manual"); err != nil {
		return "", "", err
	}
	defer p.server.Stop()
	if err := p.drawPods(); err != nil {
		return "", "", err
	}
	name, err := p.awaitLabel()
	if err != nil || name == "" {
		return planNone, "", err
	}
	return p.carryOut(name)
}

// drawPods binds a pod now and then, and has others wait for instances that are not there.
func (p *planner) drawPods() error {
	random := rand.New(rand.NewPCG(p.state.Seed, 29))
	board := boards[p.state.Machine.Gpus[0].Board]
	var pods []Pod
	if random.IntN(2) == 0 && len(p.running.Node.Resources) > 0 {
		keys := slices.Sorted(maps.Keys(p.running.Node.Resources))
		pods = append(pods, Pod{"running", []Ask{{pick(random, keys...), 1}}})
	}
	for i := range 1 + random.IntN(4) {
		profile := pick(random, board.Profiles...)
		pods = append(pods, Pod{fmt.Sprintf("waiting-%d", i),
			[]Ask{{migKey(profile.Name), pick(random, 1, 1, 2)}}})
	}
	for _, pod := range pods {
		record, _, err := p.server.Place(&pod)
		if err != nil {
			return err
		}
		if record == nil {
			p.waiting = append(p.waiting, pod)
			continue
		}
		given, err := p.running.Kubelet.AdmitPod(&pod, nil)
		if err != nil {
			return fmt.Errorf("%v: %w", pod.Asks, err)
		}
		p.held = append(p.held, holder{pod, given})
	}
	if err := p.place.Probe(p.state, p.running); err != nil {
		return err
	}
	return p.server.Ask("POST", "/embedded/v1/apply", p.running.Node.Object(), nil)
}

func (p *planner) advance(seconds int) error {
	return p.server.Ask("POST", "/embedded/v1/clock", map[string]int{"advanceSeconds": seconds}, nil)
}

// awaitLabel returns the configuration that Tranche asks mig-manager for; "": none.
func (p *planner) awaitLabel() (string, error) {
	for range 30 {
		var node struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := p.server.Ask("GET", "/embedded/v1/objects?kind=Node&name="+nodeName, nil,
			&node); err != nil {
			return "", err
		}
		if name := node.Metadata.Labels[configLabel]; name != "all-disabled" {
			return name, nil
		}
		if err := p.advance(10); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (p *planner) parted(args ...string) (string, error) {
	return p.place.Run(p.place.path("programs", "nvidia-mig-parted"), args...)
}

// carryOut is what mig-manager does: the programs stop, mig-parted makes the layout, they start.
func (p *planner) carryOut(name string) (string, string, error) {
	var config struct{ Data map[string]string }
	if err := p.server.Ask("GET", "/embedded/v1/objects?kind=ConfigMap&namespace=tranche-system"+
		"&name=tranche-mig-parted-config", nil, &config); err != nil {
		return "", "", err
	}
	file := p.place.path("state", "mig-parted.yaml")
	if err := os.WriteFile(file, []byte(config.Data["config.yaml"]), 0o644); err != nil {
		return "", "", err
	}
	before := p.uuids()
	plan := "planned:\n" + config.Data["config.yaml"]
	for _, step := range [][]string{
		{"assert", "--valid-config", "-f", file, "-c", name},
		{"apply", "-f", file, "-c", name},
		{"assert", "-f", file, "-c", name}} {
		if _, err := p.parted(step...); err != nil {
			return planWrong, fmt.Sprintf("mig-parted %s: %v\n%s", step[0], err, plan), nil
		}
	}
	if err := p.readBack(); err != nil {
		return "", "", err
	}
	for _, one := range p.held {
		for _, given := range one.given {
			for _, id := range given.IDs {
				if after := p.uuids(); before[id] != after[id] {
					return planWrong, fmt.Sprintf("%s holds %s, which was %s and is %s\n%s", one.pod.Name, id,
						before[id], after[id], plan), nil
				}
			}
		}
	}
	if wrong, err := p.exported(name, config.Data["config.yaml"]); err != nil || wrong != "" {
		return planWrong, wrong + plan, err
	}
	return p.afterwards(plan)
}

// uuids are the devices that pods can hold, each with what it is.
func (p *planner) uuids() map[string]string {
	all := map[string]string{}
	for _, gpu := range p.state.Machine.Gpus {
		if !gpu.MigOn {
			all[gpu.UUID] = "a GPU"
		}
		for _, mig := range gpu.Migs {
			all[mig.UUID] = fmt.Sprintf("%s at %d", mig.Profile, mig.Start)
		}
	}
	return all
}

// readBack takes the machine as mig-parted left it.
func (p *planner) readBack() error {
	text, err := os.ReadFile(p.place.path("state", "instances.json"))
	if os.IsNotExist(err) {
		return nil // mig-parted had nothing to change
	}
	if err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	var modes map[string]bool
	if err := json.Unmarshal(all["modes"], &modes); err != nil {
		return err
	}
	for i := range p.state.Machine.Gpus {
		gpu := &p.state.Machine.Gpus[i]
		gpu.MigOn, gpu.Migs = modes[gpu.UUID], nil
		if err := json.Unmarshal(all[gpu.UUID], &gpu.Migs); err != nil {
			return err
		}
	}
	return nil
}

// exported: mig-parted's own reading of the machine is the layout that was written for it.
func (p *planner) exported(name, config string) (string, error) {
	text, err := p.parted("export", "-o", "json", "-l", name)
	if err != nil {
		return "", err
	}
	found, err := layoutOf([]byte(text), name, len(p.state.Machine.Gpus))
	if err != nil {
		return "", err
	}
	planned, err := layoutOf([]byte(config), name, len(p.state.Machine.Gpus))
	if err != nil {
		return "", err
	}
	if slices.Equal(planned, found) {
		return "", nil
	}
	return fmt.Sprintf("mig-parted exports %q\n", found), nil
}

// afterwards starts the programs again and tells Tranche of the new node.
func (p *planner) afterwards(plan string) (string, string, error) {
	planned, err := p.place.Node(p.server)
	if err != nil {
		return "", "", err
	}
	if planned.Closed == nil {
		return planWrong, "Tranche does not keep the node closed\n" + plan, nil
	}
	p.running.Close()
	running, err := p.place.Begin(p.state)
	if err != nil {
		return "", "", err
	}
	p.running = running
	for _, one := range p.held {
		running.Kubelet.Restore(one)
	}
	if err := p.place.Probe(p.state, running); err != nil {
		return "", "", err
	}
	if running.Node.Labels[configLabel], err = p.label(); err != nil {
		return "", "", err
	}
	running.Node.Labels[configLabel+".state"] = "success"
	if err := p.server.Ask("POST", "/embedded/v1/apply", running.Node.Object(), nil); err != nil {
		return "", "", err
	}
	for range 30 {
		if err := p.advance(10); err != nil {
			return "", "", err
		}
		seen, err := p.place.Node(p.server)
		if err != nil {
			return "", "", err
		}
		if seen.Closed != nil {
			continue
		}
		if wrong := differences(p.state.told(), seen.contents()); len(wrong) > 0 {
			return planWrong, fmt.Sprintf("%v\n%s", wrong, plan), nil
		}
		return p.served(seen, plan)
	}
	return planWrong, "Tranche keeps the node closed\n" + plan, nil
}

func (p *planner) label() (string, error) {
	var node struct {
		Metadata struct{ Labels map[string]string }
	}
	err := p.server.Ask("GET", "/embedded/v1/objects?kind=Node&name="+nodeName, nil, &node)
	return node.Metadata.Labels[configLabel], err
}

// served: pods that Tranche now sends get their devices, and at least one waited for the change.
func (p *planner) served(seen *SeenNode, plan string) (string, string, error) {
	sent := 0
	for _, pod := range p.waiting {
		record, _, err := p.server.Place(&pod)
		if err != nil {
			return "", "", err
		}
		if record == nil {
			continue
		}
		given, err := p.running.Kubelet.AdmitPod(&pod, nil)
		if err != nil {
			return planWrong, fmt.Sprintf("%v sent, rejected: %v\n%s", pod.Asks, err, plan), nil
		}
		if wrong := p.state.JudgePod(&pod, record, given); len(wrong) > 0 {
			return planWrong, strings.Join(wrong, "; ") + "\n" + plan, nil
		}
		sent++
	}
	if sent == 0 {
		return planWrong, fmt.Sprintf("none of %v is sent after the change\n%s", p.waiting, plan), nil
	}
	if len(p.held) > 0 {
		return planBeside, "", nil
	}
	if len(p.state.startDifferences(seen)) > 0 {
		return planStarts, "", nil
	}
	return planMade, "", nil
}
