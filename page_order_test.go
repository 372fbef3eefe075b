package callgate_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// writeFeet makes TestPagesFollowEachOther write the feet of pages instead of comparing them; see
// `make reference`.
const writeFeet = "CALLGATE_WRITE_REFERENCE"

var (
	pageTitle = regexp.MustCompile(`(?m)^# (.*)$`)
	pageFoot  = regexp.MustCompile(`\n+---\n\n(?:Previous: |Next: )[^\n]*\n$`)
)

// pagesInOrder are the pages below docs in the order in which docs/README.md names them first. The
// generated ones, which are looked up and not read, are left out.
func pagesInOrder(t *testing.T) []string {
	t.Helper()
	index, err := os.ReadFile(filepath.Join("docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, l := range leadsTo("docs/README.md", readMarkdown(string(index))) {
		if page := l[0]; path.Ext(page) == ".md" && strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/generated/") && !slices.Contains(order, page) {
			order = append(order, page)
		}
	}
	if len(order) < 30 {
		t.Fatalf("found only %d pages", len(order))
	}
	return order
}

// TestPagesFollowEachOther: the foot of every page leads to the page before and the page after, in
// the order of docs/README.md.
func TestPagesFollowEachOther(t *testing.T) {
	order := pagesInOrder(t)
	texts, titles := map[string]string{}, map[string]string{}
	for _, page := range order {
		data, err := os.ReadFile(filepath.FromSlash(page))
		if err != nil {
			t.Fatal(err)
		}
		title := pageTitle.FindStringSubmatch(string(data))
		if title == nil {
			t.Fatalf("%s has no title", page)
		}
		texts[page], titles[page] = string(data), title[1]
	}
	for i, page := range order {
		link := func(word, to, title string) string {
			relative, err := filepath.Rel(filepath.Dir(filepath.FromSlash(page)), filepath.FromSlash(to))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s[%s](%s)", word, title, filepath.ToSlash(relative))
		}
		var links []string
		if i > 0 {
			links = append(links, link("Previous: ", order[i-1], titles[order[i-1]]))
		}
		if i+1 < len(order) {
			links = append(links, link("Next: ", order[i+1], titles[order[i+1]]))
		}
		links = append(links, link("", "docs/README.md", "All pages"))
		body := strings.TrimRight(pageFoot.ReplaceAllString(texts[page], "\n"), "\n")
		want := body + "\n\n---\n\n" + strings.Join(links, " · ") + "\n"
		if texts[page] == want {
			continue
		}
		if os.Getenv(writeFeet) == "" {
			t.Errorf("the foot of %s is not that of its place in docs/README.md: run `make reference`", page)
		} else if err := os.WriteFile(filepath.FromSlash(page), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReferenceHasEveryCode: every refusal code, and every path of a model API, is in the reference
// that people read.
func TestReferenceHasEveryCode(t *testing.T) {
	read := func(page string) string {
		data, err := os.ReadFile(filepath.Join("docs", page))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	reference := read("reference.md")
	codes := regexp.MustCompile("(?m)^\\| `[a-z]+` \\| `([a-z_]+)` \\|").FindAllStringSubmatch(read("generated/refusals.md"), -1)
	if len(codes) < 40 {
		t.Fatalf("found only %d codes", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(reference, "`"+c[1]+"`") {
			t.Errorf("docs/reference.md does not have the code %s", c[1])
		}
	}
	for _, route := range []string{"POST /v1/chat/completions", "POST /v1/messages", "POST /v1/messages/count_tokens", "POST /v1/responses", "POST /v1/responses/input_tokens", "GET /v1/models", "GET /v1/runs/{run_id}"} {
		if !strings.Contains(reference, "`"+route+"`") {
			t.Errorf("docs/reference.md does not have %s", route)
		}
	}
}
