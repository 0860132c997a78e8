// Package charts renders the Helm chart as Helm does, by Helm's own library, and looks at what comes out.
package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const (
	// Release and Namespace are the names the documents use.
	Release   = "tranche"
	Namespace = "tranche-system"
	// KubeVersion is the oldest release the end-to-end tests run on.
	KubeVersion = "v1.34.10"
)

// Folder is where the chart lies, seen from this package's folder.
var Folder = filepath.Join("..", "..", "charts", "tranche")

// Object is one rendered object.
type Object struct {
	*unstructured.Unstructured
	Template string // below the chart's folder
	Text     string // as rendered, comments included
}

// Name is "Kind/name", or "Kind/namespace/name" outside the release's namespace.
func (o Object) Name() string {
	if ns := o.GetNamespace(); ns != "" && ns != Namespace {
		return o.GetKind() + "/" + ns + "/" + o.GetName()
	}
	return o.GetKind() + "/" + o.GetName()
}

// Options say what Helm would know of the cluster.
type Options struct {
	KubeVersion string                // KubeVersion if empty
	Client      engine.ClientProvider // for lookup; nil: there is no cluster
	Upgrade     bool
}

// Values reads a values file.
func Values(file string) (map[string]any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return chartutil.ReadValues(text)
}

// Render returns the objects of the chart in the order Helm installs them, and the notes.
func Render(folder string, values map[string]any, options Options) ([]Object, string, error) {
	loaded, err := loader.Load(folder)
	if err != nil {
		return nil, "", err
	}
	return renderChart(loaded, values, options)
}

func renderChart(loaded *chart.Chart, values map[string]any, options Options) ([]Object, string, error) {
	capabilities := *chartutil.DefaultCapabilities
	version := options.KubeVersion
	if version == "" {
		version = KubeVersion
	}
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, "", err
	}
	// Helm keeps the ending of the cluster's version, which parsing drops.
	capabilities.KubeVersion = *parsed
	capabilities.KubeVersion.Version = version
	if !chartutil.IsCompatibleRange(loaded.Metadata.KubeVersion, version) {
		return nil, "", fmt.Errorf("chart requires kubeVersion %s, found %s", loaded.Metadata.KubeVersion, version)
	}
	release := chartutil.ReleaseOptions{Name: Release, Namespace: Namespace, Revision: 1,
		IsInstall: !options.Upgrade, IsUpgrade: options.Upgrade}
	merged, err := chartutil.ToRenderValues(loaded, values, release, &capabilities)
	if err != nil {
		return nil, "", err
	}
	var files map[string]string
	if options.Client != nil {
		files, err = engine.RenderWithClientProvider(loaded, merged, options.Client)
	} else {
		files, err = engine.Render(loaded, merged)
	}
	if err != nil {
		return nil, "", err
	}
	return split(loaded.Name(), files)
}

var documentBreak = regexp.MustCompile(`(?m)^---\s*$`)

func split(chartName string, files map[string]string) ([]Object, string, error) {
	var objects []Object
	notes := ""
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		text := files[path]
		if strings.HasSuffix(path, "NOTES.txt") {
			notes = text
			continue
		}
		for _, document := range documentBreak.Split(text, -1) {
			fields, err := read(document)
			if err != nil {
				return nil, "", fmt.Errorf("%s: %w in:\n%s", path, err, document)
			}
			if len(fields) == 0 {
				continue
			}
			object := Object{&unstructured.Unstructured{Object: fields},
				strings.TrimPrefix(path, chartName+"/"), strings.Trim(document, "\n") + "\n"}
			if object.GetKind() == "" || object.GetName() == "" {
				return nil, "", fmt.Errorf("%s: expected kind and name, found none in:\n%s", path, document)
			}
			objects = append(objects, object)
		}
	}
	order := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		order[kind] = i + 1
	}
	slices.SortStableFunc(objects, func(a, b Object) int {
		return place(order, a.GetKind()) - place(order, b.GetKind())
	})
	return objects, notes, nil
}

// read keeps whole numbers whole, and refuses keys that come twice.
func read(document string) (map[string]any, error) {
	text, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if string(text) == "null" {
		return fields, nil
	}
	return fields, utiljson.Unmarshal(text, &fields)
}

// Kinds Helm does not know come last.
func place(order map[string]int, kind string) int {
	if at, known := order[kind]; known {
		return at
	}
	return len(order) + 1
}
