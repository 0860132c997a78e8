package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const gpuDriver = "gpu.nvidia.com"

// A device as NVIDIA's driver publishes it: a whole GPU, or with a profile a MIG instance.
func draDevice(name, product, profile, parent, memory string) resourcev1.Device {
	text := func(value string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &value} }
	device := resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "uuid": text("GPU-" + name), "productName": text(product),
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
	}
	if profile != "" {
		device.Attributes["type"] = text("mig")
		device.Attributes["profile"] = text(profile)
		device.Attributes["parentUUID"] = text(parent)
	}
	return device
}

func (s *Scenario) publish(node string, devices ...resourcev1.Device) {
	s.Helper()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	_, err := s.Client.ResourceV1().ResourceSlices().Create(s.ctx(), slice, metav1.CreateOptions{})
	s.must(err)
	s.Cleanup(func() {
		_ = s.Client.ResourceV1().ResourceSlices().Delete(s.ctx(), slice.Name, metav1.DeleteOptions{})
	})
}

// The classes of NVIDIA's chart.
func (s *Scenario) nvidiaClasses() {
	s.Helper()
	for name, kind := range map[string]string{"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"} {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == '%s'", gpuDriver, gpuDriver, kind),
			}}}}}
		_, err := s.Client.ResourceV1().DeviceClasses().Create(s.ctx(), class, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			s.must(err)
		}
		s.Cleanup(func() { _ = s.Client.ResourceV1().DeviceClasses().Delete(s.ctx(), name, metav1.DeleteOptions{}) })
	}
}

func exactly(name, class string, selectors ...string) resourcev1.DeviceRequest {
	request := resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class}}
	for _, selector := range selectors {
		request.Exactly.Selectors = append(request.Exactly.Selectors,
			resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: selector}})
	}
	return request
}

func (s *Scenario) claim(name string, claim resourcev1.DeviceClaim) {
	s.Helper()
	object := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: claim}}
	_, err := s.Client.ResourceV1().ResourceClaims(s.namespace).Create(s.ctx(), object, metav1.CreateOptions{})
	s.must(err)
}

// endClaim does what the controllers do when the last pod of a claim is gone, and deletes the claim.
func (s *Scenario) endClaim(name string) {
	s.Helper()
	claims := s.Client.ResourceV1().ResourceClaims(s.namespace)
	patch := []byte(`{"metadata":{"finalizers":null},"status":{"reservedFor":null,"allocation":null}}`)
	_, err := claims.Patch(s.ctx(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	s.must(err)
	_, err = claims.Patch(s.ctx(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	s.must(err)
	s.must(claims.Delete(s.ctx(), name, metav1.DeleteOptions{}))
}

// A pod with one container for each claim, as users write it.
func (s *Scenario) claimPod(name string, claims ...string) *corev1.Pod {
	pod := WholeCards(0).Pod(name, map[string]string{fleetKey: s.fleet})
	delete(pod.Spec.Containers[0].Resources.Limits, "nvidia.com/gpu")
	for _, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: claim, ResourceClaimName: &claim})
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims,
			corev1.ResourceClaim{Name: claim})
	}
	return pod
}

type draClaim struct {
	Name      string   `json:"name"`
	Allocated bool     `json:"allocated"`
	Devices   []string `json:"devices"`
	GPUs      string   `json:"gpus"`
	Pods      []string `json:"pods"`
	Sharing   []string `json:"sharing"`
}

func (s *Scenario) claimsOf(pod string) (text string, claims []draClaim) {
	s.Helper()
	text = s.ask("/api/v1/explain/" + s.namespace + "/" + pod)
	var explained struct {
		Claims []draClaim `json:"claims"`
	}
	if err := json.Unmarshal([]byte(text), &explained); err != nil {
		return text, nil
	}
	return text, explained.Claims
}

// used waits until the quota says that so many GPUs are held.
func (s *Scenario) used(quota, gpus string) {
	s.Helper()
	// What a filter call keeps for claims may last its ten seconds (claimSeconds).
	s.eventually(statusLag+10*time.Second, func() string {
		var found struct {
			Quotas []struct {
				Name  string `json:"name"`
				Lines []struct {
					Model string          `json:"model"`
					Used  json.RawMessage `json:"usedGpus"`
				} `json:"lines"`
			} `json:"quotas"`
		}
		text := s.ask("/api/v1/quotas")
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return err.Error()
		}
		for _, each := range found.Quotas {
			for _, line := range each.Lines {
				if each.Name == quota && line.Model != "any" && strings.Trim(string(line.Used), `"`) == gpus {
					return ""
				}
			}
		}
		return fmt.Sprintf("expected %s to use %s GPUs, found %s", quota, gpus, text)
	})
}

func sharingConfig(parameters string) []resourcev1.DeviceClaimConfiguration {
	return []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: gpuDriver, Parameters: runtime.RawExtension{Raw: []byte(parameters)}}}}}
}

