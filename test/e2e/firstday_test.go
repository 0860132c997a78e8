package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shell is one bash, as a reader's terminal: what a step sets the next one has.
type shell struct {
	dir    string
	input  io.Writer
	output *bufio.Scanner
}

const endOfStep = "end of the step: "

func startShell(ctx context.Context, t *testing.T, folder string, environment ...string) *shell {
	t.Helper()
	command := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	command.Dir, command.Env = folder, append(os.Environ(), environment...)
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	return &shell{t.TempDir(), input, bufio.NewScanner(output)}
}

// run returns what the commands print, to either stream, how the last one ends, and how many failed.
func (s *shell) run(commands string) (lines []string, exit, failed int, err error) {
	file := filepath.Join(s.dir, "step.sh")
	if err = os.WriteFile(file, []byte(commands), 0o600); err != nil {
		return
	}
	_, err = fmt.Fprintf(s.input, "set -E; failed=0; trap 'failed=$((failed + 1))' ERR\n"+
		"source %q </dev/null 2>&1; exit=$?; trap - ERR; printf '\\n%s%%d %%d\\n' $exit $failed\n", file, endOfStep)
	if err != nil {
		return
	}
	for s.output.Scan() {
		line := s.output.Text()
		if strings.HasPrefix(line, endOfStep) {
			_, err = fmt.Sscanf(line, endOfStep+"%d %d", &exit, &failed)
			break
		}
		lines = append(lines, line)
	}
	// The mark begins on a line of its own, behind one that is empty where the output ended well.
	if count := len(lines); count > 0 && lines[count-1] == "" {
		lines = lines[:count-1]
	}
	if err == nil && s.output.Err() != nil {
		err = s.output.Err()
	}
	return
}

// TestFirstDay runs scheduler/docs/first-day.md to the letter: every block of commands, in order, in
// one shell, and compares what it prints with what the document shows.
func TestFirstDay(t *testing.T) {
	if shared == nil {
		t.Skip("needs a control plane")
	}
	if os.Getenv("KWOK_BIN") == "" {
		t.Skip("needs KWOK and kubectl: set KWOK_BIN to the folder that controlplane/build.sh kwok prints")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	document := filepath.Join("scheduler", "docs", "first-day.md")
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := ReadSteps(string(text))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	const fewest = 10
	if len(steps) < fewest {
		t.Fatalf("%s: expected at least %d steps, found %d", document, fewest, len(steps))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	// Apart from a cluster that a person has begun in the same tree.
	own := "FIRSTDAY_DIR=" + filepath.Join(t.TempDir(), "firstday")
	programs := make([]string, 0, 3)
	for _, name := range []string{"TRANCHE_BIN", "CONTROLPLANE_BIN", "KWOK_BIN"} {
		path, err := filepath.Abs(os.Getenv(name))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, name+"="+path)
	}
	t.Cleanup(func() {
		stop := exec.Command("test/e2e/firstday/cluster.sh", "stop")
		stop.Dir, stop.Env = root, append(os.Environ(), own)
		_ = stop.Run() // the document has stopped it already, unless it failed
	})
	terminal := startShell(ctx, t, root, append(programs, own)...)
	for _, step := range steps {
		if !follow(t, terminal, document, step) {
			return // what comes after rests on it
		}
	}
}

// follow runs a step and tells whether it went as the document says.
func follow(t *testing.T, terminal *shell, document string, step Step) bool {
	t.Helper()
	began := time.Now()
	printed, exit, failed, err := terminal.run(step.Commands)
	t.Logf("%s:%d: %.1f s", document, step.Line, time.Since(began).Seconds())
	if err != nil {
		t.Errorf("%s:%d: the shell is gone: %v", document, step.Line, err)
		return false
	}
	at, instead := Difference(step.Shown, printed)
	if at >= 0 {
		line := step.ShownLine + at
		if step.ShownLine == 0 {
			line = step.Line
		}
		t.Errorf("%s:%d: expected %s, found %s\n--- commands\n%s--- all that was printed\n%s", document, line,
			lineAt(step.Shown, at), lineAt(printed, instead), step.Commands, strings.Join(printed, "\n"))
		return false
	}
	if exit != step.Exit || (step.Exit == 0 && failed > 0) {
		t.Errorf("%s:%d: expected the commands to end with %d, found %d, %d of them failed\n%s", document, step.Line,
			step.Exit, exit, failed, strings.Join(printed, "\n"))
		return false
	}
	return true
}

func lineAt(lines []string, at int) string {
	if at >= len(lines) {
		return "no further line"
	}
	return fmt.Sprintf("%q", lines[at])
}
