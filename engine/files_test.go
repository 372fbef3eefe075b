package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
)

// tree makes two roots side by side, and a secret beside them.
func tree(t testing.TB) (first, second, outside string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // else the one link of the tests is not the only one
	if err != nil {
		t.Fatal(err)
	}
	first, second, outside = filepath.Join(dir, "alpha"), filepath.Join(dir, "alphabet"), filepath.Join(dir, "outside")
	for path, content := range map[string]string{
		filepath.Join(first, "notes.md"):     "one\ntwo\nthree\n",
		filepath.Join(first, "docs", "a.md"): "last line\nhas no end",
		filepath.Join(first, "empty"):        "",
		filepath.Join(first, "latin"):        "gr\xfc\xdfe\nplain\n",
		filepath.Join(first, "binary"):       "a\x00b",
		filepath.Join(first, "long"):         strings.Repeat(strings.Repeat("x", 99)+"\n", 30_000),
		filepath.Join(first, "~"):            "tilde",
		filepath.Join(second, "b.md"):        "second root",
		filepath.Join(outside, "secret"):     "SECRET",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"inside":   "docs/a.md",
		"up":       "../outside/secret",
		"absolute": filepath.Join(outside, "secret"),
		"folder":   "../outside",
		"loop":     "loop",
		"dangling": "nothing",
	} {
		if err := os.Symlink(target, filepath.Join(first, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(first, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(first, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	return first, second, outside
}

func read(t testing.TB, e *engine.Engine, roots []string, path, lines string) (text string, got refusal.Code, err error) {
	t.Helper()
	given := map[string]any{"path": path}
	if lines != "" {
		given["lines"] = json.RawMessage(lines)
	}
	arguments, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	call := builtIn("files.read", string(arguments))
	call.Roots = roots
	result, err := e.Run(t.Context(), call)
	if got := code(t, err); got != "" {
		return "", got, err
	}
	var out struct{ Path, Text string }
	if err := json.Unmarshal(result.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out.Text, "", nil
}

func TestReadFiles(t *testing.T) {
	first, second, outside := tree(t)
	e := newEngine(t, engine.Options{})
	both := []string{first, second}
	for _, c := range []struct {
		roots       []string
		path, lines string
		text        string
		code        refusal.Code
	}{
		{both, "notes.md", "", "one\ntwo\nthree\n", ""},
		{both, "./docs/../notes.md", "", "one\ntwo\nthree\n", ""},
		{both, "docs//a.md", "", "last line\nhas no end", ""},
		{both, "empty", "", "", ""},
		{both, "~", "", "tilde", ""},
		{both, "inside", "", "last line\nhas no end", ""},
		{both, filepath.Join(first, "notes.md"), "", "one\ntwo\nthree\n", ""},
		{both, filepath.Join(second, "b.md"), "", "second root", ""},
		{[]string{filepath.Join(filepath.Dir(first), "link")}, filepath.Join(first, "notes.md"), "", "one\ntwo\nthree\n", ""},
		{[]string{filepath.Join(filepath.Dir(first), "link")}, "notes.md", "", "one\ntwo\nthree\n", ""},
		{both, "notes.md", "[1,1]", "one\n", ""},
		{both, "notes.md", "[2,3]", "two\nthree\n", ""},
		{both, "notes.md", "[2.0,2e0]", "two\n", ""},
		{both, "notes.md", "[3,1e300]", "three\n", ""},
		{both, "docs/a.md", "[2,9]", "has no end", ""},
		{both, "latin", "[2,2]", "plain\n", ""},
		{both, "long", "[29999,30000]", strings.Repeat(strings.Repeat("x", 99)+"\n", 2), ""},

		{both, "notes.md", "[4,5]", "", refusal.ToolFailed},
		{both, "empty", "[1,1]", "", refusal.ToolFailed},
		{both, "notes.md", "[0,1]", "", refusal.ToolFailed},
		{both, "notes.md", "[2,1]", "", refusal.ToolFailed},
		{both, "notes.md", "[1.5,2]", "", refusal.ToolFailed},
		{both, "notes.md", "[1]", "", refusal.ToolFailed},
		{both, "notes.md", "[1,2,3]", "", refusal.ToolFailed},
		{both, "notes.md", `"1-2"`, "", refusal.ToolFailed},
		{both, "long", "", "", refusal.ResultTooLarge},
		{both, "long", "[1,20000]", "", refusal.ResultTooLarge},
		{both, "latin", "", "", refusal.ToolFailed},
		{both, "binary", "", "", refusal.ToolFailed},
		{both, "absent.md", "", "", refusal.ToolFailed},
		{both, "notes.md/x", "", "", refusal.ToolFailed},
		{both, "docs", "", "", refusal.ToolFailed},
		{both, "", "", "", refusal.ToolFailed},
		{both, ".", "", "", refusal.ToolFailed},
		{both, "pipe", "", "", refusal.ToolFailed},
		{both, "loop", "", "", refusal.ToolFailed},
		{both, "dangling", "", "", refusal.ToolFailed},
		{both, "notes.md\x00", "", "", refusal.ToolFailed},
		{both, strings.Repeat("a/", 5000), "", "", refusal.ToolFailed},
		{both, strings.Repeat("a", 5000), "", "", refusal.ToolFailed},

		{both, "../outside/secret", "", "", refusal.ToolFailed},
		{both, "docs/../../outside/secret", "", "", refusal.ToolFailed},
		{both, "../alphabet/b.md", "", "", refusal.ToolFailed},
		{both, "up", "", "", refusal.ToolFailed},
		{both, "absolute", "", "", refusal.ToolFailed},
		{both, "folder/secret", "", "", refusal.ToolFailed},
		{both, "..", "", "", refusal.ToolFailed},
		{both, "%2e%2e/outside/secret", "", "", refusal.ToolFailed},
		{both, filepath.Join(outside, "secret"), "", "", refusal.ToolFailed},
		{both, first + "/../outside/secret", "", "", refusal.ToolFailed},
		{both, "/etc/passwd", "", "", refusal.ToolFailed},
		{both, "/proc/self/environ", "", "", refusal.ToolFailed},
		{[]string{first}, filepath.Join(second, "b.md"), "", "", refusal.ToolFailed},
		{nil, "notes.md", "", "", refusal.ToolFailed},
		{nil, "/etc/passwd", "", "", refusal.ToolFailed},
		{[]string{filepath.Join(first, "absent")}, "notes.md", "", "", refusal.ToolUnavailable},
	} {
		text, got, err := read(t, e, c.roots, c.path, c.lines)
		if got != c.code || text != c.text {
			t.Errorf("%.60q %s: got %q %.60q %v", c.path, c.lines, got, text, err)
		}
		if strings.HasPrefix(c.path, "../") || strings.HasPrefix(c.path, "/") && got == refusal.ToolFailed {
			expectSome(t, err, "not within the project's folder")
		}
		// Neither what was asked for nor where it is reaches an operator's log.
		expectNone(t, err, "SECRET", "secret", "notes", filepath.Dir(first))
	}
}

func TestReadFileNamesWhatItRead(t *testing.T) {
	first, _, _ := tree(t)
	e := newEngine(t, engine.Options{})
	call := builtIn("files.read", `{"path":"docs/../docs/a.md","lines":[1,7]}`)
	call.Roots = []string{first}
	result, got := run(t, e, call)
	if want := `{"path":"docs/a.md","text":"last line\nhas no end","lines":[1,2]}`; got != "" || string(result.Body) != want {
		t.Errorf("got %q %s", got, result.Body)
	}
}

func FuzzReadFileStaysInside(f *testing.F) {
	first, _, outside := tree(f)
	for _, path := range []string{"notes.md", "../outside/secret", "up", "folder/secret", "/etc/passwd", outside, first + "/../outside/secret", "\x00", "docs/./../.."} {
		f.Add(path)
	}
	e := engine.New(engine.Options{})
	f.Fuzz(func(t *testing.T, path string) {
		arguments, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Skip()
		}
		call := builtIn("files.read", string(arguments))
		call.Roots = []string{first}
		result, err := e.Run(t.Context(), call)
		if err != nil && code(t, err) == refusal.Internal {
			t.Errorf("%q: %v", path, err)
		}
		if strings.Contains(string(result.Body), "SECRET") || strings.Contains(string(result.Body), "root:") {
			t.Errorf("%q led out", path)
		}
	})
}
