// Package corpora finds the material that tests read: the public vectors, which
// are part of this project, and real model outputs, tool registries and suites,
// which are not. What is not part of the project is skipped by name where it is
// absent; what is part of it must be there.
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
	"runtime"
	"strings"
	"testing"
)

// Path returns where a file or folder of the corpora is: under
// $CALLGATE_CORPORA, else beside the checkout in shared/corpora. It skips the
// test, naming what is left out, where it is absent.
func Path(t testing.TB, elements ...string) string {
	t.Helper()
	root := os.Getenv("CALLGATE_CORPORA")
	if root == "" {
		root = filepath.Join(projectRoot(), "..", "shared", "corpora")
	}
	path := filepath.Join(append([]string{root}, elements...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: the corpus %s is not here (set CALLGATE_CORPORA to the folder that holds it)", filepath.Join(elements...))
	}
	return path
}

// projectRoot is the folder of go.mod.
func projectRoot() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Testdata returns a path under the project's own testdata.
func Testdata(elements ...string) string {
	return filepath.Join(append([]string{projectRoot(), "testdata"}, elements...)...)
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

// Vectors returns the public vectors.
func Vectors(t testing.TB) []Vector {
	t.Helper()
	return Lines[Vector](t, Testdata("vectors", "output.jsonl"))
}
