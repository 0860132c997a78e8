// Command render does what `helm template` does, for whoever has Go and no Helm. Called by
// charts/render.sh, which says how.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chartutil"
	charts "tranche.dev/test/charts"
)

func main() {
	static := flag.Bool("static", false, "write the manifests in charts/ that are made of the chart")
	version := flag.String("kube-version", "", "version of the cluster")
	folder := flag.String("charts", "", "the folder charts/")
	flag.Parse()
	var err error
	if *static {
		err = writeStatic(*folder)
	} else {
		err = print(*folder, *version, flag.Args())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "render: %v\n", err)
		os.Exit(1)
	}
}

func writeStatic(folder string) error {
	files, err := charts.Static(filepath.Join(folder, "tranche"))
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func print(folder, version string, files []string) error {
	values := map[string]any{}
	for _, file := range files {
		more, err := charts.Values(file)
		if err != nil {
			return err
		}
		values = chartutil.CoalesceTables(more, values)
	}
	objects, _, err := charts.Render(filepath.Join(folder, "tranche"), values,
		charts.Options{KubeVersion: version})
	if err != nil {
		return err
	}
	for _, object := range objects {
		fmt.Printf("---\n%s", object.Text)
	}
	return nil
}
