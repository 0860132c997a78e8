package main

// Profile is one way to cut a board, as NVML tells it.
type Profile struct {
	Number          int    `json:"number"` // NVML's number of the profile's kind
	ID              int    `json:"id"`
	Name            string `json:"name"`
	Slices          int    `json:"slices"`
	MemoryMiB       int    `json:"memoryMiB"`
	Size            int    `json:"size"`
	Most            int    `json:"most"`
	Starts          []int  `json:"starts"`
	Multiprocessors int    `json:"multiprocessors"`
}

// Board is a kind of GPU; one without profiles has no MIG mode.
type Board struct {
	Name      string    `json:"name"`
	Compute   [2]int    `json:"compute"`
	DeviceID  int       `json:"deviceId"`
	Profiles  []Profile `json:"profiles,omitempty"`
	MemoryMiB int       `json:"-"`
	Model     string    `json:"-"` // Tranche's word
}

// The names, sizes and multiprocessors of profiles. Sources: NVIDIA's MIG user guide, "Supported
// MIG Profiles", and published listings of `nvidia-smi mig -lgip`.
type cut struct {
	name            string
	mib             int
	multiprocessors int
}

// eightUnits are the profiles of a board of eight memory units, in this order: one slice, with the
// media engines, with twice the memory, then two, three, four and seven slices.
func eightUnits(cuts [7]cut) []Profile {
	grid := [7]Profile{
		{Number: 0, ID: 19, Slices: 1, Size: 1, Most: 7, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Number: 7, ID: 20, Slices: 1, Size: 1, Most: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Number: 9, ID: 15, Slices: 1, Size: 2, Most: 4, Starts: []int{0, 2, 4, 6}},
		{Number: 1, ID: 14, Slices: 2, Size: 2, Most: 3, Starts: []int{0, 2, 4}},
		{Number: 2, ID: 9, Slices: 3, Size: 4, Most: 2, Starts: []int{0, 4}},
		{Number: 3, ID: 5, Slices: 4, Size: 4, Most: 1, Starts: []int{0}},
		{Number: 4, ID: 0, Slices: 7, Size: 8, Most: 1, Starts: []int{0}},
	}
	return filled(grid[:], cuts[:])
}

// fourSlices are those of the A30.
func fourSlices(cuts [5]cut) []Profile {
	grid := [5]Profile{
		{Number: 0, ID: 14, Slices: 1, Size: 1, Most: 4, Starts: []int{0, 1, 2, 3}},
		{Number: 7, ID: 21, Slices: 1, Size: 1, Most: 1, Starts: []int{0, 1, 2, 3}},
		{Number: 1, ID: 5, Slices: 2, Size: 2, Most: 2, Starts: []int{0, 2}},
		{Number: 8, ID: 6, Slices: 2, Size: 2, Most: 1, Starts: []int{0, 2}},
		{Number: 3, ID: 0, Slices: 4, Size: 4, Most: 1, Starts: []int{0}},
	}
	return filled(grid[:], cuts[:])
}

func filled(grid []Profile, cuts []cut) []Profile {
	for i := range grid {
		grid[i].Name = cuts[i].name
		grid[i].MemoryMiB = cuts[i].mib
		grid[i].Multiprocessors = cuts[i].multiprocessors
	}
	return grid
}

