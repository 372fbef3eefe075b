package schema

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/parser"
)

// TestMCP17Dialects: a schema that names no dialect is of 2020-12, and one that names a
// dialect which is not known is refused, in words that say so.
func TestMCP17Dialects(t *testing.T) {
	const of2020 = `"type":"object","properties":{"pair":{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}}}`
	for _, dialect := range []string{``, `"$schema":"https://json-schema.org/draft/2020-12/schema",`, `"$schema":"https://json-schema.org/draft/2020-12/schema#",`} {
		entry, err := compile(`{`+dialect+of2020, Options{})
		if err != nil {
			t.Fatalf("%s: %v", dialect, err)
		}
		for arguments, good := range map[string]bool{`{"pair":[1,"a"]}`: true, `{"pair":["a",1]}`: false, `{"pair":[1,"a",2]}`: false} {
			if v := entry.Evaluate("web.search", parser.Decode([]byte(arguments))); (len(v) == 0) != good {
				t.Errorf("%s %s: %v", dialect, arguments, v)
			}
		}
	}
	if _, err := compile(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}`, Options{}); err != nil {
		t.Errorf("draft-07: %v", err)
	}
	for _, dialect := range []string{
		`"http://json-schema.org/draft-04/schema#"`, `"https://json-schema.org/draft/2019-09/schema"`, `"https://json-schema.org/draft/next/schema"`,
		`"https://example.com/dialect"`, `"2020-12"`, `""`, `1`, `null`,
	} {
		_, err := compile(`{"$schema":`+dialect+`,"type":"object"}`, Options{})
		if err == nil || !strings.Contains(err.Error(), "$schema") && !strings.Contains(err.Error(), "dialect") {
			t.Errorf("%s: %v", dialect, err)
		}
	}
}

// TestMCP18NothingIsFetched: a reference that leads out of its schema is an error, and
// nobody is asked for what stands there.
func TestMCP18NothingIsFetched(t *testing.T) {
	var requests atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(`{"type":"object"}`))
	}))
	defer canary.Close()
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"URL/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"URL/a#/$defs/b"}}}`,
		`{"type":"object","$ref":"URL/a"}`,
		`{"$id":"URL/base","type":"object","properties":{"a":{"$ref":"a"}}}`,
		`{"type":"object","properties":{"a":{"$dynamicRef":"URL/a"}}}`,
		`{"$schema":"URL/dialect","type":"object"}`,
		`{"type":"object","properties":{"a":{"$ref":"//HOST/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/hostname"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"URL/a"}}}`,
	} {
		schema = strings.NewReplacer("URL", canary.URL, "HOST", strings.TrimPrefix(canary.URL, "http://")).Replace(schema)
		if _, err := compile(schema, Options{}); err == nil {
			t.Errorf("%s is taken", schema)
		}
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
}
