package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

const caseFolder = "../cases/custom-resources"

// eachCase reads the files of one folder of cases; `expect` is what the first line of the file says.
func eachCase(t *testing.T, folder string, least int, judge func(t *testing.T, object CustomObject, expect string)) {
	files, err := filepath.Glob(filepath.Join(caseFolder, folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < least {
		t.Fatalf("expected at least %d cases in %s, found %d", least, folder, len(files))
	}
	for _, file := range files {
		t.Run(folder+"/"+strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			object, err := ReadObject(text)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			expect, _ := strings.CutPrefix(first, "# expect: ")
			judge(t, object, expect)
		})
	}
}

// within tells whether a field is the expected one or lies in it.
func within(field, expect string) bool {
	rest, found := strings.CutPrefix(field, expect)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// The API server refuses what the offline validator refuses, and names the same field.
func TestTheServerJudgesCustomResourcesAsTheCasesSay(t *testing.T) {
	s := newScenario(t, "custom-resources")
	eachCase(t, "valid", 15, func(t *testing.T, object CustomObject, _ string) {
		if err := CreateObject(s.ctx(), s.Client, object, true); err != nil {
			t.Errorf("expected the object to be taken, found %v", err)
		}
	})
	eachCase(t, "invalid", 40, func(t *testing.T, object CustomObject, expect string) {
		err := CreateObject(s.ctx(), s.Client, object, true)
		if !apierrors.IsInvalid(err) {
			t.Fatalf("expected the object to be refused at %s, found %v", expect, err)
		}
		details := err.(apierrors.APIStatus).Status().Details
		for _, cause := range details.Causes {
			if within(cause.Field, expect) {
				return
			}
		}
		t.Errorf("expected %s to be named, found %+v", expect, details.Causes)
	})
	eachCase(t, "invalid-strict", 3, func(t *testing.T, object CustomObject, expect string) {
		err := CreateObject(s.ctx(), s.Client, object, true)
		unknown := fmt.Sprintf("unknown field %q", expect)
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), unknown) {
			t.Errorf("expected %s, found %v", unknown, err)
		}
	})
}

// Readers of an object see what holds for it, not only what was written.
func TestTheServerFillsInDefaults(t *testing.T) {
	s := newScenario(t, "defaults")
	tests := []struct{ kind, written, stored string }{
		{"GPUQuota", "{reclaim: {crossLeafClassPreemption: {}}}",
			`{mode: Enforce, weight: 1, releasePolicy: OnTermination, reclaim: {maxEvictionsPerHour: 20, onShrink: Keep,
				crossLeafClassPreemption: {minRank: 3}}}`},
		{"GPUBudget", "{quotaRef: team-a, gpuHours: 1, rollover: {maxPercent: 25}}",
			`{quotaRef: team-a, gpuHours: 1, window: {type: Month, timeZone: UTC}, meterFrom: Bind, maxDebtPercent: 20,
				onExhaustion: Demote, rollover: {maxPercent: 25, maxWindows: 0}}`},
		{"GPUClass", "{}", "{maxEvictionsPerDay: 0, restartOverhead: 0s, assumedLossPercentile: 50}"},
		{"GPUPool", `{nodes: {}, windows: [{from: "2026-12-05T22:00:00Z", to: "2026-12-06T04:00:00Z"}]}`,
			`{nodes: {}, windows: [{from: "2026-12-05T22:00:00Z", to: "2026-12-06T04:00:00Z", drain: false}]}`},
		{"GPUPrice", "{perGpuHour: 1, currency: USD}", "{perGpuHour: 1, currency: USD, timeZone: UTC}"},
		// A policy overlays the server's configuration: what it does not say stays unsaid.
		{"GPUPolicy", "{placement: {}, sharing: {}}", "{placement: {}, sharing: {}}"},
	}
	for _, test := range tests {
		t.Run(test.kind, func(t *testing.T) {
			s := &Scenario{T: t, ControlPlane: s.ControlPlane}
			object, err := NewObject(test.kind, "", "defaults", "spec: "+test.written)
			s.must(err)
			text, err := RESTOf(s.Client).Post().AbsPath(object.resources()).Param("dryRun", "All").
				Body(object.JSON).Do(s.ctx()).Raw()
			s.must(err)
			var found struct {
				Spec map[string]any `json:"spec"`
			}
			s.must(json.Unmarshal(text, &found))
			var expected map[string]any
			s.must(yaml.Unmarshal([]byte(test.stored), &expected))
			if !reflect.DeepEqual(found.Spec, expected) {
				t.Errorf("expected %v, found %v", expected, found.Spec)
			}
		})
	}
}

