package corpora

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Document is one of the suite of JSON documents. Its name begins with y_ where it is
// JSON, with n_ where it is not, and with i_ where RFC 8259 leaves that open.
type Document struct {
	Name string
	Raw  []byte
	Want string // the verdict on a call that has it as an argument; the sample alone says it
}

// Documents returns the suite of JSON documents.
func Documents(t testing.TB) []Document {
	t.Helper()
	const suite = "json_suite"
	if !Whole(suite) {
		return sampleDocuments(t, Path(t, suite, "test_parsing.jsonl"))
	}
	dir := Path(t, suite, "test_parsing")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s holds nothing", dir)
	}
	var all []Document
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Document{Name: strings.TrimSuffix(f.Name(), ".json"), Raw: raw})
	}
	return all
}

func sampleDocuments(t testing.TB, path string) []Document {
	t.Helper()
	var all []Document
	for _, d := range Lines[struct {
		Name, Text, Want string
		Bytes            []byte // in base64, where it is no text
	}](t, path) {
		raw := d.Bytes
		if raw == nil {
			raw = []byte(d.Text)
		}
		all = append(all, Document{d.Name, raw, d.Want})
	}
	return all
}
