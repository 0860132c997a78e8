package charts

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
	"tranche.dev/test/e2e"
)

// Server is the container of the chart's Deployment as a process.
type Server struct {
	process *e2e.Process
	mounts  map[string]string // mountPath -> folder
	https   string            // HOST:PORT
	pages   string            // likewise, of metrics, API and page
	roots   []byte
}

// mount does what a kubelet does with the volumes of a pod: ConfigMaps and Secrets as files.
func (s *Site) mount(pod *corev1.PodTemplateSpec) map[string]string {
	s.Helper()
	folders := map[string]string{}
	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		folder := filepath.Join(s.dir, pod.Spec.ServiceAccountName, filepath.Base(mount.MountPath))
		must(s.T, os.MkdirAll(folder, 0o700))
		folders[mount.MountPath] = folder
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		files := map[string][]byte{}
		switch volume := pod.Spec.Volumes[at]; {
		case volume.ConfigMap != nil:
			object, err := s.Client.CoreV1().ConfigMaps(Namespace).Get(s.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
			must(s.T, err)
			for name, text := range object.Data {
				files[name] = []byte(text)
			}
		case volume.Secret != nil:
			object, err := s.Client.CoreV1().Secrets(Namespace).Get(s.Context(), volume.Secret.SecretName, metav1.GetOptions{})
			must(s.T, err)
			files = object.Data
			if len(volume.Secret.Items) > 0 {
				files = map[string][]byte{}
				for _, item := range volume.Secret.Items {
					files[item.Path] = object.Data[item.Key]
				}
			}
		case volume.Projected != nil:
			token := volume.Projected.Sources[0].ServiceAccountToken
			made, err := s.Client.CoreV1().ServiceAccounts(Namespace).CreateToken(s.Context(), pod.Spec.ServiceAccountName,
				&authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: token.ExpirationSeconds}},
				metav1.CreateOptions{})
			must(s.T, err)
			files[token.Path] = []byte(made.Status.Token)
		}
		for name, text := range files {
			must(s.T, os.WriteFile(filepath.Join(folder, name), text, 0o600))
		}
	}
	return folders
}

// placed replaces what only exists inside a pod: paths, by folders, and addresses.
func placed(text string, mounts map[string]string, addresses map[string]string) string {
	for path, folder := range mounts {
		text = strings.ReplaceAll(text, path+"/", folder+"/")
	}
	for inside, outside := range addresses {
		text = strings.ReplaceAll(text, inside, outside)
	}
	return text
}

// kubeconfig holds a token of the account as a pod has it, and no other right.
func (s *Site) kubeconfig(account string) string {
	s.Helper()
	token, err := s.Client.CoreV1().ServiceAccounts(Namespace).CreateToken(s.Context(), account,
		&authentication.TokenRequest{}, metav1.CreateOptions{})
	must(s.T, err)
	file := filepath.Join(s.dir, account+".kubeconfig")
	must(s.T, os.WriteFile(file, s.Kubeconfig(token.Status.Token), 0o600))
	return file
}

func (s *Site) runServer(objects []Object, program string) *Server {
	s.Helper()
	pod := podTemplates(s.T, objects)["Deployment/tranche"]
	mounts := s.mount(pod)
	ports, err := e2e.FreePorts(4)
	must(s.T, err)
	address := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	addresses := map[string]string{"0.0.0.0:8443": address(0), "0.0.0.0:9090": address(1), "127.0.0.1:8080": address(2),
		"0.0.0.0:9091": address(3)}
	file := filepath.Join(mounts["/etc/tranche/config"], "tranche.yaml")
	text, err := os.ReadFile(file)
	must(s.T, err)
	must(s.T, os.WriteFile(file, []byte(placed(string(text), mounts, addresses)), 0o600))
	args := []string{}
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, placed(arg, mounts, nil))
	}
	process := e2e.NewProcess(s.dir, "tranche", program, append(args, "--kubeconfig", s.kubeconfig(pod.Spec.ServiceAccountName))...)
	must(s.T, s.ControlPlane.Run(s.Context(), process, "http://"+address(3)+"/readyz", 40*time.Second))
	roots, err := os.ReadFile(filepath.Join(mounts["/etc/tranche/tls"], "ca.crt"))
	must(s.T, err)
	return &Server{process, mounts, address(0), address(1), roots}
}

