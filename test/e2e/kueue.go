package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	kueueModule    = "sigs.k8s.io/kueue"
	kueueNamespace = "kueue-system"
	kueueAccount   = "system:serviceaccount:" + kueueNamespace + ":controller-manager"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert"
)

// What the export tells its reader to write, and what a test machine needs beside it.
const kueueConfiguration = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %[1]s
health: {healthProbeBindAddress: "127.0.0.1:%[2]d"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %[3]d, certDir: %[4]s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true}
integrations: {frameworks: [batch/job, pod]}
resources: {excludeResourcePrefixes: [cpu, memory, ephemeral-storage]}
featureGates: {VisibilityOnDemand: false}
`

// ModuleFolder is where the source of a module lies, of the version that a folder of controlplane/ pins.
func ModuleFolder(pin, module string) (string, error) {
	command := exec.Command("go", "mod", "download", "-json", module)
	command.Dir = filepath.Join("controlplane", pin)
	text, err := command.Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(text, &found) != nil || found.Error != "" || err != nil {
		return "", fmt.Errorf("expected the module %s, found %s (%v)", module, text, err)
	}
	return found.Dir, nil
}

// KueueManifests is the folder of Kueue's own manifests.
func KueueManifests() (string, error) {
	folder, err := ModuleFolder("kueue", kueueModule)
	return filepath.Join(folder, "config", "components"), err
}

// StartKueue installs Kueue as its own manifests say, with its definitions, rights and webhooks, and
// returns when its manager is ready. The manager has the rights of its service account alone.
func (c *ControlPlane) StartKueue(ctx context.Context, programs string) (*Process, error) {
	manifests, err := KueueManifests()
	if err != nil {
		return nil, err
	}
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	if err := c.installKueue(ctx, manifests, ports[1]); err != nil {
		return nil, err
	}
	certificates := filepath.Join(c.dir, "kueue-certificates")
	if err := os.Mkdir(certificates, 0o700); err != nil {
		return nil, err
	}
	configuration := fmt.Sprintf(kueueConfiguration, kueueNamespace, ports[0], ports[1], certificates)
	kubeconfig := bytes.Replace(c.kubeconfig(c.apiURL, adminToken), []byte("{token:"),
		[]byte(`{as: "`+kueueAccount+`", token:`), 1)
	files := map[string][]byte{"kueue.yaml": []byte(configuration), "kueue.kubeconfig": kubeconfig}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	kueue := NewProcess(c.dir, "kueue", filepath.Join(programs, "kueue"), "--zap-log-level=2",
		"--config="+filepath.Join(c.dir, "kueue.yaml"), "--kubeconfig="+filepath.Join(c.dir, "kueue.kubeconfig"))
	if err := kueue.Start(); err != nil {
		return nil, err
	}
	c.processes = append(c.processes, kueue)
	if err := c.mountKueueSecret(ctx, certificates, 30*time.Second); err != nil {
		return nil, fmt.Errorf("%w; the end of Kueue's log:\n%s", err, kueue.LogTail(40))
	}
	return kueue, c.waitReady(ctx, kueue, fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[0]), "", 2*time.Minute)
}

func (c *ControlPlane) installKueue(ctx context.Context, manifests string, port int) error {
	definitions := filepath.Join(c.dir, "kueue-definitions")
	if err := writeKueueDefinitions(manifests, definitions, port); err != nil {
		return err
	}
	if err := InstallCRDs(ctx, c.Client, definitions); err != nil {
		return err
	}
	// The API server reaches what a Service of this type names at the port that is asked for.
	objects := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}\n---\n"+
		"{apiVersion: v1, kind: Service, metadata: {name: %[2]s, namespace: %[1]s}, "+
		"spec: {type: ExternalName, externalName: 127.0.0.1}}\n---\n"+
		"{apiVersion: v1, kind: Secret, metadata: {name: %[3]s, namespace: %[1]s}}\n",
		kueueNamespace, kueueService, kueueSecret)
	for _, name := range []string{"service_account", "role", "role_binding", "leader_election_role",
		"leader_election_role_binding", "manager_secrets_role", "manager_secrets_role_binding"} {
		text, err := os.ReadFile(filepath.Join(manifests, "rbac", name+".yaml"))
		if err != nil {
			return err
		}
		objects += "---\n" + strings.ReplaceAll(string(text), "namespace: system", "namespace: "+kueueNamespace)
	}
	webhooks, err := os.ReadFile(filepath.Join(manifests, "webhook", "manifests.yaml"))
	if err != nil {
		return err
	}
	for _, document := range documentBreak.Split(objects+"---\n"+string(webhooks), -1) {
		if err := c.createForKueue(ctx, document, port); err != nil {
			return err
		}
	}
	return nil
}

func (c *ControlPlane) createForKueue(ctx context.Context, document string, port int) error {
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(document), &object); err != nil || len(object) == 0 {
		return err
	}
	if webhooks, found := object["webhooks"].([]any); found {
		metadata := object["metadata"].(map[string]any)
		metadata["name"] = fmt.Sprint("kueue-", metadata["name"])
		for _, webhook := range webhooks {
			serveBehind(webhook.(map[string]any)["clientConfig"], port)
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	made, err := ReadObject(text)
	if err != nil {
		return err
	}
	if err := CreateObject(ctx, c.Client, made, false); err != nil {
		return fmt.Errorf("%s %s of Kueue: %w", made.Kind, made.Name, err)
	}
	return nil
}

// serveBehind has a webhook called through Kueue's Service.
func serveBehind(clientConfig any, port int) {
	service := clientConfig.(map[string]any)["service"].(map[string]any)
	service["namespace"], service["name"], service["port"] = kueueNamespace, kueueService, port
}

// The definitions, those of several versions with Kueue's conversion.
func writeKueueDefinitions(manifests, folder string, port int) error {
	conversions, err := kueueConversions(filepath.Join(manifests, "crd"), port)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(manifests, "crd", "bases", "*.yaml"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for _, file := range files {
		definition, err := readYaml(file)
		if err != nil {
			return err
		}
		name := definition["metadata"].(map[string]any)["name"].(string)
		if conversion := conversions[name]; conversion != nil {
			definition["spec"].(map[string]any)["conversion"] = conversion
		}
		text, err := yaml.Marshal(definition)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name+".yaml"), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// kueueConversions are the conversions that Kueue's manifests add, by name of the definition.
func kueueConversions(folder string, port int) (map[string]any, error) {
	list, err := readYaml(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	conversions := map[string]any{}
	for _, patch := range list["patches"].([]any) {
		added, err := readYaml(filepath.Join(folder, patch.(map[string]any)["path"].(string)))
		if err != nil {
			return nil, err
		}
		conversion := added["spec"].(map[string]any)["conversion"].(map[string]any)
		serveBehind(conversion["webhook"].(map[string]any)["clientConfig"], port)
		conversions[added["metadata"].(map[string]any)["name"].(string)] = conversion
	}
	return conversions, nil
}

func readYaml(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	return object, yaml.Unmarshal(text, &object)
}

// mountKueueSecret does what the kubelet does with the Secret into which Kueue writes its certificates.
func (c *ControlPlane) mountKueueSecret(ctx context.Context, folder string, limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		secret, err := c.Client.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 {
			continue
		}
		// Kueue waits for the certificate, which therefore comes last.
		for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} {
			if err := os.WriteFile(filepath.Join(folder, name), secret.Data[name], 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("expected certificates in the Secret %s within %v, found none", kueueSecret, limit)
}
