package callgate_test

import (
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
