package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"github.com/callgate/callgate/policy/lab"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/document"

	"github.com/callgate/callgate/internal/testkit/configtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// approving is the base with a row that asks, of which the tests of testdata are.
func approving(t testing.TB) *configs.Config {
	t.Helper()
	policy := strings.Replace(configtest.Base(t)["policy.csv"].Data, "# end", "p, Analyst, acme/alpha, notes.add, \"args.text == 'ask'\", ask:notes\n# end", 1)
	main := strings.Replace(configtest.Base(t)["callgate.yaml"].Data, "# end", "approvals: approvals.yaml\n# end", 1)
	dir := t.TempDir()
	c, err := configs.Load(configtest.Write(t, dir, configtest.With(t, map[string]string{
		"callgate.yaml": main, "policy.csv": policy, "approvals.yaml": "rules: {notes: {}, deploys: {}}\n# end\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// golden compares what was written with a file of testdata. Folders of the test are left out.
func golden(t *testing.T, name string, c *configs.Config, written []byte) {
	t.Helper()
	written = bytes.ReplaceAll(written, []byte(filepath.Dir(c.Files[0])+"/"), nil)
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, written, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, want) {
		t.Errorf("%s: found\n%s\nexpected\n%s", name, written, want)
	}
}

// TestReports runs tests of which some hold and some fail, and compares the reports.
func TestReports(t *testing.T) {
	c := approving(t)
	by, tests, err := c.ReadTests([]string{filepath.Join("testdata", "holds.yaml"), filepath.Join("testdata", "fails.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	coverage := lab.NewCoverage(c.Policy)
	results, err := lab.RunTests(t.Context(), by, tests, coverage)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if holds := strings.HasSuffix(r.Test.File, "holds.yaml"); holds != (r.Failed == 0) {
			t.Errorf("%s: %d cases failed: %v", r.Test.Name, r.Failed, r.Failures)
		}
	}
	var text, lines, junit bytes.Buffer
	lab.WriteTestText(&text, results)
	coverage.WriteText(&text)
	golden(t, "report.txt", c, text.Bytes())
	if err := lab.WriteTestJSON(&lines, results, coverage); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.jsonl", c, lines.Bytes())
	all := bytes.Split(bytes.TrimSpace(lines.Bytes()), []byte("\n"))
	for i, line := range all {
		var kind struct{ Kind string }
		if err := json.Unmarshal(line, &kind); err != nil || (kind.Kind == "summary") != (i == len(all)-1) {
			t.Errorf("line %d: %v, %s", i+1, err, line)
		}
	}
	if err := lab.WriteJUnit(&junit, results); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.xml", c, junit.Bytes())
	var read struct {
		Tests, Failures int `xml:",attr"`
	}
	if err := xml.Unmarshal(bytes.ReplaceAll(junit.Bytes(), []byte("tests="), []byte("Tests=")), &read); err != nil || read.Tests != len(tests) {
		t.Errorf("the JUnit report is read as %+v, %v", read, err)
	}
}

// TestBoundOfCases: one case more than the bound is a fault of the test that has it, and lists
// whose product no number holds are no less one.
func TestBoundOfCases(t *testing.T) {
	c := approving(t)
	read := func(tests int) error {
		var b strings.Builder
		b.WriteString("tests:\n")
		for n := range tests {
			fmt.Fprintf(&b, "  - {name: t%d, agents: [Analyst, Intern], project: acme/alpha, tools: [notes.add, web.search], expect: never}\n", n)
		}
		file := filepath.Join(t.TempDir(), "many_test.yaml")
		if err := os.WriteFile(file, []byte(b.String()+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.ReadTests([]string{file})
		return err
	}
	if err := read(lab.MaxTestCases / 4); err != nil {
		t.Errorf("%d cases: %v", lab.MaxTestCases, err)
	}
	var faults document.Faults
	if err := read(lab.MaxTestCases/4 + 3); !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != lab.MaxTestCases/4+2 {
		t.Errorf("found %v", err)
	}
	huge := lab.Test{Agents: make([]string, 1<<22), Projects: make([]lab.TestProject, 1<<22), Tools: make([]string, 1<<22)}
	if n := huge.Cases(); n <= lab.MaxTestCases {
		t.Errorf("found %d cases", n)
	}
}

// TestRunEnds: tests end when their time is over, without an answer.
func TestRunEnds(t *testing.T) {
	c := approving(t)
	by, tests, err := c.ReadTests([]string{filepath.Join("testdata", "holds.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if results, err := lab.RunTests(ctx, by, tests, nil); !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("found %v, %v", results, err)
	}
}

// TestExample: the tests of the built-in example hold, and reach every row of its policy.
func TestExample(t *testing.T) {
	c, err := configs.Default("")
	if err != nil {
		t.Fatal(err)
	}
	files, err := c.FindTests()
	if err != nil || !slices.Equal(files, []string{"built-in:policy_test.yaml"}) {
		t.Fatalf("found %q, %v", files, err)
	}
	by, tests, err := c.ReadTests(files)
	if err != nil {
		t.Fatal(err)
	}
	coverage := lab.NewCoverage(c.Policy)
	results, err := lab.RunTests(t.Context(), by, tests, coverage)
	if err != nil {
		t.Fatal(err)
	}
	if s := lab.SummarizeTests(results); s.FailedTests > 0 || coverage.Percent() != 100 {
		t.Errorf("found %+v, coverage %d%%", s, coverage.Percent())
	}
	for _, r := range coverage.Rows {
		if r.OneSided() {
			t.Errorf("the condition of %s is seen %d times true and %d times false", r.Row, r.True, r.False)
		}
	}
}

// BenchmarkRun is one case of the example.
func BenchmarkRun(b *testing.B) {
	c, err := configs.Default("")
	if err != nil {
		b.Fatal(err)
	}
	by, tests, err := c.ReadTests([]string{"built-in:policy_test.yaml"})
	if err != nil {
		b.Fatal(err)
	}
	cases := 0
	for _, t := range tests {
		cases += t.Cases()
	}
	for _, covered := range []bool{false, true} {
		b.Run(fmt.Sprintf("coverage %v", covered), func(b *testing.B) {
			var coverage *lab.Coverage
			if covered {
				coverage = lab.NewCoverage(c.Policy)
			}
			for b.Loop() {
				if _, err := lab.RunTests(context.Background(), by, tests, coverage); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cases)*float64(b.N)/b.Elapsed().Seconds(), "cases/s")
		})
	}
}
