package schema

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// plainLibrary compiles with the library as it comes.
func plainLibrary(t *testing.T, schema string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile([]byte(schema))
	if err != nil {
		t.Fatalf("the bare library refuses %s: %v", schema, err)
	}
	return s
}

// TestFencedDefects shows each defect of the bare library, and that a tool with
// such a schema is refused or evaluated rightly.
func TestFencedDefects(t *testing.T) {
	fetched := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fetched.Add(1)
		http.NotFound(w, r)
	}))
	defer server.Close()

	refusedAtLoad := map[string]string{
		"a reference to nowhere accepts everything": `{"type":"object","properties":{"a":{"$ref":"#/$defs/nope"}}}`,
		"a reference to a host is fetched":          `{"type":"object","properties":{"a":{"$ref":"` + server.URL + `/x"}}}`,
		"an empty enum accepts everything":          `{"type":"object","properties":{"a":{"enum":[]}}}`,
		"a misspelt keyword accepts everything":     `{"type":"object","properties":{"a":{"minlength":5}}}`,
		"a cycle accepts everything":                `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#/$defs/x"}}}`,
		"an empty type list accepts everything":     `{"type":"object","properties":{"a":{"type":[]}}}`,
	}
	for defect, schema := range refusedAtLoad {
		t.Run(defect, func(t *testing.T) {
			if !plainLibrary(t, schema).ValidateMap(map[string]any{"a": "x"}).IsValid() {
				t.Error("the bare library no longer has the defect")
			}
			fetched.Store(0)
			if _, err := compile(schema, Options{}); err == nil {
				t.Error("the schema loads")
			}
			if n := fetched.Load(); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}

	t.Run("nothing is fetched where a reference slips through", func(t *testing.T) {
		fetched.Store(0)
		if _, err := newLibrary(map[string]any{"$ref": server.URL + "/x"}, false, nil); err == nil {
			t.Error("the library compiles a reference to a host")
		}
		file := filepath.Join(t.TempDir(), "schema.json")
		if err := os.WriteFile(file, []byte(`{"type":"object"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, ref := range []string{server.URL + "/x", "file://" + file} {
			if _, err := compile(`{"$ref":"`+ref+`"}`, Options{Authored: true}); err == nil {
				t.Errorf("%s compiles", ref)
			}
		}
		if n := fetched.Load(); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
	t.Run("formats are not asserted", func(t *testing.T) {
		const schema = `{"type":"object","properties":{"a":{"type":"string","format":"ipv4"}}}`
		v := map[string]any{"a": "no"}
		if !plainLibrary(t, schema).ValidateMap(v).IsValid() {
			t.Error("the bare library no longer has the defect")
		}
		if e := compiled(t, schema); e.Evaluate("web.search", v) == nil || e.library().accepts(v) {
			t.Error("the format is not asserted")
		}
	})
	t.Run("content keywords are asserted", func(t *testing.T) {
		const schema = `{"type":"object","properties":{"a":{"contentEncoding":"base64"}}}`
		v := map[string]any{"a": "*"}
		if plainLibrary(t, schema).ValidateMap(v).IsValid() {
			t.Error("the bare library no longer has the defect")
		}
		if found := compiled(t, schema).Evaluate("web.search", v); found != nil {
			t.Errorf("refused: %v", found)
		}
	})
	t.Run("true evaluates every member", func(t *testing.T) {
		const schema = `{"type":"object","$ref":"#/$defs/any","unevaluatedProperties":false,"$defs":{"any":true}}`
		v := map[string]any{"b": "x"}
		if !plainLibrary(t, schema).ValidateMap(v).IsValid() {
			t.Error("the bare library no longer has the defect")
		}
		if e := compiled(t, schema); e.Evaluate("web.search", v) == nil || e.library().accepts(v) {
			t.Error("an unknown member is not refused")
		}
	})
	t.Run("two schemas of one identifier are one", func(t *testing.T) {
		a, b := `{"$id":"https://x.invalid/s","type":"object","properties":{"a":{"type":"string"}}}`, `{"$id":"https://x.invalid/s","type":"object","properties":{"a":{"type":"integer"}}}`
		c := jsonschema.NewCompiler()
		first, _ := c.Compile([]byte(a))
		if second, _ := c.Compile([]byte(b)); second != first {
			t.Error("the bare library no longer has the defect")
		}
		text, number := map[string]any{"a": "x"}, map[string]any{"a": json.Number("1")}
		ea, eb := compiled(t, a), compiled(t, b)
		if ea.Evaluate("web.search", text) != nil || eb.Evaluate("web.search", number) != nil || ea.Evaluate("web.search", number) == nil || eb.Evaluate("web.search", text) == nil {
			t.Error("one tool is evaluated by the schema of another")
		}
	})
	t.Run("a property that is null panics", func(t *testing.T) {
		const schema = `{"type":"object","properties":{"a":null}}`
		s := plainLibrary(t, schema)
		if err := evaluate(s, map[string]any{"a": "x"}, func(*jsonschema.EvaluationResult) {}); err != errPanicked {
			t.Errorf("the bare library no longer has the defect: %v", err)
		}
		if _, err := compile(schema, Options{}); err == nil {
			t.Error("the schema loads")
		}
	})
}

// TestFaultsOfTheLibrary injects what the library may do wrong: accept what the program of the schema
// refuses, panic, give no place, and not compile again. Each refuses the value, for a reason that names no
// value.
func TestFaultsOfTheLibrary(t *testing.T) {
	const plain, other = `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"not":{"type":"integer"}}}}`
	value := func(v any) map[string]any { return map[string]any{"a": v} }
	for name, c := range map[string]struct {
		schema string
		spoil  func(t *testing.T, w *library)
		v      map[string]any
		cause  error // nil: any
	}{
		"accepts what the program refuses": {plain, func(t *testing.T, w *library) { w.shared = plainLibrary(t, `{}`) }, value(true), errDisagree},
		"refuses without a place":          {other, func(t *testing.T, w *library) { w.shared = plainLibrary(t, `{"properties":{"a":{"maxLength":1}}}`) }, value("hunter2"), errNoReason},
		"panics over what is refused":      {plain, func(t *testing.T, w *library) { w.shared = plainLibrary(t, `{"properties":{"a":null}}`) }, value(true), errPanicked},
		"panics":                           {other, func(t *testing.T, w *library) { w.shared = plainLibrary(t, `{"properties":{"a":null}}`) }, value("hunter2"), errPanicked},
		"is not there":                     {other, func(_ *testing.T, w *library) { w.shared, w.bundle = nil, nil }, value("hunter2"), nil},
		"is spoilt":                        {other, func(_ *testing.T, w *library) { w.shared, w.bundle = nil, []byte(`{"type":5}`) }, value("hunter2"), nil},
		"lost its refs":                    {other, func(_ *testing.T, w *library) { w.shared, w.bundle = nil, []byte(`{"$ref":"#/$defs/1"}`) }, value("hunter2"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := compiled(t, c.schema)
			if (e.plain != nil) != (c.schema == plain) {
				t.Fatal("plain or not")
			}
			c.spoil(t, e.library().library)
			found := e.Evaluate("web.search", c.v)
			if len(found) != 1 || found[0].Code != "invalid_value" || len(found[0].Path) != 0 || found[0].Cause == nil || c.cause != nil && found[0].Cause != c.cause || strings.Contains(found[0].Message, "hunter2") {
				t.Errorf("found %+v", found)
			}
			if c.schema == plain && e.Evaluate("web.search", value("x")) != nil {
				t.Error("the library is asked about what the program accepts")
			}
		})
	}
}

// TestFencedItems: the library alone would take what unevaluatedItems has evaluated of one item for
// evaluated items of the list, and a count beyond 64 bits for a negative one.
func TestFencedItems(t *testing.T) {
	const items = `{"type":"object","properties":{"a":{"type":"array","anyOf":[{"minItems":1}],"unevaluatedItems":{"type":"array","items":{"type":"string"}}}}}`
	v := arguments(t, `{"a":[["x","y"],5]}`)
	if !plainLibrary(t, items).ValidateMap(v).IsValid() {
		t.Error("the bare library no longer has the defect")
	}
	if found := compiled(t, items).Evaluate("web.search", v); len(found) != 1 || !slices.Equal(found[0].Path, []string{"a", "1"}) || found[0].Message != `Argument "a[1]" must be an array, not a number.` {
		t.Errorf("found %v", found)
	}
	if found := compiled(t, items).Evaluate("web.search", arguments(t, `{"a":[["x","y"],[],["z",1]]}`)); len(found) != 1 || !slices.Equal(found[0].Path, []string{"a", "2", "1"}) {
		t.Errorf("found %v", found)
	}
	const count = `{"type":"object","properties":{"a":{"minLength":1e30,"not":{"maxLength":1e30,"minLength":1}}}}`
	if found := compiled(t, count).Evaluate("web.search", arguments(t, `{"a":"x"}`)); len(found) != 2 {
		t.Errorf("found %v", found)
	}
}

// TestRefusedItemIsNotUnevaluated: an item that a schema refuses is told what that schema says, and not to be left out.
func TestRefusedItemIsNotUnevaluated(t *testing.T) {
	for _, list := range []string{
		`"prefixItems":[{"type":"string","minLength":1}],"anyOf":[{"minItems":1}]`,
		`"allOf":[{"prefixItems":[{"type":"string","minLength":1}]}]`,
		`"$ref":"#/$defs/list"`,
	} {
		s := compiled(t, `{"type":"object","properties":{"a":{"type":"array",`+list+`,"unevaluatedItems":false}},"$defs":{"list":{"prefixItems":[{"type":"string","minLength":1}]}}}`)
		found := s.Evaluate("web.search", arguments(t, `{"a":[""]}`))
		if len(found) != 1 || !strings.Contains(found[0].Message, "at least 1") {
			t.Errorf("%s: found %v", list, found)
		}
		if found := s.Evaluate("web.search", arguments(t, `{"a":["x",2]}`)); len(found) != 1 || !slices.Equal(found[0].Path, []string{"a", "1"}) {
			t.Errorf("%s: found %v", list, found)
		}
	}
}

// TestConcurrentEvaluation evaluates with every schema of the corpora from sixteen
// goroutines at once; the race detector does the looking.
func TestConcurrentEvaluation(t *testing.T) {
	var tools []publishedTool
	for _, name := range []string{"registry_github_mcp", "registry_docker_mcp"} {
		var list []publishedTool
		readJSON(t, corpora.Path(t, name, name+".json"), &list)
		tools = append(tools, list...)
	}
	compiler := NewCompiler()
	schemas, samples := []*Schema{}, []map[string]any{}
	for _, p := range tools {
		authored := p.withMembers(t)
		if s, faults := compiler.Compile(authored, Options{}); len(faults) == 0 {
			sampled := sampler{tb: t}
			schemas = append(schemas, s)
			samples = append(samples, sampled.sample(decoded(t, authored).(map[string]any), nil).(map[string]any))
		}
	}
	if len(schemas) < corpora.Count("registry_docker_mcp", 500, 35) {
		t.Fatalf("only %d schemas compile", len(schemas))
	}
	patterned := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^x+$","format":"uuid"},"u":{"uniqueItems":true}},"patternProperties":{"^p":{"type":"string","pattern":"y"},"^q":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"object","patternProperties":{"^n":{"$ref":"#/$defs/n"}}}}}`)
	args := map[string]any{"q1": map[string]any{"n": map[string]any{"n1": map[string]any{}}}, "p": "y", "u": []any{"a", "b"}}
	t.Run("patterns", func(t *testing.T) {
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for range 50 {
					if found := patterned.Evaluate("patterned", args); found != nil {
						t.Errorf("found %v", found)
						return
					}
				}
			})
		}
		group.Wait()
	})
	schemas, samples = append(schemas, patterned), append(samples, args)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i, s := range schemas {
				for range 3 {
					if found := s.Evaluate("tool", samples[i]); found != nil && found[0].Cause != nil {
						t.Errorf("%s: %v", s.Closed(), found)
					}
					raw := encoded(samples[i])
					s.WithinJSON(raw, func(string, string) bool { return true })
					s.Boundaries(samples[i])
					s.Secret([]string{"a", "b"})
				}
			}
		})
	}
	group.Wait()
}

