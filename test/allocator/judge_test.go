package main

import (
	"strings"
	"testing"
)

// One node with two devices, one of them held, and a claim for COUNT.
const oneNode = `{"kind":"state","part":"plain","slices":[{"metadata":{"name":"s"},"spec":{
"driver":"gpu.nvidia.com","pool":{"name":"n1","generation":1,"resourceSliceCount":1},"nodeName":"n1",
"devices":[{"name":"gpu-0","attributes":{"index":{"int":0}}},{"name":"gpu-1","attributes":{"index":{"int":1}}}]}}],
"classes":[{"metadata":{"name":"gpu"},"spec":{"selectors":[]}}],
"held":[{"metadata":{"name":"held","namespace":"team","uid":"u"},"spec":{"devices":{"requests":[
{"name":"r","exactly":{"deviceClassName":"gpu"}}]}},"status":{"allocation":{"devices":{"results":[
{"request":"r","driver":"gpu.nvidia.com","pool":"n1","device":"gpu-0"}]}}}}],
"claims":[{"metadata":{"name":"new","namespace":"team","uid":"v"},"spec":{"devices":{"requests":[
{"name":"r","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":COUNT}}]}}}],
"nodes":[{"metadata":{"name":"n1"}}],
"answers":[{"kind":"KIND","why":"","reaches":[true],"devices":[[
{"request":"r","driver":"gpu.nvidia.com","pool":"n1","device":"DEVICE"}]]}]}`

const oneExpression = `{"kind":"cel","part":"expressions","expression":"TEXT","driver":"gpu.nvidia.com",
"device":{"name":"gpu-0","attributes":{"index":{"int":3}}},"answer":{"kind":"KIND","why":""}}`

func TestWhereTheTwoDifferItIsSaid(t *testing.T) {
	for _, row := range []struct {
		line, count, device, kind string
		want                      Outcome
	}{
		{oneNode, "1", "gpu-1", "fits", Fits},
		{oneNode, "1", "gpu-0", "fits", WrongDevices},
		{oneNode, "1", "gpu-1", "no", WrongNo},
		{oneNode, "2", "gpu-1", "fits", WrongFits},
		{oneNode, "2", "gpu-1", "no", NoRoom},
		{oneNode, "2", "gpu-1", "unknown", Unknown},
		{oneNode, "33", "gpu-1", "error", Error},
		{oneNode, "33", "gpu-1", "no", WrongError},
		{oneExpression, "index == 3", "", "yes", Fits},
		{oneExpression, "index == 3", "", "no", WrongNo},
		{oneExpression, "index == 4", "", "yes", WrongFits},
		{oneExpression, "absent == 4", "", "error", Error},
		{oneExpression, "index == 3", "", "error", WrongError},
		{oneExpression, "index == 3 && 1 == '1'", "", "error", Refused},
	} {
		text := "device.attributes['gpu.nvidia.com']." + row.count
		line := strings.NewReplacer("\n", "", "COUNT", row.count, "DEVICE", row.device, "KIND", row.kind,
			"TEXT", text).Replace(row.line)
		table, err := judgeAll(strings.NewReader(line), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, counts := range table.counts {
			if counts[row.want] != 1 {
				t.Errorf("%s, %s: expected %q, found %v", row.count, row.kind, row.want, *counts)
			}
		}
		if table.Agrees(0) == row.want.isWrong() {
			t.Errorf("%q: expected failure %v, found the opposite", row.want, row.want.isWrong())
		}
	}
}

func TestWhatTheAPIServerRefusesIsNoCase(t *testing.T) {
	line := strings.NewReplacer("\n", "", "COUNT", "0", "DEVICE", "gpu-1", "KIND", "fits",
		`"resourceSliceCount":1`, `"resourceSliceCount":0`).Replace(oneNode)
	if _, err := judgeAll(strings.NewReader(line), 0); err == nil {
		t.Error("expected an error about the pool's count of slices, found none")
	}
}

func TestTheGatesAreThoseOfTheRelease(t *testing.T) {
	features := defaultFeatures()
	if !features.PartitionableDevices || !features.ConsumableCapacity || !features.PrioritizedList ||
		features.ListTypeAttributes || features.FractionalCapacityRange {
		t.Errorf("expected the gates of 1.37 as README.md names them, found %+v", features)
	}
}
