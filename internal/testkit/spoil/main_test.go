package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const sample = `package main

import "os"

var words = "what " + "a string says"

type counter struct{ n int }

func (c *counter) add(by int) (sum int, err error) {
again:
	if by > 2 {
		by--
		goto again
	}
	c.n += by
	return c.n, nil
}

func (c *counter) say() {
	os.Stdout.WriteString(string(rune('0'+c.n)) + " " + words)
}

func main() {
	c := &counter{1}
	c.add(5)
	c.say()
}
`

// Each mutant of a program changes what it says, and none does while its number is not given.
func TestMutants(t *testing.T) {
	folder, overlay := t.TempDir(), t.TempDir()
	file := filepath.Join(folder, "main.go")
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.26\n", "main.go": sample} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{overlay, file, "by > 2", "by > 4", file, "string says", "mutant says", file, "c.n += by", "c.n -= by; c.n += by + 1", file, "'0'+", "'1'+"}); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(overlay, "sample")
	build := exec.Command("go", "build", "-overlay", filepath.Join(overlay, "overlay.json"), "-o", program, ".")
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for number, want := range map[string]string{"": "3 what a string says", "1": "5 what a string says", "2": "3 what a mutant says", "3": "2 what a string says", "4": "4 what a string says", "5": "3 what a string says"} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "CALLGATE_SPOILED="+number)
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("mutant %q says %q, %v, instead of %q", number, out, err, want)
		}
	}
}

// What is not there, or more than once, or where no mutant can be told from the code as it was, is an error.
func TestNoMutant(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"by > 3": "not there once", "c.n": "not there once", "struct{ n int }": "neither in a function nor in a string"} {
		if err := run([]string{t.TempDir(), file, text, "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v instead of %s", text, err, want)
		}
	}
}
