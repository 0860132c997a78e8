package charts

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

const (
	serverSecret = "Secret/tranche-server-tls"
	clientSecret = "Secret/tranche-client-tls"
)

// A cluster that has some objects, for Helm's lookup.
type cluster struct{ dynamic.Interface }

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	return c.Resource(group.WithResource(map[string]string{"Secret": "secrets"}[kind])), true, err
}

func clusterWith(objects ...*Object) cluster {
	var known []runtime.Object
	for _, object := range objects {
		known = append(known, object.Unstructured)
	}
	kinds := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "secrets"}: "SecretList"}
	return cluster{fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, known...)}
}

func decoded(t *testing.T, object *Object, key string) []byte {
	t.Helper()
	if object == nil {
		t.Fatalf("expected a Secret with %s, found none", key)
	}
	value, found, err := unstructured.NestedString(object.Object, "data", key)
	must(t, err)
	if !found {
		t.Fatalf("%s: expected the key %s, found none", object.Name(), key)
	}
	text, err := base64.StdEncoding.DecodeString(value)
	must(t, err)
	return text
}

func certificate(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("expected a certificate in PEM, found none")
	}
	read, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return read
}

// Both ends verify each other, the names are those that are dialled and let in, and the webhook trusts
// the same CA.
func TestGeneratedCertificates(t *testing.T) {
	objects := render(t, nil)
	checkCertificates(t, objects)
	host := at(t, configOf(t, find(objects, "ConfigMap/tranche-scheduler"), "scheduler.yaml"), ".extenders[0].urlPrefix")
	if host != "https://tranche.tranche-system.svc:443/scheduler" {
		t.Errorf("expected kube-scheduler to dial a name of the certificate, found %s", host)
	}
	if at(t, find(render(t, nil), serverSecret), ".data.ca\\.crt") == at(t, find(objects, serverSecret), ".data.ca\\.crt") {
		t.Error("expected another CA at another installation, found the same")
	}
}

func checkCertificates(t *testing.T, objects []Object) {
	t.Helper()
	server, client := find(objects, serverSecret), find(objects, clientSecret)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(decoded(t, server, "ca.crt")) {
		t.Fatal("expected a CA in ca.crt, found none")
	}
	if string(decoded(t, server, "ca.crt")) != string(decoded(t, client, "ca.crt")) {
		t.Error("expected one CA in both Secrets, found two")
	}
	for _, test := range []struct {
		object *Object
		host   string
		usage  x509.ExtKeyUsage
	}{
		{server, "tranche.tranche-system.svc", x509.ExtKeyUsageServerAuth},
		{server, "tranche.tranche-system.svc.cluster.local", x509.ExtKeyUsageServerAuth},
		{client, "tranche-scheduler.tranche-system.svc", x509.ExtKeyUsageClientAuth},
	} {
		read := certificate(t, decoded(t, test.object, "tls.crt"))
		_, err := read.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host,
			KeyUsages: []x509.ExtKeyUsage{test.usage}, CurrentTime: time.Now().Add(3640 * 24 * time.Hour)})
		if err != nil {
			t.Errorf("%s for %s: %v", test.object.Name(), test.host, err)
		}
		if _, err := tls.X509KeyPair(decoded(t, test.object, "tls.crt"), decoded(t, test.object, "tls.key")); err != nil {
			t.Errorf("%s: %v", test.object.Name(), err)
		}
	}
	if certificate(t, decoded(t, client, "tls.crt")).VerifyHostname("tranche.tranche-system.svc") == nil {
		t.Error("expected the client's certificate to be none of the server, found it valid for it")
	}
	bundle := at(t, find(objects, "MutatingWebhookConfiguration/tranche"), ".webhooks[1].clientConfig.caBundle")
	if bundle != base64.StdEncoding.EncodeToString(decoded(t, server, "ca.crt")) {
		t.Error("expected the webhook to trust the server's CA, found another")
	}
}

// An upgrade keeps both certificates; if one is gone both are made anew, since the CA's key is kept
// nowhere.
func TestGeneratedCertificatesAreKept(t *testing.T) {
	objects := render(t, nil)
	server, client := find(objects, serverSecret), find(objects, clientSecret)
	for _, test := range []struct {
		name string
		have []*Object
		kept bool
	}{
		{"both", []*Object{server, client}, true},
		{"server only", []*Object{server}, false},
		{"client only", []*Object{client}, false},
		{"none", nil, false},
	} {
		again, _, err := Render(Folder, nil, Options{Upgrade: true, Client: clusterWith(test.have...)})
		must(t, err)
		for _, secret := range []*Object{server, client} {
			found := at(t, find(again, secret.Name()), ".data") == at(t, secret, ".data")
			if found != test.kept {
				t.Errorf("%s: expected %s kept %v, found %v", test.name, secret.Name(), test.kept, found)
			}
		}
		const ca = ".spec.template.metadata.annotations.checksum/ca"
		same := at(t, find(again, "Deployment/tranche-scheduler"), ca) == at(t, find(objects, "Deployment/tranche-scheduler"), ca)
		if same == !test.kept {
			t.Errorf("%s: expected kube-scheduler to start anew %v, found %v", test.name, !test.kept, !same)
		}
	}
	broken := Object{Unstructured: server.DeepCopy()}
	unstructured.RemoveNestedField(broken.Object, "data", "ca.crt")
	if _, _, err := Render(Folder, nil, Options{Upgrade: true, Client: clusterWith(&broken, client)}); err == nil {
		t.Error("expected a Secret without ca.crt to be refused, found it taken")
	}
}

// What charts/certificates.sh makes for people without Helm is as good.
func TestCertificatesByHand(t *testing.T) {
	folder := t.TempDir()
	script := filepath.Join(Folder, "..", "certificates.sh")
	if text, err := exec.Command(script, folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	files := map[string]string{}
	for _, name := range []string{"secrets.yaml", "webhook.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		must(t, err)
		files[name] = string(text)
	}
	objects, _, err := split("tranche", files)
	must(t, err)
	checkCertificates(t, objects)
	if code := exec.Command(script).Run(); code == nil {
		t.Error("expected usage without a folder, found it taken")
	}
}
