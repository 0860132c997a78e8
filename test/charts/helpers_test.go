package charts

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// valuesSets returns the files of values/: name -> values.
func valuesSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("values", "*.yaml"))
	must(t, err)
	if len(files) < 7 {
		t.Fatalf("expected values sets in values/, found %v", files)
	}
	sets := map[string]map[string]any{}
	for _, file := range files {
		values, err := Values(file)
		must(t, err)
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	return sets
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	must(t, err)
	return values
}

func render(t *testing.T, values map[string]any) []Object {
	t.Helper()
	objects, _, err := Render(Folder, values, Options{})
	must(t, err)
	return objects
}

func find(objects []Object, name string) *Object {
	for i := range objects {
		if objects[i].Name() == name {
			return &objects[i]
		}
	}
	return nil
}

func names(objects []Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.Name())
	}
	return strings.Join(all, "\n")
}

// at reads a JSONPath; "" where the path leads nowhere. Maps and lists come as JSON.
func at(t *testing.T, object *Object, path string) string {
	t.Helper()
	reader := jsonpath.New(path).AllowMissingKeys(true)
	must(t, reader.Parse("{"+path+"}"))
	var text bytes.Buffer
	if err := reader.Execute(&text, object.Object); err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return text.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// golden compares with golden/NAME; UPDATE_GOLDEN=1 writes it, for a look at the difference.
func golden(t *testing.T, name, found string) {
	t.Helper()
	file := filepath.Join("golden", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		must(t, os.WriteFile(file, []byte(found), 0o644))
	}
	expected, err := os.ReadFile(file)
	must(t, err)
	if found != string(expected) {
		t.Errorf("%s: expected\n%s\nfound\n%s", file, expected, found)
	}
}

// configOf reads the text a ConfigMap holds under a key as an object.
func configOf(t *testing.T, object *Object, key string) *Object {
	t.Helper()
	text := at(t, object, ".data."+strings.ReplaceAll(key, ".", "\\."))
	return &Object{Unstructured: &unstructured.Unstructured{Object: parse(t, text)}}
}

// withFiles is the chart with these files in place of what lies in rules/ and dashboards/.
func withFiles(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(Folder)
	must(t, err)
	kept := loaded.Files[:0]
	for _, file := range loaded.Files {
		if !strings.HasPrefix(file.Name, "rules/") && !strings.HasPrefix(file.Name, "dashboards/") {
			kept = append(kept, file)
		}
	}
	loaded.Files = kept
	for name, text := range files {
		loaded.Files = append(loaded.Files, &chart.File{Name: name, Data: []byte(text)})
	}
	return loaded
}
