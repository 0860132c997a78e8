package main

import (
	"encoding/json"
	"io"
	"slices"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Two A100 of 40 GB, the second cut into three, the plugin's configuration as given.
func twoCards(strategy string, sharing Sharing) *State {
	gpus := []Gpu{{UUID: "GPU-a", Board: "a100-40", MemoryMiB: 40960},
		{UUID: "GPU-b", Board: "a100-40", MemoryMiB: 40960, MigOn: true, Migs: []Mig{
			{"MIG-1", "1g.5gb", 0, 1}, {"MIG-2", "1g.5gb+me", 1, 1}, {"MIG-3", "3g.20gb", 4, 4}}}}
	return &State{Machine: Machine{Gpus: gpus}, Config: Config{strategy, sharing, byEnvironment, "uuid"}}
}

func TestAWrongNodeIsFound(t *testing.T) {
	state := twoCards("mixed", Sharing{})
	right := `{"model":"a100-40gb","gpus":[{"memoryMiB":40960,"mig":null,"replicas":1},
{"memoryMiB":40960,"replicas":1,
"mig":[{"profile":"1g.5gb"},{"profile":"1g.5gb"},{"profile":"3g.20gb"}]}]}`
	for _, row := range []struct {
		field string // that differs; "": none
		edit  func(*SeenNode)
	}{
		{"", func(*SeenNode) {}},
		{"model", func(n *SeenNode) { *n.Model = "a100-80gb" }},
		{"memory", func(n *SeenNode) { n.Gpus[1].MemoryMiB-- }},
		{"GPUs", func(n *SeenNode) { n.Gpus = append(n.Gpus, n.Gpus[1]) }},
		{"GPUs without MIG", func(n *SeenNode) { n.Gpus = n.Gpus[1:] }},
		{"replicas", func(n *SeenNode) { n.Gpus[0].Replicas = 2 }},
		{"MIG instances", func(n *SeenNode) { n.Gpus[1].Mig = n.Gpus[1].Mig[1:] }},
	} {
		var seen SeenNode
		if err := json.Unmarshal([]byte(right), &seen); err != nil {
			t.Fatal(err)
		}
		row.edit(&seen)
		var fields []string
		for _, one := range differences(state.told(), seen.contents()) {
			fields = append(fields, one.Field)
		}
		if row.field == "" && len(fields) > 0 || row.field != "" && !slices.Contains(fields, row.field) {
			t.Errorf("expected a difference of %q, found %q", row.field, fields)
		}
	}
}

func given(visible string, ids ...string) []*Given {
	return []*Given{{IDs: ids, Answer: &pluginapi.ContainerAllocateResponse{
		Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": visible}}}}
}

func TestAWrongRecordIsFound(t *testing.T) {
	shared := Sharing{Method: "timeSlicing", Replicas: 4, Resources: []string{gpuKey}}
	for _, row := range []struct {
		name    string
		sharing Sharing
		ask     Ask
		devices string
		given   []*Given
		wrong   bool
	}{
		{"a GPU", Sharing{}, Ask{gpuKey, 1}, `{"milli":1000,"mib":40960}`, given("GPU-a", "GPU-a"),
			false},
		{"another memory", Sharing{}, Ask{gpuKey, 1}, `{"milli":1000,"mib":40536}`,
			given("GPU-a", "GPU-a"), true},
		{"too few", Sharing{}, Ask{gpuKey, 2}, `{"milli":1000,"mib":40960}`,
			given("GPU-a,GPU-b", "GPU-a", "GPU-b"), true},
		{"not what the runtime shows", Sharing{}, Ask{gpuKey, 1}, `{"milli":1000,"mib":40960}`,
			given("GPU-b", "GPU-a"), true},
		{"a share", shared, Ask{gpuKey, 1}, `{"milli":250,"mib":10240}`, given("GPU-a", "GPU-a::2"),
			false},
		{"a larger share", shared, Ask{gpuKey, 1}, `{"milli":500,"mib":20480}`,
			given("GPU-a", "GPU-a::2"), true},
		{"media engines under the plain key", Sharing{}, Ask{"nvidia.com/mig-1g.5gb", 1},
			`{"milli":142,"mib":4864,"mig":{"profile":"1g.5gb","start":0,"size":1}}`,
			given("MIG-2", "MIG-2"), false},
		{"another profile", Sharing{}, Ask{"nvidia.com/mig-1g.5gb", 1},
			`{"milli":142,"mib":4864,"mig":{"profile":"1g.5gb","start":0,"size":1}}`,
			given("MIG-3", "MIG-3"), true},
	} {
		var record Record
		text := `{"knowledge":"counts","containers":[{"devices":[` + row.devices + `]}]}`
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatal(err)
		}
		pod := &Pod{"pod", []Ask{row.ask}}
		wrong := twoCards("mixed", row.sharing).JudgePod(pod, &record, row.given)
		if len(wrong) > 0 != row.wrong {
			t.Errorf("%s: expected wrong %v, found %q", row.name, row.wrong, wrong)
		}
	}
}

func TestADeviceForetoldWronglyIsFound(t *testing.T) {
	state := twoCards("mixed", Sharing{})
	for _, row := range []struct {
		named    string
		possible bool
		want     Outcome
	}{{"GPU-a", false, podAdmitted}, {"GPU-b", true, podEqual}, {"GPU-b", false, podMissed}} {
		all := given("GPU-a", "GPU-a")
		all[0].Possible = row.possible
		found, _ := state.JudgeNames([][]string{{row.named}}, all)
		if found != row.want {
			t.Errorf("%v: expected %s, found %s", row, outcomeNames[row.want], outcomeNames[found])
		}
	}
}

func TestEveryDifferenceFails(t *testing.T) {
	for outcome := range outcomes {
		table := NewTable(io.Discard, 0)
		for _, good := range []Outcome{nodeSame, podAdmitted, podNoRoom, outcome} {
			table.Add(twoCards("mixed", Sharing{}), good, "")
		}
		if table.Agrees(true) == outcome.isWrong() {
			t.Errorf("%s: expected failure %v, found the opposite", outcomeNames[outcome],
				outcome.isWrong())
		}
	}
}

func TestLayoutsOfMigPartedAreRead(t *testing.T) {
	text := []byte("version: v1\nmig-configs:\n  a:\n  - devices: [1]\n    mig-enabled: true\n" +
		"    mig-devices: {\"3g.20gb\": 2}\n  - devices: [0]\n    mig-enabled: false\n")
	found, err := layoutOf(text, "a", 2)
	if want := []string{"whole", "map[3g.20gb:2]"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("expected %q, found %q, %v", want, found, err)
	}
	for _, bad := range []struct {
		name string
		gpus int
	}{{"b", 2}, {"a", 1}} {
		if found, err := layoutOf(text, bad.name, bad.gpus); err == nil {
			t.Errorf("%v: expected an error, found %q", bad, found)
		}
	}
}