// What an object says, what Tranche writes into its status, and what people then see.
type printed struct {
	kind    string
	name    string
	fields  string
	status  string
	columns []string
	row     Row
}

var printedObjects = []printed{
	{"GPUQuota", "print-quota", "spec: {lines: [{model: h200, nominal: {gpus: 8}}]}",
		`{observedGeneration: 1, nonPreemptible: "2", fairShare: "9.250", decayedUsage: "182.8",
		lines: [{model: h200, nominal: "8", used: {gpus: "7.500", qc: 135135000, qm: 135135000}, borrowed: "0",
			lent: "0.500", available: "4.500"}],
		pending: {workloads: 3, gpus: "12"},
		summary: {nominal: "8 h200", used: "7.5", borrowed: "0", lent: "0.5", pending: "12",
			budget: "388 / 1200, resets in 9d", ready: "True"},
		conditions: [{type: Ready, status: "True", reason: Accepted, message: in force, observedGeneration: 1,
			lastTransitionTime: "2026-01-31T23:30:00Z"}]}`,
		[]string{"Name", "PARENT", "NOMINAL", "USED", "BORROWED", "LENT", "PENDING", "BUDGET", "READY", "AGE"},
		Row{"Name": "print-quota", "PARENT": "", "NOMINAL": "8 h200", "USED": "7.5", "BORROWED": "0", "LENT": "0.5",
			"PENDING": "12", "BUDGET": "388 / 1200, resets in 9d", "READY": "True"}},
	{"GPUQuota", "print-child", "spec: {parent: print-quota}", "{nonPreemptible: \"0\"}",
		[]string{"Name", "PARENT", "NOMINAL", "USED", "BORROWED", "LENT", "PENDING", "BUDGET", "READY", "AGE"},
		Row{"PARENT": "print-quota"}},
	{"GPUBudget", "print-budget", "spec: {quotaRef: print-quota, gpuHours: 1000}",
		`{used: "612.417", committed: "38.000", carriedIn: "200", debtIn: "0", effective: "1200", percent: 51,
		windowStart: "2026-01-01T00:00:00Z", windowEnd: "2026-02-01T00:00:00Z", resets: 9d,
		exhaustsAt: "2026-01-20T08:00:00Z", state: OK, notifiedPercent: 50}`,
		[]string{"Name", "SCOPE", "WINDOW", "USED", "LIMIT", "PCT", "RESETS", "STATE", "POLICY"},
		Row{"SCOPE": "print-quota", "WINDOW": "Month", "USED": "612.417", "LIMIT": "1200", "PCT": "51",
			"RESETS": "9d", "STATE": "OK", "POLICY": "Demote"}},
	{"GPUBudget", "print-namespace", "spec: {namespace: print-prod, gpuHours: 10, window: {type: Week}}",
		"{percent: 0}",
		[]string{"Name", "SCOPE", "WINDOW", "USED", "LIMIT", "PCT", "RESETS", "STATE", "POLICY"},
		Row{"SCOPE": "print-prod", "WINDOW": "Week", "PCT": "0"}},
	{"GPUClass", "print-class", `spec: {rank: 2, preemptible: Always, minRuntime: 30m, chargeFactor: "1.0"}`,
		"{pods: 3}",
		[]string{"Name", "RANK", "PREEMPTIBLE", "MIN-RUNTIME", "FACTOR", "PODS"},
		Row{"RANK": "2", "PREEMPTIBLE": "Always", "MIN-RUNTIME": "30m", "FACTOR": "1.0", "PODS": "3"}},
	{"GPUPolicy", "print-policy",
		`spec: {placement: {strategy: Spread, filterWidth: 5}, selector: {namespaces: {matchLabels: {print: only}}}}`,
		`{conditions: [{type: Ready, status: "False", reason: Invalid, message: not in force,
			lastTransitionTime: "2026-01-31T23:30:00Z"}]}`,
		[]string{"Name", "STRATEGY", "WIDTH", "READY", "AGE"},
		Row{"STRATEGY": "Spread", "WIDTH": "5", "READY": "False"}},
	{"GPUPool", "print-pool", "spec: {nodes: {}, capacity: Spot}",
		`{conditions: [{type: Ready, status: "True", reason: Accepted, message: in force,
			lastTransitionTime: "2026-01-31T23:30:00Z"}]}`,
		[]string{"Name", "CAPACITY", "READY", "AGE"}, Row{"CAPACITY": "Spot", "READY": "True"}},
	{"GPUPrice", "print-price", `spec: {perGpuHour: "2.5", currency: USD, model: h200, capacity: Spot}`,
		`{conditions: [{type: Ready, status: "True", reason: Accepted, message: in force,
			lastTransitionTime: "2026-01-31T23:30:00Z"}]}`,
		[]string{"Name", "PER-GPU-HOUR", "CURRENCY", "MODEL", "POOL", "CAPACITY", "READY"},
		Row{"PER-GPU-HOUR": "2.5", "CURRENCY": "USD", "MODEL": "h200", "CAPACITY": "Spot", "READY": "True"}},
	{"GPUReclaim", "print-reclaim", "spec: {for: {namespace: prod, name: serve-0}, rule: R1, snapshot: 88123}",
		`{phase: Planned, cost: [0, 2, 0, 1, 0, 1920, 4, 0], search: {result: optimal, micros: 4100},
		victims: [{pod: b/train-2, gang: train, state: borrowed, lostGpuSeconds: 1920}],
		summary: {for: prod/serve-0, victims: 1 pod, lost: "1920"}}`,
		[]string{"Name", "FOR", "RULE", "VICTIMS", "LOST", "STATE", "RESULT", "AGE"},
		Row{"FOR": "prod/serve-0", "RULE": "R1", "VICTIMS": "1 pod", "LOST": "1920", "STATE": "Planned",
			"RESULT": "optimal"}},
	{"GPUQuotaView", "print-view", "",
		`{leaf: team-b, used: 6.0 h200, nominal: 4.0 h200, canBorrow: "2.0", atRisk: 1 pod, pending: "4.0",
		hoursLeft: "388 / 1200, resets in 9d", expectedStarts: [{pod: next,
		at: "2026-02-01T03:30:00Z", from: "2026-02-01T03:00:00Z", to: "2026-02-01T05:00:00Z"}],
		rightSizes: [{pod: web, ask: "nvidia.com/mig-1g.10gb: 1",
		text: "holds 1 GPU; in 9 days its busiest hour was 4 %: 1g.10gb would do, and leave 0.86 GPUs to others"}]}`,
		[]string{"Name", "LEAF", "USED", "NOMINAL", "CAN-BORROW", "AT-RISK", "PENDING", "HOURS-LEFT"},
		Row{"LEAF": "team-b", "USED": "6.0 h200", "NOMINAL": "4.0 h200", "CAN-BORROW": "2.0", "AT-RISK": "1 pod",
			"PENDING": "4.0", "HOURS-LEFT": "388 / 1200, resets in 9d"}},
}

