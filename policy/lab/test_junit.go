package lab

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The elements of a JUnit report that programs agree on.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes results as a JUnit report, with a suite for each file.
func WriteJUnit(w io.Writer, results []TestResult) error {
	var report junitSuites
	for _, r := range results {
		if n := len(report.Suites); n == 0 || report.Suites[n-1].Name != r.Test.File {
			report.Suites = append(report.Suites, junitSuite{Name: r.Test.File})
		}
		suite := &report.Suites[len(report.Suites)-1]
		c := junitCase{Name: r.Test.Name, Class: r.Test.File, File: r.Test.File, Line: r.Test.Line}
		if r.Failed > 0 {
			var text strings.Builder
			for _, f := range r.Failures {
				fmt.Fprintf(&text, "%s\n%s\n", f, f.Why)
			}
			c.Failure = &junitFailure{Message: fmt.Sprintf("%d of %s failed", r.Failed, count(r.Test.Cases(), "case")), Text: text.String()}
			suite.Failures++
			report.Failures++
		}
		suite.Cases = append(suite.Cases, c)
		suite.Tests++
		report.Tests++
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	out := xml.NewEncoder(w)
	out.Indent("", "  ")
	if err := out.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
