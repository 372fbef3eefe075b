package callgate_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
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

// TestConformanceCitesTests: every test that docs/conformance.md names is there, but in a section of a part
// of Callgate whose folder was deleted, and its tests with it.
func TestConformanceCitesTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOfProject(t)
	citation, count := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`"), 0
	for section := range strings.SplitSeq(string(page), "\n## ") {
		lacks := lacksFolder(section)
		for _, m := range citation.FindAllStringSubmatch(section, -1) {
			count++
			if !tests[m[1]] && !lacks {
				t.Errorf("docs/conformance.md cites %s, which is no test", m[1])
			}
		}
	}
	if count < 200 {
		t.Errorf("found only %d names of tests", count)
	}
}

var faceFolder = regexp.MustCompile("`(gateway/faces/\\w+)`")

// lacksFolder reports whether a section names the folder of a face that is not there.
func lacksFolder(section string) bool {
	return slices.ContainsFunc(faceFolder.FindAllStringSubmatch(section, -1), func(m []string) bool {
		_, err := os.Stat(filepath.FromSlash(m[1]))
		return err != nil
	})
}

// rowsOf are the rows of docs/conformance.md that begin with ids of a protocol, by their
// numbers: "SN-01 to 03, 05" has four. An id with two rows is an error.
func rowsOf(t *testing.T, protocol string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(page)) {
		first, rest, _ := strings.Cut(strings.TrimPrefix(line, "- **"), "** ")
		if !strings.HasPrefix(first, protocol+"-") {
			continue
		}
		for id := range strings.SplitSeq(strings.ReplaceAll(first, protocol+"-", ""), ", ") {
			from, to, ranged := strings.Cut(id, " to ")
			if !ranged {
				to = from
			}
			n, err := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err := cmp.Or(err, err2); err != nil {
				t.Fatalf("the row %q: %v", first, err)
			}
			for ; n <= last; n++ {
				id := fmt.Sprintf("%02d", n)
				if _, twice := rows[id]; twice {
					t.Errorf("%s-%s has two rows", protocol, id)
				}
				rows[id] = rest
			}
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

// TestACPIsWhole: every id of the sheet of ACP has a row, and one alone, which cites at least as many
// tests as it has ids. ACP-63 is about what an editor shows.
func TestACPIsWhole(t *testing.T) {
	rows, ids := rowsOf(t, "ACP"), map[string]int{}
	for _, row := range rows {
		ids[row]++
	}
	for _, span := range [][2]int{{1, 12}, {20, 32}, {40, 56}, {60, 64}, {70, 75}} {
		for n := span[0]; n <= span[1]; n++ {
			id := fmt.Sprintf("%02d", n)
			row, listed := rows[id]
			delete(rows, id)
			if !listed || strings.Count(row, "`Test") < ids[row] && n != 63 {
				t.Errorf("ACP-%s has no row with a test for each id: %q", id, row)
			}
		}
	}
	for id := range rows {
		t.Errorf("ACP-%s is no id of the sheet", id)
	}
}

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	pageCode    = regexp.MustCompile("`[^`]*`")
	linkText    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// markdown is a page: its text without code, and its headings' anchors.
type markdown struct {
	prose   string
	anchors []string
}

// anchorOf is the anchor that a forge gives to a heading.
func anchorOf(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}

func readMarkdown(text string) markdown {
	var m markdown
	var prose strings.Builder
	seen, fence := map[string]int{}, ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(line, "\n")
		opens := strings.HasPrefix(trimmed, "```")
		indented := strings.HasPrefix(trimmed, "    ")
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case opens:
			fence = "```"
		case indented && !pageLink.MatchString(trimmed):
		default:
			if h := pageHeading.FindStringSubmatch(trimmed); h != nil {
				a := anchorOf(h[1])
				if n := seen[a]; n > 0 {
					m.anchors = append(m.anchors, a+"-"+strconv.Itoa(n))
				} else {
					m.anchors = append(m.anchors, a)
				}
				seen[a]++
			}
			prose.WriteString(line)
		}
	}
	m.prose = pageCode.ReplaceAllString(prose.String(), "")
	return m
}

// pages are all Markdown pages of the project, but those that are files of a test or of the demo.
func pages(t *testing.T) map[string]markdown {
	t.Helper()
	all := map[string]markdown{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(file)
		if d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "node_modules", "dist"}, d.Name()) || name == "engine/demo/project") {
			return filepath.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		data, err := os.ReadFile(file)
		all[name] = readMarkdown(string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// leadsTo are the relative links of a page: the file that each names, and its anchor.
func leadsTo(page string, m markdown) [][2]string {
	var all [][2]string
	for _, l := range pageLink.FindAllStringSubmatch(m.prose, -1) {
		if strings.Contains(l[1], "://") || strings.HasPrefix(l[1], "mailto:") {
			continue
		}
		file, anchor, _ := strings.Cut(l[1], "#")
		target := page
		if file != "" {
			target = path.Join(path.Dir(page), file)
		}
		all = append(all, [2]string{target, anchor})
	}
	return all
}

// TestLinks: every relative link of a page leads to a file that is there, and to a heading of it.
func TestLinks(t *testing.T) {
	all, links := pages(t), 0
	for page, m := range all {
		for _, l := range leadsTo(page, m) {
			links++
			if _, err := os.Stat(filepath.FromSlash(l[0])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[0])
				continue
			}
			if to, ok := all[l[0]]; l[1] != "" && ok && !slices.Contains(to.anchors, l[1]) {
				t.Errorf("%s links to %s#%s; that page has no such heading", page, l[0], l[1])
			}
		}
	}
	if links < 150 {
		t.Errorf("found only %d links", links)
	}
}

// TestEveryPageIsReached: a reader who begins at docs/README.md comes to every page.
func TestEveryPageIsReached(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{"docs/README.md": true}
	for next := []string{"docs/README.md"}; len(next) > 0; next = next[1:] {
		for _, l := range leadsTo(next[0], all[next[0]]) {
			if _, page := all[l[0]]; page && !reached[l[0]] {
				reached[l[0]] = true
				next = append(next, l[0])
			}
		}
	}
	for page := range all {
		if !reached[page] && !strings.HasPrefix(page, ".github/") {
			t.Errorf("no link leads from docs/README.md to %s: add it there", page)
		}
	}
}
