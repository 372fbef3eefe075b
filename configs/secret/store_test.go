package secret_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// world is a store with a clock and a log of its own.
type world struct {
	*secret.Store
	t   *testing.T
	mu  sync.Mutex
	at  time.Time
	log bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, at: time.Now()}
	w.Store = secret.NewStore(w.now, slog.New(slog.NewTextHandler(w, nil)))
	t.Cleanup(w.Close)
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// expect reads a place; "" expects an error, which shows no secret.
func (w *world) expect(when, place, want string) {
	w.t.Helper()
	got, err := w.Resolve(context.WithoutCancel(w.t.Context()), place)
	if got != want || (err == nil) != (want != "") {
		w.t.Errorf("%s: found %q, %v; expected %q", when, got, err, want)
	}
	if err != nil && strings.Contains(err.Error(), "SECRET") {
		w.t.Errorf("%s: it shows the secret: %v", when, err)
	}
}

// write writes a file as it is at the world's time.
func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, w.now(), w.now()); err != nil {
		w.t.Fatal(err)
	}
}

// TestFileThatChanges: a file is read again once it has changed and nobody writes it any more; until
// then, and while it is empty or away, the last value is used, for a bounded time.
func TestFileThatChanges(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "key")
	place := "file:" + path
	w.expect("before it is there", place, "")
	w.write(path, "SECRET-1\n")
	w.expect("at once", place, "SECRET-1")
	w.pass(time.Minute)
	w.expect("unchanged", place, "SECRET-1")
	w.write(path, "SEC")
	w.expect("half-written", place, "SECRET-1")
	w.pass(100 * time.Millisecond)
	w.write(path, "SECRET-2")
	w.expect("just written", place, "SECRET-1")
	w.pass(time.Second)
	w.expect("settled", place, "SECRET-2")
	w.pass(time.Minute)
	w.write(path, "")
	w.pass(time.Minute)
	for range 3 {
		w.expect("empty", place, "SECRET-2")
	}
	w.write(path, "SECRET-3")
	w.pass(time.Second)
	w.expect("written again", place, "SECRET-3")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w.expect("away", place, "SECRET-3")
	w.pass(5*time.Minute - time.Second)
	w.expect("away for long", place, "SECRET-3")
	w.pass(time.Second)
	w.expect("away for too long", place, "")
	w.write(path, "SECRET-4")
	w.expect("back", place, "SECRET-4")
	w.write(path, "SECRET-"+strings.Repeat("x", 64<<10))
	w.pass(time.Minute)
	w.expect("too long", place, "SECRET-4")
	// The clock of the file's disk is ahead of ours.
	if err := os.Chtimes(path, w.now(), w.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	w.expect("a change of another clock", place, "SECRET-4")
	log := w.logged()
	if strings.Contains(log, "SECRET") {
		t.Errorf("the log shows a secret:\n%s", log)
	}
	for text, want := range map[string]int{"a file gives no secret;": 3, "a file gives its secret again": 2, "for too long": 1} {
		if n := strings.Count(log, text); n != want {
			t.Errorf("%d lines with %q; expected %d:\n%s", n, text, want, log)
		}
	}
}

// TestFileWrittenInOnePlace: a change of the same length within the resolution of a file's times is
// found, since a file that was just written is read again.
func TestFileWrittenInOnePlace(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "key")
	w.write(path, "SECRET-1")
	w.expect("before", "file:"+path, "SECRET-1")
	w.write(path, "SECRET-2")
	w.expect("after", "file:"+path, "SECRET-2")
}

// TestMountedSecret: the symbolic links of a Kubernetes secret swap under load, and each reading
// gets the one value or the other.
func TestMountedSecret(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	swap := func(n int) {
		folder := filepath.Join(dir, fmt.Sprint("..", n))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		w.write(filepath.Join(folder, "key"), fmt.Sprint("SECRET-", n))
		if err := os.Symlink(fmt.Sprint("..", n), filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap(1)
	if err := os.Symlink(filepath.Join("..data", "key"), filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	place := "file:" + filepath.Join(dir, "key")
	w.pass(time.Minute)
	w.expect("before", place, "SECRET-1")
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := w.Resolve(context.Background(), place); got != "SECRET-1" && got != "SECRET-2" || err != nil {
					t.Errorf("%q, %v", got, err)
					return
				}
			}
		})
	}
	swap(2)
	w.pass(time.Second)
	w.expect("after", place, "SECRET-2")
	close(stop)
	readers.Wait()
}

// decode reads the value of a key as a place.
func decode(t *testing.T, dir, text string) (secret.Ref, error) {
	t.Helper()
	var report document.Report
	root, ok := document.ReadYAML(&report, filepath.Join(dir, "test.yaml"), []byte("at: "+text+"\n# end\n"))
	if !ok {
		t.Fatal(report.Err())
	}
	var r secret.Ref
	root.Object(document.Field("at", func(n document.Node) { secret.DecodeAny(n, "a test", &r) }))
	return r, report.Err()
}

