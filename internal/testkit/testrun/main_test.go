package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// project writes a module of one package with some tests.
func project(t *testing.T, tests string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module sample\n\ngo 1.26\n",
		"one_test.go": "package sample\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n" + tests,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func ran(t *testing.T, dir string) (ok bool, out string) {
	t.Helper()
	return ranFor(t, dir, "5m")
}

func ranFor(t *testing.T, dir, timeout string) (ok bool, out string) {
	t.Helper()
	var to strings.Builder
	ok, err := run(dir, filepath.Join(dir, "left-out"), []string{"-vet=off", "-timeout", timeout, "./..."}, &to)
	if err != nil {
		t.Fatal(err)
	}
	return ok, to.String()
}

// inTurn fails a test where some expressions do not match one after the other.
func inTurn(t *testing.T, out string, expressions ...string) {
	t.Helper()
	if !regexp.MustCompile("(?s)" + strings.Join(expressions, ".*")).MatchString(out) {
		t.Errorf("expected %q, one after the other, in:\n%s", expressions, out)
	}
}

// A test that fails and passes alone then fails the run, and both outcomes are shown.
func TestUnsteady(t *testing.T) {
	ok, out := ran(t, project(t, `
func TestUnsteady(t *testing.T) {
	if _, err := os.Stat("marker"); err != nil {
		os.WriteFile("marker", nil, 0o600)
		t.Error("the first outcome")
	}
	t.Log("the second outcome")
}

func TestPasses(t *testing.T) { t.Log("of no interest") }
`))
	if ok || strings.Contains(out, "of no interest") {
		t.Errorf("the run passed, or says too much:\n%s", out)
	}
	inTurn(t, out, "the first outcome", "--- FAIL: TestUnsteady", "FAIL\tsample", "Once more, alone: sample TestUnsteady", "the second outcome", "--- PASS: TestUnsteady", "UNSTEADY: sample TestUnsteady")
}

// A test that fails twice is named so, with its subtests' output and no other's.
func TestFailedTwice(t *testing.T) {
	ok, out := ran(t, project(t, `
func TestFails(t *testing.T) {
	t.Run("good", func(*testing.T) {})
	t.Run("bad", func(t *testing.T) { t.Error("each time") })
}
`))
	if ok || strings.Contains(out, "UNSTEADY") {
		t.Errorf("the run passed:\n%s", out)
	}
	inTurn(t, out, "each time", "--- FAIL: TestFails/bad", "Once more", "each time", "FAILED TWICE: sample TestFails\n")
}

// A failure without a failing test is printed, and fails the run.
func TestOtherFailures(t *testing.T) {
	for name, c := range map[string]struct{ tests, visible string }{
		"no build": {"func TestX(t *testing.T) { return 1 }\n", "too many return values"},
		"an end":   {"func TestMain(m *testing.M) { m.Run(); println(\"something is left\"); os.Exit(1) }\n\nfunc TestX(t *testing.T) {}\n", "something is left"},
		"a panic":  {"func TestX(t *testing.T) { panic(\"a panic\") }\n", "a panic"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, out := ran(t, project(t, c.tests))
			if ok || !strings.Contains(out, c.visible) || strings.Contains(out, "UNSTEADY") {
				t.Errorf("the run passed, or says too little:\n%s", out)
			}
		})
	}
}

// A test that does not end in time is named, with the stacks of that moment.
func TestDidNotEnd(t *testing.T) {
	ok, out := ranFor(t, project(t, `
func TestEnds(t *testing.T) {}

func TestHangs(t *testing.T) { t.Log("of the test"); waitForNothing() }

func waitForNothing() { <-make(chan int) }
`), "1s")
	if ok || strings.Contains(out, "TestEnds") {
		t.Errorf("the run passed, or says too much:\n%s", out)
	}
	inTurn(t, out, "DID NOT END: sample TestHangs", "test timed out after 1s", "waitForNothing", "FAIL\tsample")
}

// A run that passes says what it left out, each reason once, and writes down each test once.
func TestLeftOut(t *testing.T) {
	dir := project(t, `
func TestA(t *testing.T) { t.Skip("skipped: there is no printer") }
func TestB(t *testing.T) { for range 2 { t.Run("page", func(t *testing.T) { t.Skipf("there is no printer") }) } }
func TestC(t *testing.T) { t.Log("left out: the long form"); t.Log("left out: the long form") }
func TestD(t *testing.T) { t.Log("all of it") }
`)
	ok, out := ran(t, dir)
	if !ok || strings.Contains(out, "TestD") || strings.Contains(out, "PASS") {
		t.Errorf("the run failed, or says too much:\n%s", out)
	}
	inTurn(t, out, "ok  \tsample", "Left out:\n", "  the long form: TestC\n", "  there is no printer: TestA, TestB in part\n")
	if names, err := os.ReadFile(filepath.Join(dir, "left-out")); err != nil || string(names) != "sample TestA\nsample TestB\nsample TestC\n" {
		t.Errorf("written down: %q, %v", names, err)
	}
}
