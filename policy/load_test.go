package policy

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// Every file under testdata/faulty holds one fault, and its exact message.
func TestFaultyFiles(t *testing.T) {
	for _, file := range corpus(t, "faulty/*.csv") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, want := wants(t, file)
			p, _, err := Load(Source{File: "policy.csv", Data: data}, testTools(), testSpaces(), "customer", "untrusted")
			if err == nil || p != nil {
				t.Fatalf("loaded: policy %v, error %v", p != nil, err)
			}
			var located *FileError
			if !errors.As(err, &located) {
				t.Errorf("the error is no *FileError: %T", err)
			}
			if got := err.Error(); got != strings.Join(want, "\n") {
				t.Errorf("got  %s\nwant %s", got, strings.Join(want, "\n"))
			}
		})
	}
}

// Every file under testdata/warned loads with exactly the warnings it names.
func TestWarnedFiles(t *testing.T) {
	for _, file := range corpus(t, "warned/*.csv") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, want := wants(t, file)
			_, warnings, err := Load(Source{File: "policy.csv", Data: data}, testTools(), testSpaces(), "customer", "untrusted")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("got\n%s\nwant\n%s", g, w)
			}
		})
	}
}

// Files that a first line of comment would change.
func TestFaultyWhole(t *testing.T) {
	long := "p, Analyst, acme/alpha, " + strings.Repeat("x", maxLine) + ", , allow"
	for name, c := range map[string]struct{ data, want string }{
		"no bytes":           {"", "policy.csv: found an empty file, expected rows and the last line # end"},
		"a line feed":        {"\n", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete"},
		"cut in the end":     {"# en", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete"},
		"cut at a line":      {"p, Intern, *, *, , allow\n", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete"},
		"binary":             {"\x7fELF\x02\x01", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete\npolicy.csv:1:1: found the control character U+007F, expected none: separate fields with commas and spaces"},
		"long line":          {long + "\n# end\n", "policy.csv:1: found a line of 65569 bytes, expected at most 65536"},
		"empty line after":   {"# end\n\n", "policy.csv:2: found a line after # end, expected # end as the last line"},
		"two line feeds":     {"p, Intern, *, *, , allow\n# end\n\n", "policy.csv:3: found a line after # end, expected # end as the last line"},
		"space after end":    {"# end \n", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete"},
		"space before end":   {" # end\n", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete"},
		"leading commas":     {",,,,,\n# end\n", `policy.csv:1:1: found a row of type "", expected p or g`},
		"wide mark in utf16": {"\xff\xfep\x00", "policy.csv:1: found no line # end, expected # end as the last line: the file looks incomplete\npolicy.csv:1:1: found the byte 0xFF, expected valid UTF-8"},
	} {
		p, _, err := Load(Source{File: "policy.csv", Data: []byte(c.data)}, nil, nil)
		if p != nil || err == nil {
			t.Errorf("%s: loaded", name)
			continue
		}
		if got := err.Error(); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestMinimalFiles(t *testing.T) {
	for _, data := range []string{"# end", "# end\n", "\n\n# comment\n   \n# end"} {
		p, warnings, err := Load(Source{File: "policy.csv", Data: []byte(data)}, nil, nil)
		if err != nil || len(warnings) != 0 {
			t.Errorf("%q: %v %v", data, err, warnings)
			continue
		}
		for _, r := range []Request{{}, {Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.search"}} {
			if d, err := p.Permit(t.Context(), r); d.Allowed || err != nil {
				t.Errorf("%q: an empty policy answers %v, %v to %v", data, d, err, r)
			}
		}
	}
}

// Cutting a file anywhere before its last line feed leaves no loadable file.
func TestEveryTruncationIsRefused(t *testing.T) {
	detector.OneGoroutine(t)
	whole := exampleCSV(t)
	for n := range len(whole) - 1 {
		if p, _, err := Load(Source{File: "policy.csv", Data: whole[:n]}, testTools(), testSpaces(), "customer", "untrusted"); err == nil || p != nil {
			t.Fatalf("the first %d of %d bytes load", n, len(whole))
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	rows := strings.Repeat("x\n", 10_000) + "# end\n"
	_, _, err := Load(Source{File: "policy.csv", Data: []byte(rows)}, nil, nil)
	if err == nil {
		t.Fatal("loaded")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxFaults+1 || lines[maxFaults] != "policy.csv: found 9950 faults more, expected none" {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
}

func exampleCSV(t *testing.T) []byte {
	t.Helper()
	data, _ := wants(t, filepath.Join("testdata", "example.csv"))
	return data
}
