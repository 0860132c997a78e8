package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
)

// What kube-scheduler waits for before it looks at a pod takes milliseconds.
const trackerTimeout = 10 * time.Second

// tainted are the slices as kube-scheduler sees them, with the taints of rules, in the order they came
// in: the order of a tracker's own list is that of its memory.
func tainted(all []resourceapi.ResourceSlice, rules []resourceapi.DeviceTaintRule) ([]*resourceapi.ResourceSlice, error) {
	if len(rules) == 0 {
		return pointers(all), nil
	}
	var objects []runtime.Object
	for i := range all {
		objects = append(objects, &all[i])
	}
	for i := range rules {
		objects = append(objects, &rules[i])
	}
	ctx, cancel := context.WithTimeout(context.Background(), trackerTimeout)
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	tracking, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules: true,
		SliceInformer:          factory.Resource().V1().ResourceSlices(),
		TaintInformer:          factory.Resource().V1().DeviceTaintRules(),
	})
	if err != nil {
		return nil, err
	}
	defer tracking.Stop()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	select {
	case <-tracking.HasSyncedChecker().Done():
	case <-ctx.Done():
		return nil, errors.New("the tracker of slices did not end in time")
	}
	patched, err := tracking.ListPatchedResourceSlices()
	if err != nil {
		return nil, err
	}
	if len(patched) != len(all) {
		return nil, fmt.Errorf("expected %d slices of the tracker, found %d", len(all), len(patched))
	}
	place := map[string]int{}
	for i := range all {
		place[all[i].Name] = i
	}
	slices.SortFunc(patched, func(a, b *resourceapi.ResourceSlice) int { return place[a.Name] - place[b.Name] })
	return patched, nil
}
