package main

import (
	"strings"
	"testing"
)

// Two NUMA nodes of 3 and 1 free GPUs under single-numa-node, and a pod of two containers.
const twoContainers = `{"policy":"single-numa-node","scope":"SCOPE","numaNodes":[0,1],
"gpus":[{"id":"a","numa":0},{"id":"b","numa":0},{"id":"c","numa":0},{"id":"d","numa":1},{"id":"e","numa":1}],
"running":[[4]],"pod":{"spec":{"containers":[
{"name":"one","resources":{"limits":{"nvidia.com/gpu":"2"}}},
{"name":"two","resources":{"limits":{"nvidia.com/gpu":"SECOND"}}}]}},"answer":"ANSWER"}`

func TestWhereTheTwoDifferItIsSaid(t *testing.T) {
	for _, row := range []struct {
		scope, second, answer string
		want                  Outcome
	}{
		{"container", "1", "Sent", bothAdmit},
		{"container", "2", "NumaMismatch", bothRefuse},
		{"container", "2", "Sent", sentAndRejected},
		{"container", "1", "NumaMismatch", refusedThoughAdmitted},
		{"pod", "1", "Sent", bothAdmit},
		{"pod", "2", "Sent", sentAndRejected},
		{"pod", "3", "NoRoom", noRoom},
		{"pod", "1", "NoRoom", noRoomThoughAdmitted},
	} {
		line := strings.NewReplacer("\n", "", "SCOPE", row.scope, "SECOND", row.second, "ANSWER",
			row.answer).Replace(twoContainers)
		table, err := judgeAll(strings.NewReader(line), 0)
		if err != nil {
			t.Fatal(err)
		}
		for key, counts := range table.counts {
			if counts[row.want] != 1 {
				t.Errorf("%s, %s GPUs, %s: expected %q, found %v", key, row.second, row.answer, row.want, *counts)
			}
		}
		if table.Agrees(0) == row.want.isWrong() {
			t.Errorf("%q: expected failure %v, found the opposite", row.want, row.want.isWrong())
		}
	}
}
