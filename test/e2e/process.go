package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Far more than one scheduling attempt and its retry take.
const soon = 30 * time.Second

// Process is one program of the control plane. It leads a process group of its own, and the kernel
// kills it when this test dies, so that nothing outlives a run.
type Process struct {
	Name string
	path string
	args []string
	env  []string // beside this test's own
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

func NewProcess(dir, name, path string, args ...string) *Process {
	return &Process{Name: name, path: path, args: args, log: filepath.Join(dir, name+".log")}
}

// Start appends to the log of earlier starts.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "=== %s %s\n", p.path, strings.Join(p.args, " "))
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(p.cmd, p.done)
	return nil
}

// Running tells whether the program was started and has not ended.
func (p *Process) Running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Kill ends the whole group at once, as a crash would.
func (p *Process) Kill() {
	if p.Running() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// Stop asks the program to end and returns its exit code; -1 when it had to be killed or was not
// running.
func (p *Process) Stop(grace time.Duration) int {
	if !p.Running() {
		return -1
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(grace):
		p.Kill()
		return -1
	}
}

// LogTail returns the last lines the program wrote.
func (p *Process) LogTail(lines int) string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}

// FreePorts returns different loopback ports nobody listened on a moment ago.
func FreePorts(count int) ([]int, error) {
	ports := make([]int, 0, count)
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// Held until all are chosen, so that no port comes twice.
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// CPU returns the processor time the program has used, in seconds; 0 when it is not running.
func (p *Process) CPU() float64 {
	if !p.Running() {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may have spaces; user and system time are the 14th and 15th field.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const ticksPerSecond = 100
	ticks := 0
	for _, field := range fields[11:13] {
		value, err := strconv.Atoi(field)
		if err != nil {
			return 0
		}
		ticks += value
	}
	return float64(ticks) / ticksPerSecond
}
