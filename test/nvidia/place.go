package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Place is the folder that run.sh prepares: the programs, and what they find in /sys, /proc, /mps
// and /var/lib/kubelet, which lie below it or are mounted from there.
type Place struct {
	folder  string
	tranche string
}

const (
	pluginFolder = "/var/lib/kubelet/device-plugins"
	mpsFolder    = "/mps"
	driverFolder = "/driver-root"
	patience     = time.Minute // mig-parted takes seconds, and more beside other work
)

func (p *Place) path(parts ...string) string {
	return filepath.Join(append([]string{p.folder}, parts...)...)
}

func emptied(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, entry.Name())))
	}
	return err
}

// SetUp makes the machine of a state: what NVML, sysfs and procfs tell of it.
func (p *Place) SetUp(state *State) error {
	for _, folder := range []string{p.path("state"), p.path("pci"), pluginFolder, mpsFolder,
		driverFolder} {
		if err := emptied(folder); err != nil {
			return err
		}
	}
	files := map[string][]byte{
		p.path("state", "node.json"):  state.Machine.NodeFile(),
		p.path("state", "matrix.txt"): []byte(Matrix(state.Machine.Links)),
		p.path("state", "paths.txt"):  []byte(Matrix(state.Machine.Paths)),
		p.path("state", "config"):     state.Config.File(),
		p.path("state", "machine"):    []byte("Test Machine\n"),
		// The plugin looks for the driver before it writes a CDI file.
		filepath.Join(driverFolder, "usr/lib64/libcuda.so."+state.Machine.Driver): nil,
		// The driver's list of access files: the plugin wants those of each instance.
		p.path("driver", "nvidia-caps", "mig-minors"): minorsOf(&state.Machine),
	}
	for i, gpu := range state.Machine.Gpus {
		for name, text := range pciFiles(i, &gpu) {
			files[p.path("pci", gpu.Bus, name)] = text
		}
	}
	for path, text := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return deviceNodes(len(state.Machine.Gpus))
}

// A CDI file names the device node of each GPU, which has to be there; 195 is NVIDIA's number.
func deviceNodes(gpus int) error {
	if err := os.MkdirAll(filepath.Join(driverFolder, "dev"), 0o755); err != nil {
		return err
	}
	const major = 195
	for i := range gpus {
		path := filepath.Join(driverFolder, "dev", fmt.Sprintf("nvidia%d", i))
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, major<<8|i); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// The fake NVML numbers an instance of a machine's file by its start, and its one compute
// instance 0.
func minorsOf(machine *Machine) []byte {
	var out bytes.Buffer
	out.WriteString("config 1\nmonitor 2\n")
	minor := 3
	for i, gpu := range machine.Gpus {
		for _, mig := range gpu.Migs {
			fmt.Fprintf(&out, "gpu%d/gi%d/access %d\n", i, mig.Start+1, minor)
			fmt.Fprintf(&out, "gpu%d/gi%d/ci0/access %d\n", i, mig.Start+1, minor+1)
			minor += 2
		}
	}
	return out.Bytes()
}

func pciFiles(index int, gpu *Gpu) map[string][]byte {
	return map[string][]byte{
		"vendor":    []byte("0x10de\n"),
		"device":    fmt.Appendf(nil, "0x%04x\n", boards[gpu.Board].DeviceID),
		"class":     []byte("0x030200\n"),
		"numa_node": fmt.Appendf(nil, "%d\n", numaOf(index)),
		"resource":  []byte("0x0 0x0 0x0\n"),
		"config":    make([]byte, 256),
	}
}

// Program is one that runs; what it writes goes to two files.
type Program struct {
	name    string
	out     string // its standard output
	log     string // its standard error
	command *exec.Cmd
	ended   chan error
}

// Start runs a program of the place on the machine there.
func (p *Place) Start(path string, args ...string) (*Program, error) {
	name := filepath.Base(path)
	program := &Program{name: name, out: p.path("state", name+".out"),
		log: p.path("state", name+".log"), ended: make(chan error, 1)}
	out, err := os.Create(program.out)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	log, err := os.Create(program.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	program.command = exec.Command(path, args...)
	program.command.Stdout, program.command.Stderr = out, log
	program.command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+p.path("lib"),
		"FAKE_NVML_NODE="+p.path("state", "node.json"),
		"PATH="+p.path("bin")+":"+os.Getenv("PATH"))
	// Nothing outlives the judge.
	program.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.command.Start(); err != nil {
		return nil, err
	}
	go func() { program.ended <- program.command.Wait() }()
	return program, nil
}

// Log is what it has written so far, its standard output first.
func (p *Program) Log() string {
	out, _ := os.ReadFile(p.out)
	log, _ := os.ReadFile(p.log)
	return string(out) + string(log)
}

// Said waits until the log has one of the words and returns which; an end of the program is "".
func (p *Program) Said(words ...string) (string, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		log := p.Log()
		for _, word := range words {
			if strings.Contains(log, word) {
				return word, nil
			}
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			return "", nil
		default:
		}
	}
	return "", fmt.Errorf("%s: expected one of %q within %v, found\n%s", p.name, words, patience,
		p.Log())
}

// Finish waits for the end of a program that ends by itself.
func (p *Program) Finish() error {
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", p.name, err, p.Log())
		}
		return nil
	case <-time.After(patience):
		p.Stop()
		return fmt.Errorf("%s: expected an end within %v\n%s", p.name, patience, p.Log())
	}
}

// Stop ends it, and returns when it has ended.
func (p *Program) Stop() {
	if p == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// Run runs a program to its end and returns its standard output; an error has all it wrote.
func (p *Place) Run(path string, args ...string) (string, error) {
	program, err := p.Start(path, args...)
	if err != nil {
		return "", err
	}
	if err := program.Finish(); err != nil {
		return "", err
	}
	out, err := os.ReadFile(program.out)
	return string(out), err
}

// Labels are those that GPU feature discovery gives the machine's node.
func (p *Place) Labels() (map[string]string, error) {
	output := p.path("state", "labels")
	_, err := p.Run(p.path("programs", "gpu-feature-discovery"), "--oneshot", "--no-timestamp",
		"--node-name", nodeName, "--namespace", "default", "--output-file", output,
		"--machine-type-file", p.path("state", "machine"), "--config-file", p.path("state", "config"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(output)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			return nil, fmt.Errorf("expected key=value from gpu-feature-discovery, found %q", line)
		}
		labels[key] = value
	}
	return labels, nil
}
