package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// kube-scheduler gives a node so long (DRASchedulerFilterTimeout).
const filterTimeout = 10 * time.Second

// The API server checks every object; here those of some states are, since that compiles each
// expression anew.
const statesACheck = 10

// Judge asks Kubernetes' own code.
type Judge struct {
	features structured.Features
	cache    *cel.Cache
	states   int
}

// NewJudge has the gates of the release.
func NewJudge() *Judge {
	features := defaultFeatures()
	return &Judge{features: features, cache: cel.NewCache(10000, celFeatures(features))}
}

// Judge compares the answers of a line with what Kubernetes says.
func (j *Judge) Judge(line *Line) ([]Verdict, error) {
	switch line.Kind {
	case "state":
		return j.judgeState(line)
	case "cel":
		return j.judgeExpression(line)
	case "resource":
		return judgeResource(line)
	}
	return nil, fmt.Errorf("expected a kind of line, found %q", line.Kind)
}

func (j *Judge) judgeState(line *Line) ([]Verdict, error) {
	setDefaults(line)
	if j.states++; j.states%statesACheck == 1 {
		if err := checkObjects(line); err != nil {
			return nil, err
		}
	}
	slices, err := tainted(line.Slices, line.Rules)
	if err != nil {
		return nil, err
	}
	allocator, err := structured.NewAllocator(context.Background(), j.features,
		allocatedState(line.Held), lister(line.Classes), slices, j.cache)
	if err != nil {
		return nil, err
	}
	if len(line.Answers) != len(line.Nodes) {
		return nil, fmt.Errorf("expected %d answers, found %d", len(line.Nodes), len(line.Answers))
	}
	var verdicts []Verdict
	for i := range line.Nodes {
		node, answer := &line.Nodes[i], &line.Answers[i]
		verdict := askAllocator(allocator, line, node, answer)
		if verdict.Outcome.isWrong() {
			verdict.Why = node.Name + ": " + verdict.Why
		}
		verdicts = append(verdicts, verdict)
		reaches, err := compareReach(line.Held, node, answer)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, reaches...)
	}
	return verdicts, nil
}

func askAllocator(allocator structured.Allocator, line *Line, node *corev1.Node, answer *Answer) Verdict {
	if answer.Kind == "unknown" {
		return Verdict{Unknown, answer.Why}
	}
	ctx, cancel := context.WithTimeout(context.Background(), filterTimeout)
	defer cancel()
	results, err := allocator.Allocate(ctx, node, pointers(line.Claims))
	if errors.Is(err, context.DeadlineExceeded) {
		return Verdict{Unknown, "the allocator did not end in time"}
	}
	return compare(answer, results, err)
}

func compare(answer *Answer, results []resourceapi.AllocationResult, err error) Verdict {
	real := "fits"
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode) || err == nil && results == nil:
		real = "no"
	case err != nil:
		real = "error"
	}
	why := fmt.Sprintf("Tranche says %s (%s), the allocator %s (%v)", answer.Kind, answer.Why, real, err)
	switch {
	case answer.Kind == "fits" && real == "fits":
		if difference := compareDevices(answer.Devices, results); difference != "" {
			return Verdict{WrongDevices, difference}
		}
		return Verdict{Fits, ""}
	case answer.Kind == "fits":
		return Verdict{WrongFits, why}
	case real == "fits":
		return Verdict{WrongNo, why}
	case answer.Kind != real:
		return Verdict{WrongError, why}
	case real == "error":
		return Verdict{Error, ""}
	}
	return Verdict{NoRoom, ""}
}

// Empty: the same.
func compareDevices(foreseen [][]Device, results []resourceapi.AllocationResult) string {
	if len(foreseen) != len(results) {
		return fmt.Sprintf("Tranche foresees %d claims, the allocator meets %d", len(foreseen), len(results))
	}
	for i := range results {
		got := results[i].Devices.Results
		if len(got) != len(foreseen[i]) {
			return fmt.Sprintf("claim %d: Tranche foresees %v, the allocator picks %v", i, foreseen[i], got)
		}
		for k := range got {
			if !sameDevice(&foreseen[i][k], &got[k]) {
				return fmt.Sprintf("claim %d, device %d: Tranche foresees %+v, the allocator picks %+v", i, k,
					foreseen[i][k], got[k])
			}
		}
	}
	return ""
}

func sameDevice(foreseen *Device, got *resourceapi.DeviceRequestAllocationResult) bool {
	if foreseen.Request != got.Request || foreseen.Driver != got.Driver || foreseen.Pool != got.Pool ||
		foreseen.Device != got.Device || foreseen.Admin != ptr.Deref(got.AdminAccess, false) ||
		foreseen.Shared != (got.ShareID != nil) || len(foreseen.Consumed) != len(got.ConsumedCapacity) {
		return false
	}
	for name, amount := range got.ConsumedCapacity {
		// Tranche gives every name its domain.
		full := string(name)
		if !strings.Contains(full, "/") {
			full = got.Driver + "/" + full
		}
		if parsed, err := resource.ParseQuantity(foreseen.Consumed[full]); err != nil ||
			parsed.Cmp(amount) != 0 {
			return false
		}
	}
	return true
}

// compareReach asks whether the node can use what claims hold, as kube-scheduler's filter does.
func compareReach(held []resourceapi.ResourceClaim, node *corev1.Node, answer *Answer) ([]Verdict, error) {
	if len(answer.Reaches) != len(held) {
		return nil, fmt.Errorf("expected %d words on reach, found %d", len(held), len(answer.Reaches))
	}
	var verdicts []Verdict
	for i := range held {
		reaches := true
		if selector := held[i].Status.Allocation.NodeSelector; selector != nil {
			compiled, err := nodeaffinity.NewNodeSelector(selector)
			if err != nil {
				return nil, err
			}
			reaches = compiled.Match(node)
		}
		if reaches != answer.Reaches[i] {
			outcome := WrongNo
			if answer.Reaches[i] {
				outcome = WrongFits
			}
			verdicts = append(verdicts, Verdict{outcome, "reach of claim " + held[i].Name})
		}
	}
	return verdicts, nil
}

// allocatedState gathers what claims hold as kube-scheduler's tracker of claims does.
func allocatedState(held []resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for i := range held {
		for _, result := range held[i].Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case ptr.Deref(result.AdminAccess, false):
			case result.ShareID == nil:
				state.AllocatedDevices.Insert(id)
			default:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(
						structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			}
		}
	}
	return state
}

type lister []resourceapi.DeviceClass

func (l lister) List() ([]*resourceapi.DeviceClass, error) { return pointers(l), nil }
func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	for i := range l {
		if l[i].Name == name {
			return &l[i], nil
		}
	}
	return nil, fmt.Errorf("no device class %s", name)
}

func pointers[T any](values []T) []*T {
	result := make([]*T, len(values))
	for i := range values {
		result[i] = &values[i]
	}
	return result
}
