package charts

import (
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
)

const staticHead = "# Made of charts/tranche by charts/render.sh: change the chart, not this file.\n"

// What the static manifests differ in from the chart's defaults.
const staticValues = `
namespace: {create: true, enforce: ""}
probe: {enabled: true}
certificates:
  mode: Secrets
  secrets: {server: tranche-server-tls, client: tranche-client-tls, caBundle: CA_BUNDLE}
`

// Static returns the manifests for people without Helm: file name -> text. Comments stay, what only
// Helm needs does not, nor do its tests.
func Static(folder string) (map[string]string, error) {
	values, err := chartutil.ReadValues([]byte(staticValues))
	if err != nil {
		return nil, err
	}
	objects, _, err := Render(folder, values, Options{})
	if err != nil {
		return nil, err
	}
	// Not in what install.yaml configures: whoever takes it, switches it on.
	values["reservation"] = map[string]any{"enabled": true}
	more, _, err := Render(folder, values, Options{})
	if err != nil {
		return nil, err
	}
	for _, object := range more {
		if object.Template == "templates/reservation.yaml" {
			objects = append(objects, object)
		}
	}
	texts := map[string][]string{}
	for _, object := range objects {
		if strings.HasPrefix(object.Template, "templates/tests/") {
			continue
		}
		file := "install.yaml"
		switch filepath.Base(object.Template) {
		case "namespace.yaml", "rbac.yaml":
			file = "rbac.yaml"
		case "probe.yaml":
			file = "probe.yaml"
		case "webhook.yaml":
			file = "webhook.yaml"
		case "result-keys.yaml":
			file = "result-keys.yaml"
		case "reservation.yaml":
			file = "reservation.yaml"
		}
		texts[file] = append(texts[file], withoutHelm(object.Text))
	}
	files := map[string]string{}
	for file, documents := range texts {
		files[file] = staticHead + strings.Join(documents, "---\n")
	}
	return files, nil
}

func withoutHelm(text string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		switch strings.TrimSpace(line) {
		case "app.kubernetes.io/managed-by: Helm", "helm.sh/resource-policy: keep":
			continue
		}
		// An annotations field whose only entry went.
		if n := len(lines); n > 0 && strings.TrimSpace(lines[n-1]) == "annotations:" &&
			!strings.HasPrefix(line, lines[n-1][:strings.Index(lines[n-1], "a")]+" ") {
			lines = lines[:n-1]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
