// Package corpora finds the material that tests read: the public vectors and the schemas of
// protocols, which are part of this project, and real model outputs, tool registries and
// suites, which are not. If one of these is absent, a small sample of the same form in
// testdata/samples is used instead. Material that is part of the project must be present.
package corpora

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Path returns where a file or folder of a corpus is: under $CALLGATE_CORPORA, else beside
// the checkout in shared/corpora, else our sample of it. A present corpus without that file
// fails the test, and so does a sample.
func Path(t testing.TB, corpus string, elements ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{folder(corpus)}, elements...)...)
	if !Whole(corpus) {
		path = filepath.Join(append([]string{Testdata("samples"), corpus}, elements...)...)
		path = strings.TrimSuffix(path, ".gz") // samples are small
		t.Logf("left out: the corpus %s is not here, and our sample of it stands in (CALLGATE_CORPORA names the folder of the corpora)",
			corpus)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whole reports whether the corpus itself is present, and not only our sample.
func Whole(corpus string) bool {
	info, err := os.Stat(folder(corpus))
	return err == nil && info.IsDir()
}

// Count returns the number of items that a test expects: in the whole corpus, or in the
// sample if that is used.
func Count(corpus string, whole, sample int) int {
	if Whole(corpus) {
		return whole
	}
	return sample
}

func folder(corpus string) string {
	root := os.Getenv("CALLGATE_CORPORA")
	if root == "" {
		root = filepath.Join(projectRoot, "..", "shared", "corpora")
	}
	return filepath.Join(root, corpus)
}

// projectRoot is the folder of go.mod. It is found from the folder in which a test program
// starts, which go test makes that of its package: a program that is built with -trimpath does
// not know where its source is.
var projectRoot = above("go.mod")

// above returns the nearest folder, from the working folder upwards, that has a file of that name.
func above(name string) string {
	folder, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	return ""
}

// Testdata returns a path under the project's own testdata.
func Testdata(elements ...string) string {
	return filepath.Join(append([]string{projectRoot, "testdata"}, elements...)...)
}

// URLs returns the URLs of testdata/urls.txt, and of each whether it may be shown to a
// person.
func URLs(t testing.TB) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(Testdata("urls.txt"))
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		verdict, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		url, err := strconv.Unquote(quoted)
		if err != nil || verdict != "shown" && verdict != "refused" {
			t.Fatalf("urls.txt: %q: %v", line, err)
		}
		urls[url] = verdict == "shown"
	}
	if len(urls) < 80 {
		t.Fatalf("urls.txt has %d URLs", len(urls))
	}
	return urls
}

// Lines decodes a JSON Lines file, gzipped or not, one value a line. A file that
// holds nothing fails the test.
func Lines[T any](t testing.TB, path string) []T {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s, line %d: %v", path, len(all)+1, err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s holds nothing", path)
	}
	return all
}

// Vector is one public verdict.
type Vector struct {
	ID            string  `json:"id"`
	Agent         string  `json:"agent"`
	Workspace     string  `json:"workspace"`
	Project       string  `json:"project"`
	FinishReason  string  `json:"finish_reason"`
	Completion    *string `json:"completion"`
	CompletionB64 *string `json:"completion_b64"`
	Expect        struct {
		Verdict, Code, Stage string
		Path                 *string
	} `json:"expect"`
}

// Bytes returns the raw completion.
func (v Vector) Bytes(t testing.TB) []byte {
	t.Helper()
	if v.Completion != nil {
		return []byte(*v.Completion)
	}
	if v.CompletionB64 == nil {
		t.Fatalf("%s: no completion", v.ID)
	}
	b, err := base64.StdEncoding.DecodeString(*v.CompletionB64)
	if err != nil {
		t.Fatalf("%s: %v", v.ID, err)
	}
	return b
}

// VectorFiles are the public vectors and the project's own, all under the
// configuration of testdata/vectors.
func VectorFiles() []string {
	return []string{Testdata("vectors", "output.jsonl"), Testdata("own", "output.jsonl")}
}

// Vectors returns what VectorFiles hold.
func Vectors(t testing.TB) []Vector {
	t.Helper()
	var all []Vector
	for _, file := range VectorFiles() {
		all = append(all, Lines[Vector](t, file)...)
	}
	return all
}

// AgentVectors returns those under the same configuration with output.agent: required,
// and the main file of that.
func AgentVectors(t testing.TB) (main string, vectors []Vector) {
	t.Helper()
	const optional = "json_in_text: reject}"
	return changedConfig(t, optional, "json_in_text: reject, agent: required}"), Lines[Vector](t, Testdata("own", "agent_required.jsonl"))
}

// HookedConfig returns the main file of the vectors' configuration with some hooks.
func HookedConfig(t testing.TB, hooks string) (main string) {
	t.Helper()
	const last = "limits:     limits.yaml\n"
	main = changedConfig(t, last, last+"hooks:      hooks.yaml\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(main), "hooks.yaml"), []byte("hooks: "+hooks+"\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return main
}

// changedConfig returns the main file of a copy of the vectors' configuration in which a text, which
// stands there once, is replaced.
func changedConfig(t testing.TB, text, by string) (main string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(Testdata("vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	main = filepath.Join(dir, "callgate.yaml")
	data, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(data, []byte(text)) != 1 {
		t.Fatalf("%s has no %q to change", main, text)
	}
	if err := os.WriteFile(main, bytes.Replace(data, []byte(text), []byte(by), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return main
}
