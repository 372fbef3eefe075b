package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/eval"
	"github.com/callgate/callgate/internal/corpora"
)

// evalCorpora is the folder of the corpora of eval, or "" where they are not all here.
func evalCorpora(t *testing.T) string {
	t.Helper()
	root := ""
	for _, file := range eval.CorpusFiles() {
		corpus, name, _ := strings.Cut(file, "/")
		if !corpora.Whole(corpus) {
			return ""
		}
		root = filepath.Dir(filepath.Dir(corpora.Path(t, corpus, name)))
	}
	return root
}

// TestGracePage: the page has the tables of eval and no other. Without the corpora, their tables
// are not compared.
func TestGracePage(t *testing.T) {
	args := []string{"eval"}
	folder := evalCorpora(t)
	t.Setenv("CALLGATE_CORPORA", "")
	if folder != "" {
		args = append(args, "--corpora", folder)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), cmdenv.Env{Stdout: &stdout, Stderr: &stderr}, args); code != 0 {
		t.Fatalf("eval ends with %d: %s%s", code, stdout.String(), stderr.String())
	}
	page, err := os.ReadFile("../../docs/grace.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := func(text string) (kept []string) {
		for _, line := range strings.Split(text, "\n") {
			if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasSuffix(line, ":") {
				kept = append(kept, line)
			}
		}
		return kept
	}
	var stated []string
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		stated = append(stated, lines(block[1])...)
	}
	found := lines(stdout.String())
	if folder == "" {
		t.Log("left out: the corpora are not here, and their tables are not compared (CALLGATE_CORPORA names their folder)")
		found = slices.DeleteFunc(found, func(line string) bool { return strings.Contains(line, "left out") })
		for _, line := range found {
			if !slices.Contains(stated, line) {
				t.Errorf("docs/grace.md does not have the line %q", line)
			}
		}
		return
	}
	if !slices.Equal(stated, found) {
		t.Errorf("docs/grace.md has other tables than these:\n%s", stdout.String())
	}
}