// helmTest runs what `helm test` runs, as the account it runs as, and returns what it says. The certificate is verified
// for the name that a pod would ask for.
func (s *Site) helmTest(objects []Object, server *Server, program string) (string, error) {
	s.Helper()
	pod := podTemplates(s.T, objects)["Pod/tranche-test"]
	mounts := s.mount(pod)
	const host = "tranche.tranche-system.svc"
	args := []string{}
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, placed(arg, mounts, map[string]string{host + ":9090": server.pages}))
	}
	said, err := exec.Command(program, append(args, "--tls-server-name="+host)...).CombinedOutput()
	return string(said), err
}

func (s *Site) runScheduler(objects []Object, server *Server) *e2e.Process {
	s.Helper()
	pod := podTemplates(s.T, objects)["Deployment/tranche-scheduler"]
	mounts := s.mount(pod)
	ports, err := e2e.FreePorts(1)
	must(s.T, err)
	port := fmt.Sprint(ports[0])
	file := filepath.Join(mounts["/etc/kube-scheduler"], "scheduler.yaml")
	text, err := os.ReadFile(file)
	must(s.T, err)
	// What DNS and the Service would do; the certificate is verified for the name that was dialled.
	const host = "tranche.tranche-system.svc"
	config := parse(s.T, placed(string(text), mounts, map[string]string{host + ":443": server.https}))
	extender := config["extenders"].([]any)[0].(map[string]any)
	extender["tlsConfig"].(map[string]any)["serverName"] = host
	config["clientConnection"].(map[string]any)["kubeconfig"] = s.kubeconfig(pod.Spec.ServiceAccountName)
	text, err = yaml.Marshal(config)
	must(s.T, err)
	must(s.T, os.WriteFile(file, text, 0o600))
	args := []string{"--bind-address=127.0.0.1"}
	for _, arg := range pod.Spec.Containers[0].Args {
		args = append(args, placed(strings.ReplaceAll(arg, "10259", port), mounts, nil))
	}
	program := filepath.Join(os.Getenv("CONTROLPLANE_BIN"), pod.Spec.Containers[0].Command[0])
	process := e2e.NewProcess(s.dir, "kube-scheduler", program, args...)
	must(s.T, s.ControlPlane.Run(s.Context(), process, "https://127.0.0.1:"+port+"/healthz", 30*time.Second))
	return process
}

// rejectsStrangers asks for a verb without a certificate, and with one of another CA.
func (s *Site) rejectsStrangers(server *Server) {
	s.Helper()
	other := render(s.T, nil)
	pair, err := tls.X509KeyPair(decoded(s.T, find(other, clientSecret), "tls.crt"),
		decoded(s.T, find(other, clientSecret), "tls.key"))
	must(s.T, err)
	for name, certificates := range map[string][]tls.Certificate{"no certificate": nil, "another CA": {pair}} {
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, Certificates: certificates}}}
		answer, err := client.Post("https://"+server.https+"/scheduler/filter", "application/json",
			bytes.NewReader([]byte(`{"Pod":{"metadata":{"name":"x"}},"NodeNames":[]}`)))
		if err != nil {
			continue // no connection at all
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			s.Errorf("%s: expected no answer from the verbs, found 200", name)
		}
	}
}

var (
	// klogHead has the number of the process in it, which may be 4031.
	klogHead = regexp.MustCompile(`^[IWEF][0-9]{4} [0-9:.]+ +[0-9]+ `)
	refused  = regexp.MustCompile(`(?i)forbidden|[ :]403([^0-9]|$)`)
)

// noRefusals looks for what an account without enough rights leaves in a log.
func noRefusals(t *testing.T, process *e2e.Process) {
	t.Helper()
	for _, line := range strings.Split(process.LogTail(100000), "\n") {
		if refused.MatchString(klogHead.ReplaceAllString(line, "")) {
			t.Errorf("%s: expected rights for everything it does, found %s", process.Name, line)
		}
	}
}