func gpuConfig(sharing string) string {
	return `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":` + sharing + `}`
}

// One claim of each kind the driver's users know: a GPU that two pods share, one with time slices, one
// with MPS, and two MIG instances of one card. All of it is the team's, counted once.
func TestClaimsAreChargedAndExplained(t *testing.T) {
	s := newScenario(t, "dra", newNode("dra-0", "dra", NodeSpec{}, nil, nil), newNode("dra-1", "dra", NodeSpec{}, nil, nil))
	s.labelNamespace("team", "dra")
	s.nvidiaClasses()
	const a100 = "NVIDIA A100-SXM4-40GB"
	s.publish("dra-0", draDevice("d0-gpu-0", a100, "", "", "40Gi"), draDevice("d0-gpu-1", a100, "", "", "40Gi"),
		draDevice("d0-gpu-2", a100, "", "", "40Gi"))
	s.publish("dra-1",
		draDevice("d1-mig-a0", a100, "3g.20gb", "GPU-a", "20096Mi"), draDevice("d1-mig-b0", a100, "1g.5gb", "GPU-b", "4864Mi"),
		draDevice("d1-mig-b1", a100, "1g.5gb", "GPU-b", "4864Mi"))
	s.apply("GPUQuota", "dra", "spec: {namespaceSelector: {matchLabels: {team: dra}}, "+
		"lines: [{model: a100-40gb, nominal: {gpus: \"3.4\"}}]}")
	s.eventually(statusLag, func() string { return s.missingReady(quotaPath, "dra", "True") })

	one := []resourcev1.DeviceRequest{exactly("gpu", "gpu.nvidia.com")}
	s.claim("shared", resourcev1.DeviceClaim{Requests: one})
	s.claim("sliced", resourcev1.DeviceClaim{Requests: one,
		Config: sharingConfig(gpuConfig(`{"strategy":"TimeSlicing","timeSlicingConfig":{"interval":"Long"}}`))})
	s.claim("mps", resourcev1.DeviceClaim{Requests: one, Config: sharingConfig(gpuConfig(
		`{"strategy":"MPS","mpsConfig":{"defaultActiveThreadPercentage":50,"defaultPinnedDeviceMemoryLimit":"10Gi"}}`))})
	small := "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
	parent := resourcev1.FullyQualifiedName("gpu.nvidia.com/parentUUID")
	s.claim("twins", resourcev1.DeviceClaim{
		Requests:    []resourcev1.DeviceRequest{exactly("left", "mig.nvidia.com", small), exactly("right", "mig.nvidia.com", small)},
		Constraints: []resourcev1.DeviceConstraint{{Requests: []string{"left", "right"}, MatchAttribute: &parent}},
	})

	for _, pod := range []*corev1.Pod{s.claimPod("share-1", "shared"), s.claimPod("share-2", "shared"),
		s.claimPod("slice", "sliced"), s.claimPod("mps", "mps"), s.claimPod("mig", "twins")} {
		s.createPod(pod)
	}
	for _, name := range []string{"share-1", "share-2", "slice", "mps"} {
		if node := s.running(name, soon).Spec.NodeName; node != "dra-0" {
			t.Errorf("expected %s on dra-0, found it on %s", name, node)
		}
	}
	if node := s.running("mig", soon).Spec.NodeName; node != "dra-1" {
		t.Errorf("expected mig on dra-1, found it on %s", node)
	}
	// Three whole GPUs, and two sevenths of compute, two eighths of memory.
	s.used("dra", "3.286")

	for pod, says := range map[string]string{
		"slice": "take turns on a GPU, with Long time slices", "mps": "at most 50% of the threads and 10240 MiB"} {
		s.eventually(statusLag, func() string {
			text, claims := s.claimsOf(pod)
			if len(claims) != 1 || len(claims[0].Sharing) != 1 || !strings.Contains(claims[0].Sharing[0], says) {
				return fmt.Sprintf("expected %s to say %q, found %s", pod, says, text)
			}
			return ""
		})
	}
	s.eventually(statusLag, func() string {
		text, claims := s.claimsOf("share-1")
		users := []string{s.namespace + "/share-1", s.namespace + "/share-2"}
		if len(claims) != 1 || claims[0].GPUs != "1.000" || !claims[0].Allocated {
			return "expected one claim of one GPU, found " + text
		}
		slices.Sort(claims[0].Pods)
		if !slices.Equal(claims[0].Pods, users) || len(claims[0].Devices) != 1 {
			return fmt.Sprintf("expected %v on one GPU, found %s", users, text)
		}
		return ""
	})
	text, claims := s.claimsOf("mig")
	if len(claims) != 1 || len(claims[0].Devices) != 2 || !strings.Contains(text, "1g.5gb") {
		t.Errorf("expected two instances of 1g.5gb, found %s", text)
	}

	// The 3g instance is free, but the team has only 0.114 GPUs left.
	s.claim("large", resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		exactly("mig", "mig.nvidia.com", "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'")}})
	s.createPod(s.claimPod("waits", "large"))
	s.waits("waits", "quota", 3*time.Second)
	s.explains("waits", "WaitingForQuota")
	s.delete("slice", 0)
	s.endClaim("sliced")
	s.running("waits", soon)
	s.used("dra", "2.75") // by memory: two cards, half of one, two eighths
	s.ledgerVerifies()
}

