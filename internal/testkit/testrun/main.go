// Command testrun runs go test with its arguments. A test that fails is run once more,
// alone, so that both outcomes can be compared: it fails the run even if it passes then. At
// the end the command lists the skipped tests, with the reasons. With -left-out FILE before the
// arguments, it also writes them to the file: the package and the name of a test on each line.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	args, leftOut := os.Args[1:], ""
	if len(args) > 1 && args[0] == "-left-out" {
		args, leftOut = args[2:], args[1]
	}
	ok, err := run(".", leftOut, args, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// failure is a test that failed.
type failure struct {
	pkg, test string
}

// results gathers what go test tells.
type results struct {
	to      io.Writer
	output  map[failure][]string // of each test that runs, with its subtests; "" is the package's own
	last    map[failure]string   // the last line that a test or subtest logged
	failed  []failure
	leftOut map[string][]string // tests, by the reason
	partial map[failure]bool    // tests that are left out, or have a part that is
}

// run runs the tests of a folder, and reports whether all have passed at the first attempt. It writes
// those that are left out to a file, if one is named.
func run(folder, leftOut string, args []string, to io.Writer) (bool, error) {
	r := &results{to: to, output: map[failure][]string{}, last: map[failure]string{}, leftOut: map[string][]string{},
		partial: map[failure]bool{}}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = folder, to
	events, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r.read(events)
	err = cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return false, err
	}
	r.printLeftOut()
	if leftOut != "" {
		if err := r.writeLeftOut(leftOut); err != nil {
			return false, err
		}
	}
	for _, f := range r.failed {
		rerun(folder, args, f, to)
	}
	return err == nil, nil
}

// read reads the events. A line that is not an event, as of a build, is passed on.
func (r *results) read(events io.Reader) {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil {
			r.record(e)
		} else {
			fmt.Fprint(r.to, line)
		}
		if err != nil {
			return
		}
	}
}

func (r *results) record(e event) {
	top, _, _ := strings.Cut(e.Test, "/")
	whole, part := failure{e.Package, top}, failure{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.to, e.Output)
	case "output":
		if framing(e.Output) {
			return
		}
		r.output[whole] = append(r.output[whole], e.Output)
		if _, message, ok := strings.Cut(e.Output, ".go:"); ok && e.Test != "" {
			_, message, _ = strings.Cut(message, ": ")
			r.last[part] = strings.TrimSpace(message)
			if strings.HasPrefix(r.last[part], "left out: ") {
				r.leaveOut(part)
			}
		}
	case "skip":
		if e.Test != "" {
			r.leaveOut(part)
		}
		r.end(e, whole)
	case "pass":
		r.end(e, whole)
	case "fail":
		if e.Test != "" && e.Test == top {
			r.failed = append(r.failed, whole)
			fmt.Fprintf(r.to, "%s\n%s", e.Package, strings.Join(r.output[whole], ""))
		}
		r.end(e, whole)
	}
}

// end removes a test that has ended, and prints the result of a package.
func (r *results) end(e event, whole failure) {
	if e.Test == "" {
		if e.Action == "fail" {
			r.printUnended(e.Package)
		}
		for _, line := range r.output[whole] {
			if e.Action == "fail" || strings.HasPrefix(line, "ok") || strings.HasPrefix(line, "?") {
				fmt.Fprint(r.to, line)
			}
		}
	}
	delete(r.last, failure{e.Package, e.Test})
	if e.Test == whole.test {
		delete(r.output, whole)
	}
}

// printUnended prints the tests of a package that has failed while they ran, and their output. At the
// end of the time, or of the process, it has the stacks of the goroutines: no test says that it failed.
func (r *results) printUnended(pkg string) {
	of := func(a, b failure) int { return strings.Compare(a.test, b.test) }
	for _, f := range slices.SortedFunc(maps.Keys(r.output), of) {
		if f.pkg == pkg && f.test != "" {
			fmt.Fprintf(r.to, "DID NOT END: %s %s\n%s", pkg, f.test, strings.Join(r.output[f], ""))
			delete(r.output, f)
		}
	}
}

// leaveOut notes why a test, or a part of it, is left out: the last line of its output.
func (r *results) leaveOut(f failure) {
	reason := strings.TrimPrefix(strings.TrimPrefix(r.last[f], "left out: "), "skipped: ")
	test, _, part := strings.Cut(f.test, "/")
	r.partial[failure{f.pkg, test}] = true
	if part {
		test += " in part"
	}
	if list := r.leftOut[reason]; !slices.Contains(list, test) {
		r.leftOut[reason] = append(list, test)
	}
}

func (r *results) printLeftOut() {
	if len(r.leftOut) == 0 {
		return
	}
	fmt.Fprintln(r.to, "Left out:")
	for _, reason := range slices.Sorted(maps.Keys(r.leftOut)) {
		fmt.Fprintf(r.to, "  %s: %s\n", reason, strings.Join(slices.Sorted(slices.Values(r.leftOut[reason])), ", "))
	}
}

func (r *results) writeLeftOut(file string) error {
	var lines []string
	for f := range r.partial {
		lines = append(lines, f.pkg+" "+f.test+"\n")
	}
	slices.Sort(lines)
	return os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600)
}

// framing reports whether a line only says that a test starts or continues.
func framing(line string) bool {
	for _, start := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// rerun runs a failed test once more, alone, and prints the result.
func rerun(folder string, args []string, f failure, to io.Writer) {
	flags := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "./") })
	cmd := exec.Command("go", slices.Concat([]string{"test"}, flags, []string{"-count=1", "-v", "-run", "^" + f.test + "$", f.pkg})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, to, to
	fmt.Fprintf(to, "Once more, alone: %s %s\n", f.pkg, f.test)
	if cmd.Run() != nil {
		fmt.Fprintf(to, "FAILED TWICE: %s %s\n", f.pkg, f.test)
		return
	}
	fmt.Fprintf(to, "UNSTEADY: %s %s failed above, and passed alone: fix the test, or the code under test\n", f.pkg, f.test)
}