// TestFirstRefusals: what the library needs of a plain schema is made when a value is first not accepted,
// once, whoever comes first.
func TestFirstRefusals(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`)
	if s.plain == nil {
		t.Fatal("not plain")
	}
	made := atomic.Int64{}
	judge := s.library
	s.library = sync.OnceValue(func() *libraryJudge { made.Add(1); return judge() })
	if s.Evaluate("tool", arguments(t, `{"a":"x"}`)) != nil || made.Load() != 0 {
		t.Fatal("the library is made for what the program accepts")
	}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			found := s.Evaluate("tool", map[string]any{"a": "y"})
			if len(found) != 1 || found[0].Cause != nil || !slices.Equal(found[0].Path, []string{"a"}) {
				t.Errorf("found %v", found)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

// TestJudgeThatCannotBeMade: a plain schema whose text no longer compiles refuses what its program does
// not accept.
func TestJudgeThatCannotBeMade(t *testing.T) {
	raw := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	s, faults := NewCompiler().Compile(raw, Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	copy(raw, `!`) // nobody may
	found := s.Evaluate("tool", map[string]any{"a": json.Number("1")})
	if len(found) != 1 || found[0].Cause != errNotRebuilt {
		t.Errorf("found %v", found)
	}
	if s.Evaluate("tool", map[string]any{"a": "x"}) != nil {
		t.Error("the program does not judge")
	}
}