var boards = map[string]*Board{
	"a100-40": {Name: "NVIDIA A100-SXM4-40GB", Compute: [2]int{8, 0}, DeviceID: 0x20b0,
		MemoryMiB: 40960, Model: "a100-40gb", Profiles: eightUnits([7]cut{
			{"1g.5gb", 4864, 14}, {"1g.5gb+me", 4864, 14}, {"1g.10gb", 9984, 14},
			{"2g.10gb", 9984, 28}, {"3g.20gb", 20096, 42}, {"4g.20gb", 20096, 56},
			{"7g.40gb", 40320, 98}})},
	"a100-80": {Name: "NVIDIA A100-SXM4-80GB", Compute: [2]int{8, 0}, DeviceID: 0x20b2,
		MemoryMiB: 81920, Model: "a100-80gb", Profiles: eightUnits([7]cut{
			{"1g.10gb", 9856, 14}, {"1g.10gb+me", 9856, 14}, {"1g.20gb", 19968, 14},
			{"2g.20gb", 19968, 28}, {"3g.40gb", 40192, 42}, {"4g.40gb", 40192, 56},
			{"7g.80gb", 80384, 98}})},
	"h100": {Name: "NVIDIA H100 80GB HBM3", Compute: [2]int{9, 0}, DeviceID: 0x2330,
		MemoryMiB: 81559, Model: "h100", Profiles: eightUnits([7]cut{
			{"1g.10gb", 9984, 16}, {"1g.10gb+me", 9984, 16}, {"1g.20gb", 20096, 26},
			{"2g.20gb", 20096, 32}, {"3g.40gb", 40448, 60}, {"4g.40gb", 40448, 64},
			{"7g.80gb", 81152, 132}})},
	"h100-nvl": {Name: "NVIDIA H100 NVL", Compute: [2]int{9, 0}, DeviceID: 0x2321,
		MemoryMiB: 95830, Model: "h100-nvl", Profiles: eightUnits([7]cut{
			{"1g.12gb", 11008, 16}, {"1g.12gb+me", 11008, 16}, {"1g.24gb", 22144, 26},
			{"2g.24gb", 22144, 32}, {"3g.47gb", 47488, 60}, {"4g.47gb", 47488, 64},
			{"7g.94gb", 95360, 132}})},
	"h200": {Name: "NVIDIA H200", Compute: [2]int{9, 0}, DeviceID: 0x2335,
		MemoryMiB: 143771, Model: "h200", Profiles: eightUnits([7]cut{
			{"1g.18gb", 16384, 16}, {"1g.18gb+me", 16384, 16}, {"1g.35gb", 33024, 26},
			{"2g.35gb", 33024, 32}, {"3g.71gb", 71168, 60}, {"4g.71gb", 71168, 64},
			{"7g.141gb", 143360, 132}})},
	"b200": {Name: "NVIDIA B200", Compute: [2]int{10, 0}, DeviceID: 0x2901,
		MemoryMiB: 183359, Model: "b200", Profiles: eightUnits([7]cut{
			{"1g.23gb", 20992, 18}, {"1g.23gb+me", 20992, 18}, {"1g.45gb", 45312, 30},
			{"2g.45gb", 45312, 36}, {"3g.90gb", 91136, 70}, {"4g.90gb", 91136, 72},
			{"7g.180gb", 182784, 148}})},
	"a30": {Name: "NVIDIA A30", Compute: [2]int{8, 0}, DeviceID: 0x20b7,
		MemoryMiB: 24258, Model: "a30", Profiles: fourSlices([5]cut{
			{"1g.6gb", 5836, 14}, {"1g.6gb+me", 5836, 14}, {"2g.12gb", 11672, 28},
			{"2g.12gb+me", 11672, 28}, {"4g.24gb", 23344, 56}})},
	"t4": {Name: "Tesla T4", Compute: [2]int{7, 5}, DeviceID: 0x1eb8, MemoryMiB: 15360,
		Model: "t4"},
	"v100": {Name: "Tesla V100-SXM2-16GB", Compute: [2]int{7, 0}, DeviceID: 0x1db1,
		MemoryMiB: 16384, Model: "v100-16gb"},
	"a10": {Name: "NVIDIA A10", Compute: [2]int{8, 6}, DeviceID: 0x2236, MemoryMiB: 23028,
		Model: "a10"},
	"l4": {Name: "NVIDIA L4", Compute: [2]int{8, 9}, DeviceID: 0x27b8, MemoryMiB: 23034,
		Model: "l4"},
	"l40s": {Name: "NVIDIA L40S", Compute: [2]int{8, 9}, DeviceID: 0x26b9, MemoryMiB: 46068,
		Model: "l40s"},
	"a6000": {Name: "NVIDIA RTX A6000", Compute: [2]int{8, 6}, DeviceID: 0x2230,
		MemoryMiB: 49140, Model: "rtx-a6000"},
}

// Profile of a board by its name; nil where the board has none of that name.
func (b *Board) Profile(name string) *Profile {
	for i := range b.Profiles {
		if b.Profiles[i].Name == name {
			return &b.Profiles[i]
		}
	}
	return nil
}
