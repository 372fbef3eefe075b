package callgate_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testsOfProject are the names of all tests and fuzz targets.
func testsOfProject(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(data, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 500 {
		t.Fatalf("found only %d tests", len(names))
	}
	return names
}

// TestConformanceCitesTests: every test that docs/conformance.md names is there.
func TestConformanceCitesTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOfProject(t)
	cited := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllSubmatch(page, -1)
	if len(cited) < 200 {
		t.Errorf("found only %d names of tests", len(cited))
	}
	for _, m := range cited {
		if !tests[string(m[1])] {
			t.Errorf("docs/conformance.md cites %s, which is no test", m[1])
		}
	}
}

// rowsOf are the rows of docs/conformance.md whose first cell holds ids of a protocol, by their
// numbers. An id with two rows is an error.
func rowsOf(t *testing.T, protocol string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		first, rest, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !strings.HasPrefix(first, protocol+"-") {
			continue
		}
		for id := range strings.SplitSeq(strings.ReplaceAll(first, protocol+"-", ""), ", ") {
			if _, twice := rows[id]; twice {
				t.Errorf("%s-%s has two rows", protocol, id)
			}
			rows[id] = rest
		}
	}
	return rows
}

// TestStepNIsWhole: every id of the sheet of Step N has a row in docs/conformance.md,
// and one alone, which cites a test that bears the id. The sheet has no SN-42 to 49.
func TestStepNIsWhole(t *testing.T) {
	rows := rowsOf(t, "SN")
	for n := 1; n <= 64; n++ {
		id := fmt.Sprintf("%02d", n)
		row, listed := rows[id]
		delete(rows, id)
		switch {
		case n >= 42 && n <= 49:
			if listed {
				t.Errorf("SN-%s is no id of the sheet", id)
			}
		case !strings.Contains(row, "`TestSN"+id):
			t.Errorf("SN-%s has no row with a test of its name: %q", id, row)
		}
	}
	for id := range rows {
		t.Errorf("SN-%s is no id of the sheet", id)
	}
}

// TestACPIsWhole: every id of the sheet of ACP has a row, and one alone, which cites a test.
// ACP-63 is about what an editor shows.
func TestACPIsWhole(t *testing.T) {
	rows := rowsOf(t, "ACP")
	for _, ids := range [][2]int{{1, 12}, {20, 32}, {40, 56}, {60, 64}, {70, 75}} {
		for n := ids[0]; n <= ids[1]; n++ {
			id := fmt.Sprintf("%02d", n)
			row, listed := rows[id]
			delete(rows, id)
			if !listed || !strings.Contains(row, "`Test") && n != 63 {
				t.Errorf("ACP-%s has no row with a test: %q", id, row)
			}
		}
	}
	for id := range rows {
		t.Errorf("ACP-%s is no id of the sheet", id)
	}
}
