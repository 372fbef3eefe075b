// Package deploy_test checks the files that deployments are made of, as far as
// that needs no container engine: that what they name is there, that the commands
// in them are commands, and that their configurations load.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// linked is what the linker is told of a release; TestVersionIsLinked compares it with .goreleaser.yaml.
const linked = "-s -w -X main.linkedVersion=1.2.3 -X main.linkedCommit=abcdef -X main.linkedDate=2026-11-24T10:00:00Z"

// programs is the folder of the programs, built once for all tests.
var programs string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == asNPX {
		os.Exit(serveFiles())
	}
	os.Exit(withPrograms(m))
}

func withPrograms(m *testing.M) int {
	dir, err := os.MkdirTemp("", "callgate-deploy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, build := range [][]string{
		{"-C", "..", "-tags", "nomsgpack", "-ldflags", linked, "-o", dir, "./cmd/callgate"},
		{"-C", "../tools", "-ldflags", "-s -w", "-o", dir, "./sampletool", "./samplemodel"},
	} {
		if output, err := exec.Command("go", append([]string{"build"}, build...)...).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "the programs cannot be built: %v\n%s", err, output)
			return 1
		}
	}
	programs = dir
	return m.Run()
}

// outcome is how a program ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// callgate runs the program in a folder of its own.
func callgate(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	c := exec.CommandContext(t.Context(), filepath.Join(programs, "callgate"), args...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = t.TempDir(), strings.NewReader(stdin), &stdout, &stderr
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// loads checks that a configuration loads, and without a warning.
func loads(t *testing.T, main string) {
	t.Helper()
	// Without them it loads with a warning.
	for name, value := range map[string]string{"ANTHROPIC_API_KEY": "set", "OPENAI_API_KEY": "set", "REDIS_URL": "redis://127.0.0.1:6379"} {
		t.Setenv(name, value)
	}
	if o := callgate(t, "", "config", "check", "--config", main); o.code != 0 || o.stderr != "" {
		t.Errorf("%s does not load cleanly: exit code %d\n%s", main, o.code, o.stderr)
	}
}

// readYAML reads every document of a file into a T.
func readYAML[T any](t *testing.T, path string) []T {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var v T
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds nothing", path)
	}
	return all
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	a, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
