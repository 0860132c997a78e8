package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podOn(name, node, devices string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			allocationKey: fmt.Sprintf(`{"v":1,"containers":[{"name":"main","devices":[%s]}]}`, devices)}},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

// The audit is the judge of the scenarios: it must see every kind of double use.
func TestAuditReportsEveryKindOfDoubleUse(t *testing.T) {
	const (
		whole  = `{"index":0,"uuid":"GPU-a","milli":1000,"mib":80000,"mig":null}`
		half   = `{"index":0,"uuid":"GPU-a","milli":500,"mib":40000,"mig":null}`
		memory = `{"index":0,"uuid":"GPU-a","milli":0,"mib":50000,"mig":null}`
		slot   = `{"index":null,"slot":0,"uuid":null,"milli":1000,"mib":80000,"mig":null}`
		far    = `{"index":2,"uuid":"GPU-c","milli":1000,"mib":80000,"mig":null}`
		low    = `{"index":1,"uuid":"GPU-b","milli":0,"mib":10000,"mig":{"profile":"1g.10gb","start":0,"size":1}}`
		high   = `{"index":1,"uuid":"GPU-b","milli":0,"mib":10000,"mig":{"profile":"1g.10gb","start":6,"size":1}}`
		large  = `{"index":1,"uuid":"GPU-b","milli":0,"mib":40000,"mig":{"profile":"3g.40gb","start":0,"size":4}}`
		beside = `{"index":1,"uuid":"GPU-b","milli":500,"mib":1,"mig":null}`
	)
	nodes := []NodeSpec{{Name: "n", Cards: 2, CardMib: 80000, Mig: map[string]int{"1g.10gb": 2, "3g.40gb": 1}}}
	tests := []struct {
		name string
		pods []corev1.Pod
		want string // part of the only problem; empty: none
	}{
		{"two halves fill a card", []corev1.Pod{podOn("a", "n", half), podOn("b", "n", half)}, ""},
		{"a slot is a card", []corev1.Pod{podOn("a", "n", slot)}, ""},
		{"different MIG starts", []corev1.Pod{podOn("a", "n", low), podOn("b", "n", high)}, ""},
		{"a pod elsewhere does not count", []corev1.Pod{podOn("a", "n", whole), podOn("b", "", whole)}, ""},
		{"compute twice", []corev1.Pod{podOn("a", "n", half), podOn("b", "n", half),
			podOn("c", "n", strings.Replace(half, "40000", "0", 1))}, "1500 milli"},
		{"memory twice", []corev1.Pod{podOn("a", "n", memory), podOn("b", "n", memory)}, "100000 MiB"},
		{"a slot twice", []corev1.Pod{podOn("a", "n", slot),
			podOn("b", "n", strings.Replace(slot, "80000", "0", 1))}, "2000 milli"},
		{"a MIG unit twice", []corev1.Pod{podOn("a", "n", low), podOn("b", "n", large)}, "MIG unit 0"},
		{"more instances than advertised", []corev1.Pod{podOn("a", "n", low), podOn("b", "n", high),
			podOn("c", "n", strings.Replace(high, "6", "5", 1))}, "3 instances"},
		{"MIG beside a share", []corev1.Pod{podOn("a", "n", low), podOn("b", "n", beside)}, "holds MIG"},
		{"a card the node lacks", []corev1.Pod{podOn("a", "n", far)}, "below 2"},
		{"no annotation", []corev1.Pod{{Spec: corev1.PodSpec{NodeName: "n"}}}, "found none"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			problems := Audit(nodes, test.pods)
			switch {
			case test.want == "" && len(problems) > 0:
				t.Errorf("expected no problem, found %q", problems)
			case test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)):
				t.Errorf("expected one problem with %q, found %q", test.want, problems)
			}
		})
	}
}
