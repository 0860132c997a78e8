package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	tableType    = "application/json;as=Table;g=meta.k8s.io;v=v1"
	applyType    = "application/apply-patch+yaml"
	fieldManager = "tranche"
)

// CustomObject is as much of an object that has no type here as a request's path needs, and its text.
type CustomObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	JSON              []byte `json:"-"`
}

// NewObject is an object of kind; `fields` are its members beside the head, as YAML in flow style:
// "spec: {weight: 2}".
func NewObject(kind, namespace, name, fields string) (CustomObject, error) {
	place := ""
	if namespace != "" {
		place = ", namespace: " + namespace
	}
	return ReadObject([]byte(fmt.Sprintf("{apiVersion: tranche.dev/v1alpha1, kind: %s, metadata: {name: %s%s}, %s}",
		kind, name, place, fields)))
}

// ReadObject reads one object written as kubectl reads it.
func ReadObject(text []byte) (CustomObject, error) {
	var object CustomObject
	var err error
	if object.JSON, err = yaml.YAMLToJSON(text); err == nil {
		err = json.Unmarshal(object.JSON, &object)
	}
	return object, err
}

// resources is the path of all objects of the kind in the object's namespace.
func (o CustomObject) resources() string {
	plural := strings.ToLower(o.Kind) + "s"
	switch o.Kind {
	case "GPUPolicy":
		plural = "gpupolicies"
	case "GPUClass", "KWOKNodeClass":
		plural = strings.ToLower(o.Kind) + "es"
	}
	if o.Namespace != "" {
		plural = "namespaces/" + o.Namespace + "/" + plural
	}
	if !strings.Contains(o.APIVersion, "/") {
		return "/api/" + o.APIVersion + "/" + plural
	}
	return "/apis/" + o.APIVersion + "/" + plural
}

func (o CustomObject) path() string { return o.resources() + "/" + o.Name }

// RESTOf sends requests that no typed client knows.
func RESTOf(client kubernetes.Interface) rest.Interface { return client.CoreV1().RESTClient() }

// InstallCRDs creates the shipped definitions and returns when their objects can be listed.
func InstallCRDs(ctx context.Context, client kubernetes.Interface, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: expected CustomResourceDefinitions, found none", folder)
	}
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	var lists []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		definition, err := ReadObject(text)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		err = RESTOf(client).Post().AbsPath(definitions).Param("fieldValidation", "Strict").
			Body(definition.JSON).Do(ctx).Error()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		var served struct {
			Spec struct {
				Group    string
				Versions []struct {
					Name    string
					Storage bool
				}
			}
		}
		if err := json.Unmarshal(definition.JSON, &served); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		plural, _, _ := strings.Cut(definition.Name, ".")
		for _, version := range served.Spec.Versions {
			if version.Storage {
				lists = append(lists, strings.Join([]string{"/apis", served.Spec.Group, version.Name, plural}, "/"))
			}
		}
	}
	for _, list := range lists {
		if err := waitServed(ctx, client, list, 30*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// A definition is served a moment after it was created.
func waitServed(ctx context.Context, client kubernetes.Interface, path string, limit time.Duration) error {
	var last error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if last = RESTOf(client).Get().AbsPath(path).Do(ctx).Error(); last == nil {
			return nil
		}
		if !apierrors.IsNotFound(last) && !apierrors.IsServiceUnavailable(last) {
			break
		}
	}
	return fmt.Errorf("expected %s to be served within %v, found %w", path, limit, last)
}

// CreateObject sends the object with unknown fields refused; dry runs change nothing.
func CreateObject(ctx context.Context, client kubernetes.Interface, object CustomObject, dryRun bool) error {
	request := RESTOf(client).Post().AbsPath(object.resources()).Param("fieldValidation", "Strict")
	if dryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	return request.Body(object.JSON).Do(ctx).Error()
}

// DeleteObject takes an object that is gone for done.
func DeleteObject(ctx context.Context, client kubernetes.Interface, object CustomObject) error {
	err := RESTOf(client).Delete().AbsPath(object.path()).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Row is one line of what kubectl get prints: column name -> cell; a cell without a value is "".
type Row map[string]string

// readTable returns the column names in order, and the rows.
func readTable(text []byte) ([]string, []Row, error) {
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, nil, err
	}
	if table.Kind != "Table" {
		return nil, nil, fmt.Errorf("expected a Table, found %q", table.Kind)
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	var rows []Row
	for _, line := range table.Rows {
		row := Row{}
		for i, cell := range line.Cells {
			if cell != nil {
				row[names[i]] = fmt.Sprint(cell)
			}
		}
		rows = append(rows, row)
	}
	return names, rows, nil
}
