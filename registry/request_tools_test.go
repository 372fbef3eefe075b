package registry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
)

// base is a registry of two tools, one in two versions.
func base(t testing.TB) *Registry {
	t.Helper()
	r, err := New([]Tool{
		{Name: "web.search", Version: "1.0.0", InputSchema: []byte(`{"type":"object","properties":{"q":{"type":"string","x-secret":true}}}`), Run: tool.Run{Type: clientRun}},
		{Name: "files.read", Version: "1.0.0", InputSchema: []byte(searchSchema), Run: tool.Run{Type: clientRun}},
		{Name: "files.read", Version: "2.0.0", InputSchema: []byte(searchSchema), Run: tool.Run{Type: clientRun}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const searchSchema = `{"type":"object","properties":{"path":{"type":"string"}}}`

func TestWith(t *testing.T) {
	r := base(t)
	with, err := r.With([]Brought{
		{Name: "Bash", Description: "runs", InputSchema: []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":true}`)},
		{Name: "Read", InputSchema: []byte(searchSchema)},
	})
	if err != nil {
		t.Fatal(err)
	}
	e, ok := with.Lookup("Bash")
	if !ok || e.Version() != BroughtVersion || e.Effect() != "once" || e.SharedRun().Type != "client" || e.Index() != -1 || e.Description() != "runs" {
		t.Fatalf("found %+v", e)
	}
	if len(e.Evaluate(map[string]any{"command": "ls"})) != 0 || len(e.Evaluate(map[string]any{"command": "ls", "more": "x"})) == 0 || !e.AcceptsJSON([]byte(`{"command":"ls"}`)) {
		t.Error("its schema is not closed at the root")
	}
	if exact, ok := with.LookupVersion("Bash", BroughtVersion); !ok || exact != e {
		t.Errorf("found %+v", exact)
	}
	// The tools of the base are what they were, with their numbers.
	for i, e := range r.Entries() {
		if found, ok := with.LookupVersion(e.Name(), e.Version()); !ok || found != e || e.Index() != i {
			t.Errorf("%s: found %+v", e.Name(), found)
		}
	}
	var names []string
	for _, e := range with.Entries() {
		names = append(names, e.Name()+"@"+e.Version())
	}
	if !slices.Equal(names, []string{"Bash@0.0.0+request", "Read@0.0.0+request", "files.read@1.0.0", "files.read@2.0.0", "web.search@1.0.0"}) || with.Len() != 5 || !with.HasSecrets() {
		t.Errorf("found %v", names)
	}
	if _, ok := r.Lookup("Bash"); ok || r.Len() != 3 {
		t.Error("the registry has changed")
	}
	all := func(string) bool { return true }
	if near := with.Suggest("bash", all, 3); !slices.Contains(near, "Bash") {
		t.Errorf("found %v near bash", near)
	}
	if near := with.Suggest("web_search", all, 3); !slices.Contains(near, "web.search") {
		t.Errorf("found %v near web_search", near)
	}
	for _, empty := range []*Registry{nil, {}} {
		with, err := empty.With([]Brought{{Name: "Read", InputSchema: []byte(searchSchema)}})
		if err != nil || with.Len() != 1 {
			t.Errorf("found %v, %v", with, err)
		}
	}
}

func TestWithFaults(t *testing.T) {
	r := base(t)
	many := make([]Brought, maxBrought+1)
	for i := range many {
		many[i] = Brought{Name: fmt.Sprint("t", i), InputSchema: []byte(searchSchema)}
	}
	for want, tools := range map[string][]Brought{
		`0 input_schema /properties/a/type: `:                          {{Name: "a", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"text"}}}`)}},
		`0 input_schema : found no schema; expected`:                   {{Name: "a"}},
		`1 input_schema /properties/a: `:                               {{Name: "a", InputSchema: []byte(searchSchema)}, {Name: "b", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"object"}}}`)}},
		`0 input_schema /$ref: `:                                       {{Name: "a", InputSchema: []byte(`{"type":"object","$ref":"https://example.com/x"}`)}},
		`0 input_schema /properties/a/foo: `:                           {{Name: "a", InputSchema: []byte(`{"type":"object","properties":{"a":{"foo":1}}}`)}},
		`0 name : found "a b"; expected a name`:                        {{Name: "a b", InputSchema: []byte(searchSchema)}},
		`0 name : found "web.search", which the registry has`:          {{Name: "web.search", InputSchema: []byte(searchSchema)}},
		`1 name : found "a" a second time`:                             {{Name: "a", InputSchema: []byte(searchSchema)}, {Name: "a", InputSchema: []byte(searchSchema)}},
		fmt.Sprintf(`%d  : found %d tools of `, maxBrought, len(many)): many,
		`0  : found 1 tools of 1048577 bytes; expected`:                {{Name: "a", InputSchema: make([]byte, maxBroughtBytes+1)}},
	} {
		with, err := r.With(tools)
		var fault *LoadError
		if with != nil || !errors.As(err, &fault) {
			t.Errorf("%s: found %v, %v", want, with, err)
			continue
		}
		if found := fmt.Sprintf("%d %s %s: %s", fault.Tool, strings.Join(fault.Field, "."), fault.Pointer, fault.Message); !strings.HasPrefix(found, want) {
			t.Errorf("found    %s\nexpected %s", found, want)
		}
	}
}

// TestFaultsAreBounded: a request with many faulty schemas costs as much as one with a few.
func TestFaultsAreBounded(t *testing.T) {
	r := base(t)
	var tools []Brought
	for i := range maxBrought {
		tools = append(tools, Brought{Name: fmt.Sprint("t", i), InputSchema: fmt.Appendf(nil, `{"type":"object","typo%d":1}`, i)})
	}
	before := r.schemas.compiled
	if _, err := r.With(tools); err == nil || r.schemas.compiled-before > maxBroughtFaults {
		t.Errorf("%d schemas were compiled, %v", r.schemas.compiled-before, err)
	}
}

// TestSchemasAreCompiledOnce: whichever tool and request a schema comes with.
func TestSchemasAreCompiledOnce(t *testing.T) {
	r := base(t)
	compiled := func(name, text string) *schema.Schema {
		with, err := r.With([]Brought{{Name: name, InputSchema: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		e, _ := with.Lookup(name)
		return e.input
	}
	first := compiled("a", searchSchema)
	if compiled("b", searchSchema) != first || compiled("a", searchSchema+" ") == first {
		t.Error("a schema is kept by its text")
	}
	// Schemas that are not used for long make room for others, and are compiled again.
	for i := range 40 {
		compiled("a", fmt.Sprintf(`{"type":"object","properties":{"a%d":{"type":"string","description":%q}}}`, i, strings.Repeat("x", maxKeptSchemaBytes/32)))
	}
	if r.schemas.bytes > maxKeptSchemaBytes || len(r.schemas.kept) != r.schemas.order.Len() || len(r.schemas.kept) > 32 {
		t.Errorf("%d schemas of %d bytes are kept", len(r.schemas.kept), r.schemas.bytes)
	}
	if compiled("a", searchSchema) == first {
		t.Error("it was not forgotten")
	}
	if r.schemas.compiled > maxCompiled {
		t.Error("one compiler for all")
	}
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			for i := range maxCompiled {
				if _, err := r.With([]Brought{{Name: "a", InputSchema: fmt.Appendf(nil, `{"type":"object","properties":{"b%d":{"type":"string"}}}`, i%300)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	requests.Wait()
}

func TestAgrees(t *testing.T) {
	r, err := New([]Tool{{
		Name: "Edit", Run: tool.Run{Type: clientRun},
		InputSchema: []byte(`{"type":"object","properties":{"file_path":{"type":"string","x-boundary":"path"},"n":{"type":"integer","default":1}},"required":["file_path"]}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := r.Lookup("Edit")
	for text, want := range map[string]bool{
		string(e.InputSchema()):  true,
		string(e.ClosedSchema()): true,
		`{"required":["file_path"],"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"n":{"type":"integer","default":1},"file_path":{"type":"string"}}}`: true,
		`{"type":"object","properties":{"file_path":{"type":"string"},"n":{"type":"integer"}},"required":["file_path"]}`:                                                                      false,
		`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`:                                                                                             false,
		`{"type":"object","properties":{"file_path":{"type":"string"},"n":{"type":"integer","default":1}}}`:                                                                                   false,
		`{"type":"object"`: false, ``: false, `null`: false,
		string(e.InputSchema()) + strings.Repeat(" ", 1<<10): true,
		string(e.InputSchema()) + strings.Repeat(" ", 1<<13): false, // too long to be compiled for this
	} {
		if r.Agrees(e, []byte(text)) != want {
			t.Errorf("%s: expected %v", text, want)
		}
	}
}

// TestNameMapWith: names of a request stay apart from those of the registry.
func TestNameMapWith(t *testing.T) {
	m, err := NewNameMap([]string{"web.search"}, OpenAI())
	if err != nil {
		t.Fatal(err)
	}
	with, err := m.With([]string{"Bash", "clock.sleep"}, OpenAI())
	if err != nil {
		t.Fatal(err)
	}
	for wire, want := range map[string]string{"web_search": "web.search", "Bash": "Bash", "clock_sleep": "clock.sleep", "clock.sleep": "", "": ""} {
		name, ok := with.Name(wire)
		back, known := with.Wire(name)
		if name != want || ok != (want != "") || known != ok || known && back != wire {
			t.Errorf("%s: found %s", wire, name)
		}
	}
	for _, names := range [][]string{{"web_search"}, {"a.b", "a_b"}, {strings.Repeat("x", 65)}} {
		if _, err := m.With(names, OpenAI()); err == nil {
			t.Errorf("%v are taken", names)
		}
	}
}

// BenchmarkWith is what one request of a coding agent with 25 tools costs once their schemas are known.
func BenchmarkWith(b *testing.B) {
	r := base(b)
	var tools []Brought
	for i := range 25 {
		tools = append(tools, Brought{Name: fmt.Sprint("tool", i), InputSchema: fmt.Appendf(nil, `{"type":"object","properties":{"a%d":{"type":"string","description":%q}}}`, i, strings.Repeat("x", 600))})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.With(tools); err != nil {
			b.Fatal(err)
		}
	}
}