// The shipped rights suffice to write a status, and the columns print it. The status is sent as a
// dry run: Tranche keeps its own in the objects.
func TestColumnsPrintWhatTheStatusSays(t *testing.T) {
	s := newScenario(t, "printed")
	tranche, err := s.ClientOf(trancheToken, "")
	s.must(err)
	for _, test := range printedObjects {
		t.Run(test.kind+"/"+test.name, func(t *testing.T) {
			s := &Scenario{T: t, ControlPlane: s.ControlPlane, namespace: s.namespace}
			object := s.apply(test.kind, test.name, test.fields)
			status, err := NewObject(test.kind, object.Namespace, test.name, "status: "+test.status)
			s.must(err)
			text, err := RESTOf(tranche).Patch(applyType).AbsPath(object.path(), "status").
				Param("dryRun", "All").Param("fieldManager", fieldManager).Param("force", "true").
				SetHeader("Accept", tableType).Body(status.JSON).Do(s.ctx()).Raw()
			s.must(err)
			columns, rows, err := readTable(text)
			s.must(err)
			if !slices.Equal(columns, test.columns) {
				t.Errorf("expected columns %q, found %q", test.columns, columns)
			}
			if len(rows) != 1 {
				t.Fatalf("expected one row, found %v", rows)
			}
			for column, cell := range test.row {
				if rows[0][column] != cell {
					t.Errorf("expected %s %q, found %q", column, cell, rows[0][column])
				}
			}
		})
	}
}

// apply creates or changes an object of group tranche.dev as an administrator; it goes when the
// test ends.
func (s *Scenario) apply(kind, name, fields string) CustomObject {
	s.Helper()
	namespace := ""
	if kind == "GPUQuotaView" {
		namespace = s.namespace
	}
	object, err := NewObject(kind, namespace, name, fields)
	s.must(err)
	s.must(RESTOf(s.Client).Patch(applyType).AbsPath(object.path()).
		Param("fieldManager", "admin").Param("fieldValidation", "Strict").
		Body(object.JSON).Do(s.ctx()).Error())
	s.Cleanup(func() {
		if err := DeleteObject(s.ctx(), s.Client, object); err != nil {
			s.Error(err)
		}
	})
	return object
}
