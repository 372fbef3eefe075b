package lab

import (
	"encoding/json"
	"fmt"
	"io"
)

// TestSummary counts what a run came to.
type TestSummary struct {
	Tests       int `json:"tests"`
	FailedTests int `json:"failed_tests"`
	Cases       int `json:"cases"`
	FailedCases int `json:"failed_cases"`
}

// SummarizeTests counts results.
func SummarizeTests(results []TestResult) TestSummary {
	s := TestSummary{Tests: len(results)}
	for _, r := range results {
		s.Cases += r.Test.Cases()
		s.FailedCases += r.Failed
		if r.Failed > 0 {
			s.FailedTests++
		}
	}
	return s
}

// String is the last line for people.
func (s TestSummary) String() string {
	text := fmt.Sprintf("%s, %s: ", count(s.Tests, "test"), count(s.Cases, "case"))
	if s.FailedTests == 0 {
		return text + "all hold"
	}
	return text + fmt.Sprintf("%s, %s", count(s.FailedTests, "test")+" failed", count(s.FailedCases, "case"))
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// WriteTestText writes results for people: a line a test, and below a failed one its cases.
func WriteTestText(w io.Writer, results []TestResult) {
	for _, r := range results {
		if r.Failed == 0 {
			fmt.Fprintf(w, "ok    %s\n", r.Test.Name)
			continue
		}
		fmt.Fprintf(w, "FAIL  %s (%s:%d)\n", r.Test.Name, r.Test.File, r.Test.Line)
		for _, f := range r.Failures {
			fmt.Fprintf(w, "        %s\n          %s\n", f, f.Why)
		}
		if more := r.Failed - len(r.Failures); more > 0 {
			fmt.Fprintf(w, "        and %s more\n", count(more, "case"))
		}
	}
	fmt.Fprintf(w, "%s\n", SummarizeTests(results))
}

// WriteText writes for people which rows and conditions no case has reached.
func (c *Coverage) WriteText(w io.Writer) {
	fmt.Fprintf(w, "coverage: %d of %s decided a case (%d%%)\n", c.count("decided"), count(len(c.Rows), "row"), c.Percent())
	for _, r := range c.Rows {
		switch {
		case r.OneSided():
			fmt.Fprintf(w, "  %-8s %s\n           condition: true %d, false %d, failed %d\n", r.State(), r.Row, r.True, r.False, r.Failed)
		case r.Decided == 0:
			fmt.Fprintf(w, "  %-8s %s\n", r.State(), r.Row)
		}
	}
}

// WriteTestJSON writes an object a line: of the kind test for each test, of the kind row for each row
// of the coverage, if there is one, and last of the kind summary.
func WriteTestJSON(w io.Writer, results []TestResult, coverage *Coverage) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, r := range results {
		failures := r.Failures
		if failures == nil {
			failures = []TestFailure{}
		}
		if err := out.Encode(struct {
			Kind     string        `json:"kind"`
			File     string        `json:"file"`
			Line     int           `json:"line"`
			Name     string        `json:"name"`
			OK       bool          `json:"ok"`
			Cases    int           `json:"cases"`
			Failed   int           `json:"failed_cases"`
			Failures []TestFailure `json:"failures"` // the first ten
		}{"test", r.Test.File, r.Test.Line, r.Test.Name, r.Failed == 0, r.Test.Cases(), r.Failed, failures}); err != nil {
			return err
		}
	}
	summary := struct {
		Kind string `json:"kind"`
		TestSummary
		Coverage *int `json:"coverage_percent,omitempty"`
	}{Kind: "summary", TestSummary: SummarizeTests(results)}
	if coverage != nil {
		percent := coverage.Percent()
		summary.Coverage = &percent
		for _, r := range coverage.Rows {
			if err := out.Encode(newRowLine(r)); err != nil {
				return err
			}
		}
	}
	return out.Encode(summary)
}

// rowLine is the coverage of a row as JSON.
type rowLine struct {
	Kind      string          `json:"kind"`
	Row       string          `json:"row"` // file:line
	State     string          `json:"state"`
	Decided   int             `json:"decided"`
	Matched   int             `json:"matched"`
	Condition *conditionCount `json:"condition,omitempty"`
}

type conditionCount struct {
	True   int `json:"true"`
	False  int `json:"false"`
	Failed int `json:"failed"`
}

func newRowLine(r RowCoverage) rowLine {
	line := rowLine{Kind: "row", Row: r.Row.Place(), State: r.State(), Decided: r.Decided, Matched: r.Matched}
	if r.Row.When != "" {
		line.Condition = &conditionCount{r.True, r.False, r.Failed}
	}
	return line
}