// templated has a template for claims of one GPU.
func (s *Scenario) templated(name string) {
	s.Helper()
	object := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{exactly("gpu", "gpu.nvidia.com")}}}}}
	_, err := s.Client.ResourceV1().ResourceClaimTemplates(s.namespace).Create(s.ctx(), object, metav1.CreateOptions{})
	s.must(err)
}

// A device that an administrator closes by a rule is nobody's until the rule goes, and Tranche says so.
func TestTaintRulesOfDevicesAreHeardOf(t *testing.T) {
	s := newScenario(t, "tainted", newNode("tainted-0", "tainted", NodeSpec{}, nil, nil))
	const pool, path = "tainted-0", "/apis/resource.k8s.io/v1/devicetaintrules"
	rule := `{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "tainted"}, "spec": {
		"deviceSelector": {"pool": "` + pool + `"}, "taint": {"key": "example.com/maintenance", "effect": "NoSchedule"}}}`
	err := RESTOf(s.Client).Post().AbsPath(path).SetHeader("Content-Type", "application/json").
		Body([]byte(rule)).Do(s.ctx()).Error()
	if apierrors.IsNotFound(err) {
		t.Skip("this Kubernetes serves no DeviceTaintRule of v1")
	}
	s.must(err)
	remove := func() error { return RESTOf(s.Client).Delete().AbsPath(path + "/tainted").Do(s.ctx()).Error() }
	s.Cleanup(func() { _ = remove() })
	s.nvidiaClasses()
	s.publish(pool, draDevice("t0-gpu-0", "NVIDIA A100-SXM4-40GB", "", "", "40Gi"))
	s.claim("one", resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("gpu", "gpu.nvidia.com")}})
	s.createPod(s.claimPod("waits", "one"))
	s.eventually(soon, func() string {
		text := s.ask("/api/v1/explain/" + s.namespace + "/waits")
		if strings.Contains(text, "1 with taints") {
			return ""
		}
		return "expected to be told of a device with taints, found " + text
	})
	s.must(remove())
	s.running("waits", soon)
}

// Two of four pods have borrowed the owner's GPUs by claims. They leave, their claims go with them, and
// only then does the owner's pod start, on GPUs of a node that no claim concerns.
func TestBorrowedClaimsAreTakenBack(t *testing.T) {
	c := newTeams(t, "claims", "h100", 2, 2, newNode("claims-dra", "dra", NodeSpec{}, nil, nil), StockNode("claims-0", 2))
	c.owner.nvidiaClasses()
	const h100 = "NVIDIA H100 80GB HBM3"
	var devices []resourcev1.Device
	for i := range 4 {
		devices = append(devices, draDevice(fmt.Sprintf("cl-gpu-%d", i), h100, "", "", "80Gi"))
	}
	c.owner.publish("claims-dra", devices...)
	controllers, err := c.owner.StartControllers(c.owner.ctx(), workloadControllers)
	c.owner.must(err)
	t.Cleanup(func() { controllers.Stop(15 * time.Second) })
	c.borrower.templated("one")
	template := "one"
	for i := range 4 {
		pod := c.borrower.claimPod(fmt.Sprintf("train-%d", i), "gpu")
		pod.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: &template}
		pod.Spec.PriorityClassName = training
		c.borrower.createPod(pod)
		c.borrower.running(pod.Name, soon)
	}
	c.owner.used(c.borrower.namespace, "4")

	c.owner.submit("serve", inference, WholeCards(2))
	done := c.owner.running("serve", planLag)
	if done.Spec.NodeName != "claims-0" {
		t.Errorf("expected serve on claims-0, found it on %s", done.Spec.NodeName)
	}
	reclaim := c.owner.reclaimIs("serve", "Done")
	if victims := reclaim.victims(c.borrower.namespace); reclaim.Spec.Rule != "R1" || len(victims) != 2 {
		t.Errorf("expected R1 to take two pods, found %+v", reclaim)
	}
	left := 0
	for _, pod := range c.borrower.list() {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			left++
		}
	}
	if left != 2 {
		t.Errorf("expected two pods of the borrower to stay, found %d", left)
	}
	c.owner.used(c.borrower.namespace, "2")
	c.owner.ledgerVerifies()
}
