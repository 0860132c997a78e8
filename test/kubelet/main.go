// Command kubelet judges what Tranche answered to pods by the code of the kubelet itself. It reads
// the lines of tranche-kubelet-cases from standard input and exits 1 where the two differ.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
)

// Gpu is a device as the plugin tells it.
type Gpu struct {
	ID   string
	Numa int // -1: the plugin names none
}

// Case is a line: the node as its kubelet knows it, the pod, and what Tranche answered.
type Case struct {
	Policy    string
	Scope     string
	NumaNodes []int
	Gpus      []Gpu
	Running   [][]int // positions in Gpus, a pod each
	Hidden    bool    // a taken GPU that the exporter's counts cannot show
	Pod       corev1.Pod
	Answer    string
}

func main() {
	log.SetFlags(0)
	states := flag.Int("states", 0, "how many lines each policy and scope must have; 0: any number")
	show := flag.Int("show", 5, "how many differences to print in full")
	flag.Parse()
	table, err := judgeAll(os.Stdin, *show)
	if err != nil {
		log.Fatal(err)
	}
	table.Print(os.Stdout)
	if !table.Agrees(*states) {
		os.Exit(1)
	}
}

func judgeAll(lines io.Reader, show int) (*Table, error) {
	folder, err := os.MkdirTemp(fastFolder(), "tranche-kubelet-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	judge := &Judge{folder: folder, kubelets: map[string]*Kubelet{}}
	defer judge.Close()
	table := NewTable()
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var c Case
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("line %d: %w", table.Lines()+1, err)
		}
		verdict, err := judge.Judge(&c)
		if err != nil {
			return nil, fmt.Errorf("%w, in %s", err, scanner.Bytes())
		}
		table.Add(&c, verdict)
		if verdict.Outcome.isWrong() && show > 0 {
			show--
			fmt.Printf("%s: %s\n  %s\n", verdict.Outcome, verdict.Why, scanner.Bytes())
		}
	}
	return table, scanner.Err()
}

// The device manager writes and syncs a file for each pod, which a disk would wait for.
func fastFolder() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return filepath.Clean(os.TempDir())
}
