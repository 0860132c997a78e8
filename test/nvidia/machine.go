package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Mig is an instance of a GPU; its compute instance has all of its slices.
type Mig struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`
}

// Gpu is a card as the driver numbers it. A nil list of instances is MIG mode off.
type Gpu struct {
	UUID      string `json:"uuid"`
	Bus       string `json:"bus"`
	MemoryMiB int    `json:"memoryMiB"`
	Board     string `json:"board"`
	Migs      []Mig  `json:"mig,omitempty"`
	MigOn     bool   `json:"-"`
}

// Machine is what the fake NVML plays.
type Machine struct {
	Driver   string
	Switched bool
	Above    bool // where the driver puts instances whose place nobody names
	Gpus     []Gpu
	Links    [][]string // cells of nvidia-smi's matrix
	Paths    [][]string // the same without NVLinks
}

// Sharing is the plugin's; the zero value shares nothing.
type Sharing struct {
	Method    string // "", "timeSlicing", "mps"
	Replicas  int
	Rename    bool
	FailMore  bool
	Resources []string // by their names before they are renamed
}

// Config is the plugin's and GPU feature discovery's.
type Config struct {
	Strategy string
	Sharing  Sharing
	Lists    string // how the plugin tells the runtime of devices: "envvar", "volume-mounts", ...
	IDs      string // by what: "uuid" or "index"
}

// State is one drawn machine with its configuration.
type State struct {
	Seed    uint64
	Machine Machine
	Config  Config
	Probe   string
	Ill     bool // a GPU falls ill while pods run
}

// Draw makes the state of a seed.
func Draw(seed uint64) *State {
	random := rand.New(rand.NewPCG(seed, 17))
	state := &State{Seed: seed}
	state.Machine = drawMachine(random)
	state.Config.Strategy = pick(random, "none", "single", "mixed", "mixed")
	drawMig(random, &state.Machine, state.Config.Strategy)
	state.Config.Sharing = drawSharing(random, state)
	state.Probe = pick(random, noProbe, probeOnce, probeOfPods)
	state.Config.Lists = pick(random, byEnvironment, byEnvironment, byMounts, byAnnotations)
	whole := !slices.ContainsFunc(state.Machine.Gpus, func(gpu Gpu) bool { return gpu.MigOn })
	state.Ill = whole && state.Config.Sharing.Method == "" && random.IntN(3) == 0
	state.Config.IDs = pick(random, "uuid", "uuid", "index")
	return state
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func drawMachine(random *rand.Rand) Machine {
	names := make([]string, 0, len(boards))
	for name := range boards {
		names = append(names, name)
	}
	slices.Sort(names)
	machine := Machine{Driver: pick(random, "550.54.15", "535.183.01", "560.28.03")}
	board := pick(random, names...)
	for len(boards[board].Profiles) == 0 && random.IntN(2) == 0 {
		board = pick(random, names...)
	}
	count := pick(random, 1, 2, 3, 4, 4, 6, 8, 8)
	for i := range count {
		machine.Gpus = append(machine.Gpus, Gpu{
			UUID:      "GPU-" + drawUUID(random),
			Bus:       fmt.Sprintf("0000:%02x:00.0", 0x19+i*0x11),
			MemoryMiB: boards[board].MemoryMiB,
			Board:     board,
		})
	}
	drawLinks(random, &machine)
	return machine
}

func drawUUID(random *rand.Rand) string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", random.Uint32(), random.IntN(1<<16),
		random.IntN(1<<12), random.IntN(1<<12), random.Uint64()&(1<<48-1))
}

// Pairs on one switch, halves on one socket, and NVLinks through switches, between all, between
// pairs or nowhere. A GPU has at most 18 links.
func drawLinks(random *rand.Rand, machine *Machine) {
	count := len(machine.Gpus)
	kind := pick(random, "none", "pairs", "all", "switched")
	machine.Switched = kind == "switched"
	for i := range count {
		links, paths := make([]string, count), make([]string, count)
		for j := range count {
			paths[j] = "SYS"
			switch {
			case i == j:
				paths[j] = "X"
			case i/2 == j/2:
				paths[j] = "PIX"
			case numaOf(i) == numaOf(j):
				paths[j] = "NODE"
			}
			links[j] = paths[j]
			switch {
			case i == j:
			case kind == "switched":
				links[j] = "NV18"
			case kind == "all":
				links[j] = "NV2"
			case kind == "pairs" && i/2 == j/2:
				links[j] = "NV4"
			}
		}
		machine.Links = append(machine.Links, links)
		machine.Paths = append(machine.Paths, paths)
	}
}

// HidesPaths is true where NVLinks hide that some ways between GPUs of one NUMA node are shorter.
func (m *Machine) HidesPaths() bool {
	return len(m.Gpus) > 2 && m.Links[0][2] != m.Paths[0][2]
}

func numaOf(gpu int) int { return gpu / 4 }

func drawMig(random *rand.Rand, machine *Machine, strategy string) {
	board := boards[machine.Gpus[0].Board]
	if len(board.Profiles) == 0 || random.IntN(5) == 0 {
		return
	}
	uniform := strategy == "single" && random.IntN(5) > 0
	same := pick(random, board.Profiles...)
	for i := range machine.Gpus {
		gpu := &machine.Gpus[i]
		gpu.MigOn = uniform || random.IntN(3) > 0
		if !gpu.MigOn {
			continue
		}
		if uniform {
			gpu.fill(random, board, []Profile{same}, 1+random.IntN(same.Most))
		} else if random.IntN(12) > 0 {
			gpu.fill(random, board, board.Profiles, 1+random.IntN(7))
		}
	}
}

// fill makes up to so many instances of the profiles at free places.
func (g *Gpu) fill(random *rand.Rand, board *Board, profiles []Profile, count int) {
	for len(g.Migs) < count {
		type place struct {
			profile Profile
			start   int
		}
		var places []place
		for _, profile := range profiles {
			for _, start := range profile.Starts {
				if g.isFree(board, profile, start) {
					places = append(places, place{profile, start})
				}
			}
		}
		if len(places) == 0 {
			return
		}
		chosen := pick(random, places...)
		g.Migs = append(g.Migs, Mig{"MIG-" + drawUUID(random), chosen.profile.Name, chosen.start,
			chosen.profile.Size})
	}
}

// A board has its media engines once.
func (g *Gpu) isFree(board *Board, profile Profile, start int) bool {
	same := 0
	for _, mig := range g.Migs {
		if start < mig.Start+mig.Size && mig.Start < start+profile.Size {
			return false
		}
		if mig.Profile == profile.Name ||
			strings.HasSuffix(mig.Profile, "+me") && strings.HasSuffix(profile.Name, "+me") {
			same++
		}
	}
	return same < profile.Most
}

func drawSharing(random *rand.Rand, state *State) Sharing {
	sharing := Sharing{Method: pick(random, "", "", "timeSlicing", "timeSlicing", "mps")}
	if sharing.Method == "" || sharing.Method == "mps" && state.Config.Strategy == "mixed" {
		return Sharing{}
	}
	sharing.Replicas = 2 + random.IntN(9)
	sharing.Rename = random.IntN(3) == 0
	sharing.FailMore = sharing.Method == "mps" || random.IntN(2) == 0
	sharing.Resources = []string{gpuKey}
	if sharing.Method == "mps" || state.Config.Strategy != "mixed" {
		return sharing
	}
	for _, gpu := range state.Machine.Gpus {
		for _, mig := range gpu.Migs {
			key := migKey(mig.Profile)
			if !slices.Contains(sharing.Resources, key) && random.IntN(2) == 0 {
				sharing.Resources = append(sharing.Resources, key)
			}
		}
	}
	return sharing
}

const gpuKey = "nvidia.com/gpu"

// migKey is the resource that an instance is advertised under. The plugin matches a profile with
// the patterns of resources in NVML's order, and the plain profile's is found in the name of one
// with media engines (api/config/v1/resources.go), so that both have the plain one's key.
func migKey(profile string) string {
	plain, _, _ := strings.Cut(profile, "+")
	return "nvidia.com/mig-" + plain
}

// NodeFile is the machine as the fake NVML reads it. An empty list of instances is MIG mode on.
func (m *Machine) NodeFile() []byte {
	type gpu struct {
		Gpu
		Migs any `json:"mig,omitempty"`
	}
	starts := map[bool]string{true: "above", false: "below"}[m.Above]
	file := struct {
		Driver   string            `json:"driver"`
		Matrix   string            `json:"matrix"`
		Paths    string            `json:"paths"`
		Switched bool              `json:"switched"`
		Starts   string            `json:"starts"`
		Boards   map[string]*Board `json:"boards"`
		Gpus     []gpu             `json:"gpus"`
	}{m.Driver, "matrix.txt", "paths.txt", m.Switched, starts, map[string]*Board{}, nil}
	for _, card := range m.Gpus {
		file.Boards[card.Board] = boards[card.Board]
		one := gpu{Gpu: card}
		if card.MigOn {
			one.Migs = append([]Mig{}, card.Migs...)
		}
		file.Gpus = append(file.Gpus, one)
	}
	text, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return text
}

// Matrix is the output of nvidia-smi topo -m, without its last columns.
func Matrix(rows [][]string) string {
	var out strings.Builder
	for i := range rows {
		fmt.Fprintf(&out, "\tGPU%d", i)
	}
	for i, row := range rows {
		fmt.Fprintf(&out, "\nGPU%d\t%s", i, strings.Join(row, "\t"))
	}
	return out.String() + "\n"
}

// File is the configuration as both programs read it; JSON is YAML.
func (c *Config) File() []byte {
	type resource struct {
		Name     string `json:"name"`
		Replicas int    `json:"replicas"`
	}
	flags := map[string]any{"migStrategy": c.Strategy, "plugin": map[string]any{
		"deviceListStrategy": []string{c.Lists}, "deviceIDStrategy": c.IDs}}
	config := map[string]any{"version": "v1", "flags": flags}
	if c.Sharing.Method != "" {
		var resources []resource
		for _, name := range c.Sharing.Resources {
			resources = append(resources, resource{name, c.Sharing.Replicas})
		}
		sharing := map[string]any{"renameByDefault": c.Sharing.Rename, "resources": resources}
		if c.Sharing.Method == "timeSlicing" {
			sharing["failRequestsGreaterThanOne"] = c.Sharing.FailMore
		}
		config["sharing"] = map[string]any{c.Sharing.Method: sharing}
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err)
	}
	return text
}

// Resources are what the plugin has to advertise: how many devices by key. Nil: it refuses the
// machine (its internal/rm/device_map.go and internal/plugin/server.go), so that there is nothing.
func (s *State) Resources() map[string]int {
	cards, instances, empty := 0, map[string]int{}, false
	for _, gpu := range s.Machine.Gpus {
		if !gpu.MigOn || s.Config.Strategy == "none" {
			cards++
			continue
		}
		empty = empty || len(gpu.Migs) == 0
		for _, mig := range gpu.Migs {
			instances[mig.Profile]++
		}
	}
	kinds := len(instances)
	if empty || s.Config.Strategy == "single" && (kinds > 1 || kinds > 0 && cards > 0) {
		return nil
	}
	if s.Config.Sharing.Method == "mps" && len(instances) > 0 {
		return nil
	}
	found := map[string]int{}
	if cards > 0 {
		found[gpuKey] = cards
	}
	for profile, count := range instances {
		if s.Config.Strategy == "single" {
			found[gpuKey] = count
		} else {
			found[migKey(profile)] += count
		}
	}
	shared := map[string]int{}
	for key, count := range found {
		name, replicas := s.Config.Sharing.of(key)
		shared[name] = count * replicas
	}
	return shared
}

// of tells a resource's name as advertised and its replicas.
func (s *Sharing) of(key string) (string, int) {
	if s.Method == "" || !slices.Contains(s.Resources, key) {
		return key, 1
	}
	if s.Rename {
		return key + ".shared", s.Replicas
	}
	return key, s.Replicas
}
