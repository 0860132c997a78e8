package main

import (
	"context"
	"fmt"
	"math/rand"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// judgeExpression holds one expression about one device against the CEL of the allocator. What CEL
// refuses to compile no object has, so nothing is compared. What costs too much is compared, though
// the API server refuses it.
func (j *Judge) judgeExpression(line *Line) ([]Verdict, error) {
	created := cel.GetCompiler(celFeatures(j.features)).CompileCELExpression(line.Expression,
		cel.Options{EnvType: ptr.To(environment.NewExpressions)})
	if created.Error != nil {
		return []Verdict{{Refused, ""}}, nil
	}
	stored := j.cache.GetOrCompile(line.Expression)
	if stored.Error != nil {
		return nil, fmt.Errorf("a new object may say what a stored one may not: %v", stored.Error)
	}
	matches, _, err := stored.DeviceMatches(context.Background(), cel.Device{
		Driver:                   line.Driver,
		AllowMultipleAllocations: line.Device.AllowMultipleAllocations,
		Attributes:               line.Device.Attributes,
		Capacity:                 line.Device.Capacity,
	})
	real := "no"
	if err != nil {
		real = "error"
	} else if matches {
		real = "yes"
	}
	why := fmt.Sprintf("%s: Tranche says %s (%s), Kubernetes %s (%v)", line.Expression,
		line.Answer.Kind, line.Answer.Why, real, err)
	return []Verdict{compareValues(&line.Answer, real, why)}, nil
}

func compareValues(answer *Answer, real, why string) Verdict {
	switch {
	case answer.Kind == "unknown":
		return Verdict{Unknown, answer.Why}
	case answer.Kind == real && real == "yes":
		return Verdict{Fits, ""}
	case answer.Kind == real && real == "no":
		return Verdict{NoRoom, ""}
	case answer.Kind == real:
		return Verdict{Error, ""}
	case answer.Kind == "yes":
		return Verdict{WrongFits, why}
	case answer.Kind == "no":
		return Verdict{WrongNo, why}
	}
	return Verdict{WrongError, why}
}

// judgeResource asks which class serves an extended resource, in whatever order classes are seen.
func judgeResource(line *Line) ([]Verdict, error) {
	real := servingClass(pointers(line.Classes), line.Resource, rand.Perm(len(line.Classes)))
	if real == "" && strings.HasPrefix(line.Resource, resourceapi.ResourceDeviceClassPrefix) {
		// A class that is seen behind a newer one of the same resource is not noted by its own name
		// either: so kube-scheduler may miss it until it changes. Here it is seen when it is created.
		created := rand.Perm(len(line.Classes))
		sort.Slice(created, func(i, j int) bool {
			one, other := &line.Classes[created[i]], &line.Classes[created[j]]
			if !one.CreationTimestamp.Equal(&other.CreationTimestamp) {
				return one.CreationTimestamp.Before(&other.CreationTimestamp)
			}
			return one.Name > other.Name
		})
		real = servingClass(pointers(line.Classes), line.Resource, created)
	}
	why := fmt.Sprintf("%s: Tranche says %q, Kubernetes %q", line.Resource, line.Answer.Class, real)
	switch {
	case real == line.Answer.Class && real == "":
		return []Verdict{{NoRoom, ""}}, nil
	case real == line.Answer.Class:
		return []Verdict{{Fits, ""}}, nil
	}
	return []Verdict{{WrongDevices, why}}, nil
}

// Empty: none.
func servingClass(classes []*resourceapi.DeviceClass, name string, order []int) string {
	shown := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	for _, i := range order {
		shown.OnAdd(classes[i], false)
	}
	if class := shown.GetDeviceClass(corev1.ResourceName(name)); class != nil {
		return class.Name
	}
	return ""
}