// script is the place of a secret that a script of the shell prints.
func script(t *testing.T, text, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "print"), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := decode(t, dir, `{command: [sh, ./print, "arg-SECRET"]`+settings+`}`)
	if err != nil {
		t.Fatal(err)
	}
	if again := secret.Parse(r.String()); again != r {
		t.Errorf("%s is read as %s", r, again)
	}
	if _, err := r.Read(); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a command was run without a store, or its error shows it: %v", err)
	}
	return r.String()
}

func TestCommands(t *testing.T) {
	t.Setenv("CALLGATE_OWN", "SECRET-of-ours")
	t.Setenv("CALLGATE_GIVEN", "given")
	for name, c := range map[string]struct{ text, settings, want string }{
		"a secret":           {"echo SECRET-1", "", "SECRET-1"},
		"its arguments":      {`echo "$1"`, "", "arg-SECRET"},
		"nothing of ours":    {`echo "x$CALLGATE_OWN"`, "", "x"},
		"its variables":      {`echo "$A $B"`, `, env: {A: "1", B: "env:CALLGATE_GIVEN"}`, "1 given"},
		"a missing variable": {`echo "$A"`, `, env: {A: "env:CALLGATE_NONE"}`, ""},
		"noise":              {"echo SECRET >&2; echo one", "", "one"},
		"nothing":            {"exit 0", "", ""},
		"a failure":          {"echo SECRET; echo SECRET >&2; exit 3", "", ""},
		"too much":           {"while :; do echo SECRET-SECRET-SECRET-SECRET-SECRET-SECRET; done", "", ""},
		"a child":            {"sleep 1000 & echo one", "", "one"},
		"a hanging one":      {"echo SECRET; sleep 1000", `, timeout: 50ms`, ""},
		"a deaf one":         {"trap '' TERM; exec >&-; while :; do sleep 1; done", `, timeout: 50ms`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.expect(name, script(t, c.text, c.settings), c.want)
		})
	}
}

// TestCommandIsRunAgain: its output is used for the time that is stated, and while the command
// fails after that, for a bounded time more.
func TestCommandIsRunAgain(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	source, runs := filepath.Join(dir, "source"), filepath.Join(dir, "runs")
	w.write(source, "SECRET-1")
	place := script(t, fmt.Sprintf("cat %q && echo run >> %q", source, runs), ", refresh: 1m")
	count := func() int {
		data, _ := os.ReadFile(runs)
		return strings.Count(string(data), "run")
	}
	for range 3 {
		w.expect("at once", place, "SECRET-1")
	}
	if n := count(); n != 1 {
		t.Errorf("%d runs; expected one", n)
	}
	w.write(source, "SECRET-2")
	w.pass(time.Minute)
	w.eventually("after the refresh", place, "SECRET-2")
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	w.expect("while it fails", place, "SECRET-2")
	for end := time.Now().Add(30 * time.Second); !strings.Contains(w.logged(), "could not be renewed"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the failure was not logged")
		}
	}
	w.pass(5*time.Minute - time.Second)
	w.expect("while it fails for long", place, "SECRET-2")
	w.pass(time.Minute)
	w.expect("for too long", place, "")
	w.write(source, "SECRET-3")
	w.pass(time.Minute)
	w.eventually("again", place, "SECRET-3")
	if log := w.logged(); strings.Contains(log, "SECRET") || strings.Count(log, "could not be renewed") != 1 {
		t.Errorf("the log:\n%s", log)
	}
}

// eventually reads a place until it has a value.
func (w *world) eventually(when, place, want string) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if got, err := w.Resolve(context.WithoutCancel(w.t.Context()), place); got == want && err == nil {
			return
		} else if time.Now().After(end) {
			w.t.Fatalf("%s: found %q, %v; expected %q", when, got, err, want)
		}
	}
}

// TestCloseEndsCommands with their children, and all who wait for one are told.
func TestCloseEndsCommands(t *testing.T) {
	w := newWorld(t)
	place := script(t, "sleep 1000 & sleep 1000", "")
	got := make(chan error)
	go func() {
		_, err := w.Resolve(context.Background(), place)
		got <- err
	}()
	w.Close()
	if err := <-got; err == nil {
		t.Error("a command that was ended gave a secret")
	}
}

func TestFaultyCommands(t *testing.T) {
	for text, want := range map[string]string{
		`{command: []}`:                                  "found no command",
		`{command: vault}`:                               "found a string; expected a list",
		`{timeout: 1s}`:                                  "found no command",
		`{command: [vault], timeout: 2m}`:                "found 2m; expected 1ms to 1m",
		`{command: [vault], refresh: 10ms}`:              "found 10ms; expected 1s to 24h",
		`{command: [vault], refresh: soon}`:              "expected a duration",
		`{command: [vault], shell: true}`:                "unknown key",
		`{command: [vault], env: {A: {command: [cat]}}}`: "expected env:NAME or file:PATH",
		`[vault]`: "expected env:NAME or file:PATH",
	} {
		if _, err := decode(t, t.TempDir(), text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v; expected %q", text, err, want)
		}
	}
}
