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
	with, _, err := r.With([]Brought{
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
	if len(e.Evaluate(map[string]any{"command": "ls"})) != 0 || len(e.Evaluate(map[string]any{"command": "ls", "more": "x"})) == 0 {
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
		with, _, err := empty.With([]Brought{{Name: "Read", InputSchema: []byte(searchSchema)}})
		if err != nil || with.Len() != 1 {
			t.Errorf("found %v, %v", with, err)
		}
	}
}

// TestWithLeavesOut: a tool that cannot be judged costs no other tool.
func TestWithLeavesOut(t *testing.T) {
	r := base(t)
	for want, bad := range map[string]Brought{
		`1 input_schema /properties/a/type: `:     {Name: "a", InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"text"}}}`)},
		`1 input_schema : found no schema;`:       {Name: "a"},
		`1 input_schema /$ref: `:                  {Name: "a", InputSchema: []byte(`{"type":"object","$ref":"https://example.com/x"}`)},
		`1 input_schema /properties/a/requird: `:  {Name: "a", InputSchema: []byte(`{"type":"object","properties":{"a":{"requird":["b"]}}}`)},
		`1 input_schema /properties/a/pattern: `:  {Name: "a", InputSchema: []byte(`{"type":"object","properties":{"a":{"pattern":"^(?!a)"}}}`)},
		`1 name : found "a b"; expected a name`:   {Name: "a b", InputSchema: []byte(searchSchema)},
		`1 name : found "xxxxxxxxxxxxxxxxxxxxxxx`: {Name: strings.Repeat("x", MaxBroughtName+1), InputSchema: []byte(searchSchema)},
	} {
		with, leftOut, err := r.With([]Brought{{Name: "good", InputSchema: []byte(searchSchema)}, bad})
		if err != nil || len(leftOut) != 1 {
			t.Errorf("%s: found %v, %v", want, leftOut, err)
			continue
		}
		if found := fmt.Sprintf("%d %s %s: %s", leftOut[0].Tool, strings.Join(leftOut[0].Field, "."), leftOut[0].Pointer, leftOut[0].Message); !strings.HasPrefix(found, want) {
			t.Errorf("found    %s\nexpected %s", found, want)
		}
		if _, ok := with.Lookup("good"); !ok || with.Len() != r.Len()+1 {
			t.Errorf("%s: found %v", want, with.Entries())
		}
	}
	// A name that could mean two tools is no name to leave out.
	for want, tools := range map[string][]Brought{
		`0 name: found "web.search", which the registry has`: {{Name: "web.search", InputSchema: []byte(searchSchema)}},
		`1 name: found "a" a second time`:                    {{Name: "a", InputSchema: []byte(searchSchema)}, {Name: "a", InputSchema: []byte(searchSchema)}},
		`1 name: found "b" a second time`:                    {{Name: "b", InputSchema: []byte(`7`)}, {Name: "b", InputSchema: []byte(searchSchema)}},
	} {
		with, _, err := r.With(tools)
		var fault *LoadError
		if with != nil || !errors.As(err, &fault) || !strings.HasPrefix(fmt.Sprintf("%d %s: %s", fault.Tool, strings.Join(fault.Field, "."), fault.Message), want) {
			t.Errorf("%s: found %v, %v", want, with, err)
		}
	}
	// What does not compile is not compiled again with the next request.
	bad := []Brought{{Name: "a", InputSchema: []byte(`{"type":7}`)}}
	_, _, _ = r.With(bad)
	kept := r.schemas.lookup(bad[0].InputSchema, arguments)
	if _, leftOut, err := r.With(bad); err != nil || len(leftOut) == 0 || kept == nil || r.schemas.lookup(bad[0].InputSchema, arguments) != kept {
		t.Errorf("found %v, %v; kept %v", leftOut, err, kept)
	}
}

// TestWithCures: what an import cures is cured in a request too, and the entry says so.
func TestWithCures(t *testing.T) {
	r := base(t)
	with, leftOut, err := r.With([]Brought{
		{Name: "a", InputSchema: []byte(`{"strict":true,"properties":{"n":{"type":"integer","format":"uint32"}}}`)},
		{Name: strings.Repeat("x", MaxBroughtName), InputSchema: []byte(searchSchema)},
	})
	if err != nil || len(leftOut) != 0 {
		t.Fatal(leftOut, err)
	}
	if e, _ := with.Lookup("a"); len(e.Cured()) != 2 || len(e.Evaluate(map[string]any{"n": "1"})) == 0 || len(e.Evaluate(map[string]any{})) != 0 {
		t.Errorf("found %+v", e.Cured())
	}
	if e, ok := with.Lookup(strings.Repeat("x", MaxBroughtName)); !ok || len(e.Cured()) != 0 {
		t.Errorf("found %+v", e)
	}
}

// TestSchemasAreCompiledOnce: whichever tool and request a schema comes with.
func TestSchemasAreCompiledOnce(t *testing.T) {
	r := base(t)
	compiled := func(name, text string) *schema.Schema {
		with, _, err := r.With([]Brought{{Name: name, InputSchema: []byte(text)}})
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
	var requests sync.WaitGroup
	for range 8 {
		requests.Go(func() {
			for i := range 256 {
				if _, _, err := r.With([]Brought{{Name: "a", InputSchema: fmt.Appendf(nil, `{"type":"object","properties":{"b%d":{"type":"string"}}}`, i%300)}}); err != nil {
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
		if _, _, err := r.With(tools); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAnswerSchema: an answer may have what its schema does not rule out, whatever the same text is as the schema of arguments.
func TestAnswerSchema(t *testing.T) {
	r := base(t)
	const more = `{"path":"a","more":1}`
	decode := func() any { return map[string]any{"path": "a", "more": true} }
	for _, of := range []*Registry{r, nil, {}} {
		s, faults := of.AnswerSchema([]byte(searchSchema))
		if len(faults) > 0 || s.JudgeAnswer([]byte(more), decode) != nil || len(s.JudgeAnswer([]byte(`{"path":1}`), func() any { return map[string]any{"path": true} })) != 1 {
			t.Errorf("found %v", faults)
		}
	}
	first, _ := r.AnswerSchema([]byte(searchSchema))
	with, _, err := r.With([]Brought{{Name: "a", InputSchema: []byte(searchSchema)}})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := with.Lookup("a")
	if again, _ := r.AnswerSchema([]byte(searchSchema)); again != first || e.input == first || len(e.Evaluate(map[string]any{"path": "a", "more": true})) == 0 {
		t.Error("what a schema is for is not told apart, or it is compiled twice")
	}
	// What is cured states no more than before, and what cannot be judged is said.
	if s, faults := r.AnswerSchema([]byte(`{"type":"object","example":{},"properties":{"a":{"type":"object"}}}`)); len(faults) > 0 || s.JudgeAnswer([]byte(`{"a":{"b":1}}`), decode) != nil {
		t.Errorf("found %v", faults)
	}
	if s, faults := r.AnswerSchema([]byte(`{"properties":{"a":{"pattern":"(?!a)"}}}`)); s != nil || len(faults) != 1 || faults[0].Pointer != "/properties/a/pattern" {
		t.Errorf("found %v", faults)
	}
}
