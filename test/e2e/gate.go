package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const noSuchPod = "no-such-pod"

// What a gate can stand in the way of.
const (
	evictions = "eviction"
	bindings  = "binding"
)

// Gate is an admission webhook in the way of a namespace's evictions or bindings: it lets a number
// of them pass and answers the rest as a server in trouble would (503), until it is opened. So a
// test has its time between two of them.
type Gate struct {
	server *httptest.Server
	client kubernetes.Interface
	what   string
	name   string // of the webhook's configuration

	mutex   sync.Mutex
	left    int
	probed  bool
	refused int
}

// CloseGate returns when the gate is in force for the namespace; `pass` requests still go through.
func CloseGate(ctx context.Context, client kubernetes.Interface, what, namespace string, pass int) (*Gate, error) {
	gate := &Gate{client: client, what: what, name: what + "-gate-" + namespace, left: pass}
	gate.server = httptest.NewTLSServer(http.HandlerFunc(gate.answer))
	scope, fail, none := registrationv1.NamespacedScope, registrationv1.Fail, registrationv1.SideEffectClassNone
	hook := registrationv1.ValidatingWebhook{
		Name: what + ".e2e.tranche.dev",
		ClientConfig: registrationv1.WebhookClientConfig{URL: &gate.server.URL,
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gate.server.Certificate().Raw})},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Create},
			Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
				Resources: []string{"pods/" + what}, Scope: &scope},
		}},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		FailurePolicy:           &fail,
		SideEffects:             &none,
		AdmissionReviewVersions: []string{"v1"},
	}
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx,
		&registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: gate.name},
			Webhooks: []registrationv1.ValidatingWebhook{hook}}, metav1.CreateOptions{})
	if err == nil {
		err = gate.waitInForce(ctx, namespace)
	}
	if err != nil {
		return nil, errors.Join(err, gate.Remove(ctx))
	}
	return gate, nil
}

// The API server asks a webhook a moment after it was declared.
func (g *Gate) waitInForce(ctx context.Context, namespace string) error {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		g.probe(ctx, namespace)
		g.mutex.Lock()
		probed := g.probed
		g.mutex.Unlock()
		if probed {
			return nil
		}
	}
	return fmt.Errorf("expected the API server to ask %s, it did not", g.server.URL)
}

// Whether the gate is asked counts, not what becomes of the request.
func (g *Gate) probe(ctx context.Context, namespace string) {
	pod := metav1.ObjectMeta{Name: noSuchPod, Namespace: namespace}
	if g.what == evictions {
		_ = g.client.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: pod})
		return
	}
	_ = g.client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{ObjectMeta: pod,
		Target: corev1.ObjectReference{Kind: "Node", Name: "no-such-node"}}, metav1.CreateOptions{})
}

func (g *Gate) answer(writer http.ResponseWriter, request *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(writer, "expected an AdmissionReview", http.StatusBadRequest)
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if !g.passes(review.Request.Name) {
		response.Allowed = false
		response.Result = &metav1.Status{Code: http.StatusServiceUnavailable, Message: "the gate is closed"}
	}
	review.Request, review.Response = nil, response
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(review) // an answer that is lost counts as a refusal
}

func (g *Gate) passes(pod string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case pod == noSuchPod:
		g.probed = true
		return true
	case g.left > 0:
		g.left--
		return true
	}
	g.refused++
	return false
}

// Refused counts the requests that were turned away.
func (g *Gate) Refused() int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.refused
}

// Open lets everything pass from now on.
func (g *Gate) Open() { g.Let(1 << 30) }

// Let has so many requests pass from now on, and counts those turned away anew.
func (g *Gate) Let(pass int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.left, g.refused = pass, 0
}

// Remove takes the webhook away.
func (g *Gate) Remove(ctx context.Context) error {
	err := g.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, g.name,
		metav1.DeleteOptions{})
	g.server.Close()
	return err
}
