package e2e

import (
	"strings"
	"testing"
)

const example = "# Title\n\n```sh\ntranche quota\n```\n\nIt prints:\n\n```text\nNAME  USED\nred   3\n```\n\n" +
	"```sh exit=1\nfalse\n```\n"

func TestStepsOfADocument(t *testing.T) {
	steps, err := ReadSteps(example)
	if err != nil || len(steps) != 2 {
		t.Fatalf("expected two steps, found %v, %v", steps, err)
	}
	if s := steps[0]; s.Line != 4 || s.Commands != "tranche quota\n" || s.Exit != 0 || s.ShownLine != 10 ||
		strings.Join(s.Shown, "|") != "NAME  USED|red   3" {
		t.Errorf("expected the first block with its answer, found %+v", s)
	}
	if s := steps[1]; s.Line != 15 || s.Exit != 1 || s.ShownLine != 0 {
		t.Errorf("expected a block that ends with 1 and prints nothing, found %+v", s)
	}
	for _, wrong := range []string{
		"```sh\nls\n",        // no end
		"```\nls\n```\n",     // of no kind: would not be run
		"```bash\nls\n```\n", // likewise
		"```text\na\n```\n",  // an answer to nothing
		"```sh\nls\n```\n```text\na\n```\n```text\nb\n```\n", // two answers
		"```sh exit=no\nls\n```\n",
	} {
		if steps, err := ReadSteps(wrong); err == nil {
			t.Errorf("expected %q to be refused, found %v", wrong, steps)
		}
	}
}

func TestDifferencesFromADocument(t *testing.T) {
	for _, c := range []struct {
		name, shown, printed string
		atShown, atPrinted   int
	}{
		{"the same", "a b\nc", "a b\nc", -1, -1},
		{"nothing", "", "", -1, -1},
		{"a wrong word", "a b\nc", "a b\nd", 1, 1},
		{"a wrong number", "language 4 GPUs", "language 5 GPUs", 0, 0},
		{"a line too few", "a\nb", "a", 1, 1},
		{"a line too many", "a", "a\nb", 1, 1},
		{"another order", "a\nb", "b\na", 0, 0},
		{"wider columns", "NAME  AGE", "NAME      AGE", -1, -1},
		{"ages", "train 3s", "train 1m12s", -1, -1},
		{"an age that is missing", "train 3s", "train", 0, 0},
		{"an age where a count was", "train 3", "train 3s", 0, 0},
		{"moments", "at 2026-11-28T01:02:03Z", "at 2027-01-01T10:20:30.5Z", -1, -1},
		{"ports", "http://127.0.0.1:8080/ui/", "http://127.0.0.1:40001/ui/", -1, -1},
		{"another host", "http://127.0.0.1:8080/ui/", "http://10.0.0.1:8080/ui/", 0, 0},
		{"suffixes of pods", "sweep-6d4cf56db6-x2x4z h100-a", "sweep-7b5c9d8f99-abcde h100-a", 0, 0},
		{"suffixes as Kubernetes draws them", "sweep-6d4cf56db6-x2x4z", "sweep-7b5c9d8f99-zq7vk", -1, -1},
		{"another Deployment", "sweep-6d4cf56db6-x2x4z", "serve-7b5c9d8f99-zq7vk", 0, 0},
		{"another node", "sweep-6d4cf56db6-x2x4z h100-a", "sweep-6d4cf56db6-x2x4z h100-b", 0, 0},
		{"lost work", "1 of 1 gone 3 GPU-s Done", "1 of 1 gone 14 GPU-s Done", -1, -1},
		{"any text", "uses ... of 8", "uses 3 of 8", -1, -1},
		{"any text, and a wrong end", "uses ... of 8", "uses 3 of 9", 0, 0},
		{"any lines", "a\n...\nd", "a\nb\nc\nd", -1, -1},
		{"no lines for any", "a\n...\nd", "a\nd", -1, -1},
		{"any lines, and a wrong end", "a\n...\nd", "a\nb\nc", 2, 3},
	} {
		atShown, atPrinted := Difference(strings.Split(c.shown, "\n"), strings.Split(c.printed, "\n"))
		if atShown != c.atShown || (c.name != "any lines, and a wrong end" && atPrinted != c.atPrinted) {
			t.Errorf("%s: expected a difference at %d, %d, found %d, %d", c.name, c.atShown, c.atPrinted, atShown, atPrinted)
		}
	}
}
