package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// newRoot serves a folder of the disk, and returns the folder and the URL.
func newRoot(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newHandler(tools(library{root.FS()}, noon), newHits(nil, noon), t.Output()))
	t.Cleanup(func() { server.Close(); root.Close() })
	return dir, server.URL
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNothingLeavesTheFolder(t *testing.T) {
	const secret = "the otter sleeps at noon"
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret.txt"), secret)
	dir, url := newRoot(t)
	write(t, filepath.Join(dir, "inside.txt"), "the heron stands in the reeds\n")
	links := map[string]string{
		"file.txt":   filepath.Join(outside, "secret.txt"),
		"folder":     outside,
		"up.txt":     "../" + filepath.Base(outside) + "/secret.txt",
		"inner.txt":  "inside.txt",
		"broken.txt": "nothing.txt",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"file.txt", "folder/secret.txt", "up.txt", "broken.txt"} {
		status, got := post(t, url+"/read", fmt.Sprintf(`{"path":%q}`, path))
		if status != http.StatusNotFound || strings.Contains(got, "otter") || strings.Contains(got, outside) {
			t.Errorf("%s: %d %s, want 404 that shows nothing", path, status, got)
		}
	}
	if status, got := post(t, url+"/read", `{"path":"inner.txt"}`); status != http.StatusOK || !strings.Contains(got, "heron") {
		t.Errorf("a link within the folder: %d %s, want its text", status, got)
	}
	if _, got := post(t, url+"/search", `{"query":"otter"}`); got != `{"results":[]}`+"\n" {
		t.Errorf("the search followed a link out: %s", got)
	}
	if _, got := post(t, url+"/search", `{"query":"heron"}`); strings.Count(got, `"path"`) != 1 {
		t.Errorf("the search did not find the file once: %s", got)
	}
}

func TestOnlyTextIsRead(t *testing.T) {
	files := fstest.MapFS{
		"bytes.bin": {Data: []byte("heron\xff")},
		"nul.txt":   {Data: []byte("heron\x00")},
		"long.txt":  {Data: []byte(strings.Repeat("heron\n", maxText/6+1))},
		"full.txt":  {Data: []byte(strings.Repeat("x", maxText))},
		"empty.txt": {},
		"dos.txt":   {Data: []byte("one\r\ntwo heron\r\n")},
	}
	server := httptest.NewServer(newHandler(tools(library{files}, noon), newHits(nil, noon), t.Output()))
	defer server.Close()
	for path, want := range map[string]int{
		"bytes.bin": http.StatusBadRequest,
		"nul.txt":   http.StatusBadRequest,
		"long.txt":  http.StatusBadRequest,
		"full.txt":  http.StatusOK,
		"empty.txt": http.StatusOK,
	} {
		if status, got := post(t, server.URL+"/read", fmt.Sprintf(`{"path":%q}`, path)); status != want {
			t.Errorf("%s: status %d, want %d: %.100s", path, status, want, got)
		}
	}
	_, got := post(t, server.URL+"/search", `{"query":"heron"}`)
	if want := `{"results":[{"path":"dos.txt","line":2,"snippet":"two heron"}]}` + "\n"; got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// An opened pipe that nobody writes to would hold the request for ever.
func TestPipesAreNotOpened(t *testing.T) {
	dir, url := newRoot(t)
	if err := makePipe(filepath.Join(dir, "pipe.txt")); err != nil {
		t.Skipf("skipped: no named pipe can be made here: %v", err)
	}
	if status, got := post(t, url+"/read", `{"path":"pipe.txt"}`); status != http.StatusBadRequest {
		t.Errorf("status %d, want 400: %s", status, got)
	}
	if _, got := post(t, url+"/search", `{"query":"x"}`); got != `{"results":[]}`+"\n" {
		t.Errorf("got %s, want no results", got)
	}
}

func TestSearchIsBounded(t *testing.T) {
	files := fstest.MapFS{}
	for i := range maxFiles + 1 {
		files[fmt.Sprintf("%04d.txt", i)] = &fstest.MapFile{Data: []byte("heron " + strings.Repeat("ü", snippetBytes))}
	}
	server := httptest.NewServer(newHandler(tools(library{files}, noon), newHits(nil, noon), t.Output()))
	defer server.Close()
	_, got := post(t, server.URL+"/search", `{"query":"heron","limit":50}`)
	var answer found
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Incomplete || len(answer.Results) != 50 || answer.Results[0].Path != "0000.txt" || answer.Results[49].Path != "0049.txt" {
		t.Errorf("incomplete %v, %d results; want an incomplete answer with the first 50", answer.Incomplete, len(answer.Results))
	}
	if s := answer.Results[0].Snippet; len(s) > snippetBytes+len("…") || !strings.HasSuffix(s, "ü…") {
		t.Errorf("a snippet of %d bytes that ends in %q, want a cut between two characters", len(s), s[len(s)-5:])
	}
	delete(files, "1000.txt")
	if _, got := post(t, server.URL+"/search", `{"query":"heron"}`); strings.Contains(got, "incomplete") {
		t.Errorf("%d files were searched, and the answer says that some were not: %s", maxFiles, got)
	}
}

// brokenFolder is a folder that cannot be read.
type brokenFolder struct{}

func (brokenFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("input/output error")}
}

// A folder that cannot be read is no folder in which nothing was found.
func TestFolderThatCannotBeRead(t *testing.T) {
	var output bytes.Buffer
	server := httptest.NewServer(newHandler(tools(library{brokenFolder{}}, noon), newHits(nil, noon), &output))
	defer server.Close()
	status, got := post(t, server.URL+"/search", `{"query":"x"}`)
	if status != http.StatusInternalServerError || output.String() != "sampletool: /search: input/output error\n" {
		t.Errorf("%d %s, said %q; want 500, and the reason for the operator", status, got, &output)
	}
}

// partlyBroken is a folder of which one folder cannot be read.
type partlyBroken struct{ fstest.MapFS }

func (p partlyBroken) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "broken" {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrPermission}
	}
	return p.MapFS.ReadDir(name)
}

func TestFoldersBesideABrokenOneAreSearched(t *testing.T) {
	files := partlyBroken{fstest.MapFS{"a.txt": {Data: []byte("heron")}, "broken/b.txt": {Data: []byte("heron")}, "c/d.txt": {Data: []byte("heron")}}}
	server := httptest.NewServer(newHandler(tools(library{files}, noon), newHits(nil, noon), t.Output()))
	defer server.Close()
	_, got := post(t, server.URL+"/search", `{"query":"heron"}`)
	if !strings.Contains(got, "a.txt") || !strings.Contains(got, "c/d.txt") || strings.Contains(got, "b.txt") {
		t.Errorf("got %s, want what is before and after the broken folder", got)
	}
}
