package configs

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/testkit/configtest"
)

var update = flag.Bool("update", false, "write the errors found into the cases of testdata/faulty")

// inner is what an operator must not meet: names of Go, of its packages and of
// a panic.
var inner = regexp.MustCompile(`go-yaml|(^|[^.\w])yaml: |jsontext|panic|goroutine|nil pointer|0xc0[0-9a-f]{6,}|<nil>|%!|\*[a-z]+\.[A-Z]|\b(strconv|time|json|fs|os)\.[A-Z]|!![a-z]`)

// wanted is how a message says what was expected. The policy says that an element is there already.
var wanted = regexp.MustCompile(`expected|which is element \d+ already$`)

// TestFaulty loads every configuration of testdata/faulty: each has one fault,
// and the comment of its archive is the whole error.
func TestFaulty(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "faulty", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < configtest.LeastCases {
		t.Fatalf("found %d cases; expected at least %d", len(cases), configtest.LeastCases)
	}
	messages := map[string]string{}
	for i, path := range cases {
		if testing.Short() && i%3 != 0 {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			c, err := Load(configtest.Write(t, dir, configtest.Override(t, a)))
			if err == nil {
				t.Fatalf("it loads: %s", c)
			}
			if c != nil {
				t.Error("a configuration comes with the error")
			}
			found := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
			if *update {
				a.Comment = []byte(found + "\n")
				if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.TrimSuffix(string(a.Comment), "\n"); found != want {
				t.Errorf("found    %s\nexpected %s", found, want)
			}
			var faults document.Faults
			if !errors.As(err, &faults) || len(faults) != 1 {
				t.Fatalf("found %d faults; expected one:\n%s", len(faults), found)
			}
			readable(t, faults[0], found)
			pointed(t, faults[0])
			// Where it stands is left out: the words alone must tell it apart.
			text := filepath.Base(faults[0].File) + ": " + faults[0].Message
			if other, twice := messages[text]; twice {
				t.Errorf("its message is that of %s", other)
			}
			messages[text] = name
		})
	}
}

// readable holds what every fault owes its reader.
func readable(t *testing.T, f *document.Fault, output string) {
	t.Helper()
	if strings.ContainsAny(output, "\n\r\t\x00") || len(output) > 700 {
		t.Errorf("it is not one line of a bearable length: %q", output)
	}
	if !strings.Contains(output, "found") || !wanted.MatchString(output) {
		t.Errorf("it does not say what was found and what was expected: %s", f.Message)
	}
	if inner.MatchString(output) {
		t.Errorf("it speaks of the inside: %s", output)
	}
	if configtest.Secrets.MatchString(output) {
		t.Errorf("it repeats a secret: %s", output)
	}
	info, err := os.Stat(f.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !strings.Contains(f.Message, "found no such file") {
			t.Errorf("it names %s, which does not exist", f.File)
		}
		return
	case err != nil:
		t.Fatal(err)
	case info.IsDir() || info.Size() == 0:
		return // there is no line to name
	}
	data, err := os.ReadFile(f.File)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if f.Line < 1 || f.Line > len(lines) {
		t.Fatalf("it names line %d of %d", f.Line, len(lines))
	}
	if f.Column > len(lines[f.Line-1])+1 {
		t.Errorf("it names column %d of %q", f.Column, lines[f.Line-1])
	}
}
