package grammar_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/grammar"
	"github.com/callgate/callgate/internal/corpora"
	"github.com/callgate/callgate/registry"
)

// failer is a test, or the test of a random case.
type failer interface {
	Helper()
	Fatal(...any)
}

// callSchema compiles the JSON Schema of the calls, with an evaluator that is not ours.
func callSchema(t failer, g *grammar.Grammar) *jsonschema.Schema {
	t.Helper()
	var b bytes.Buffer
	if err := g.Write(&b, "json-schema"); err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("calls.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("calls.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The JSON Schema accepts a call exactly where the gateway does: calls of the grammar, and
// calls that were changed at random.
func agrees(t *testing.T, tools *registry.Registry) (calls, others int) {
	g := grammar.New(toolsOf(tools, all), grammar.Options{})
	schema := callSchema(t, g)
	w := write(t, g, "gbnf")
	s := newSampler(w.rules, 11)
	for range *samples {
		var call any
		decode := json.NewDecoder(strings.NewReader(s.sample(w.start)))
		decode.UseNumber()
		if err := decode.Decode(&call); err != nil {
			t.Fatal(err)
		}
		for change := range 3 {
			for range change {
				call = changed(s.random, call)
			}
			text, err := json.Marshal(call)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			ours, theirs := judged(tools, string(text)), schema.Validate(value)
			if (ours == nil) != (theirs == nil) {
				t.Fatalf("the gateway says %v, the schema %v:\n%s", ours, theirs, text)
			}
			if ours == nil {
				calls++
			} else {
				others++
			}
		}
	}
	return calls, others
}

// changed changes one place of a value.
func changed(r *rand.Rand, v any) any {
	replacements := []any{nil, true, "", "x", json.Number("0"), json.Number("-1.5"), json.Number("1e2"), []any{}, map[string]any{}, map[string]any{"x": json.Number("1")}}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch r.IntN(8) {
			case 0:
				delete(v, name)
				return v
			case 1:
				v[name+"x"] = v[name]
				return v
			default:
				v[name] = changed(r, v[name])
				return v
			}
		}
	case []any:
		if len(v) > 0 && r.IntN(3) > 0 {
			i := r.IntN(len(v))
			if r.IntN(3) == 0 {
				return append(v, v[i])
			}
			v[i] = changed(r, v[i])
			return v
		}
	}
	return replacements[r.IntN(len(replacements))]
}

func TestSchema(t *testing.T) {
	loaded, err := configs.Load(corpora.Testdata("vectors", "config", "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	calls, others := agrees(t, loaded.Tools)
	for _, c := range schemas {
		t.Run(c.name, func(t *testing.T) {
			tools, err := registryOf(t, "a.b", c.schema)
			if err != nil {
				t.Fatal(err)
			}
			accepted, refused := agrees(t, tools)
			calls, others = calls+accepted, others+refused
		})
	}
	if calls < *samples*len(schemas) || others < *samples*len(schemas)/2 {
		t.Errorf("%d calls and %d other texts were compared", calls, others)
	}
}

// A member that a call may have under the name of a keyword is not taken for one.
func TestSchemaWithKeywordsAsNames(t *testing.T) {
	tools, err := registryOf(t, "a.b", `{"type":"object","properties":{"$ref":{"type":"null"},"enum":{"$ref":"#/$defs/tree"},"$defs":{"const":1}}}`)
	if err != nil {
		t.Fatal(err)
	}
	agrees(t, tools)
	accepted(t, tools, grammar.Options{})
}

type published struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// The tools of a public benchmark: nearly all can be written, and their true calls are in
// the grammar, but for those that it leaves out and says so.
func TestBFCL(t *testing.T) {
	type task struct {
		ID          string      `json:"id"`
		Tools       []published `json:"tools"`
		GroundTruth []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Errors    []string        `json:"schema_errors"`
		} `json:"ground_truth"`
	}
	tools, leftOut, calls, missed := 0, 0, 0, 0
	for i, task := range corpora.Lines[task](t, corpora.Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz")) {
		if i%every(t) != 0 {
			continue
		}
		for _, p := range task.Tools {
			r, err := registry.New([]registry.Tool{{Name: p.Name, InputSchema: p.InputSchema, Run: client}})
			if err != nil {
				continue // an object that declares no members: an import marks it
			}
			tools++
			g := grammar.New(toolsOf(r, all), grammar.Options{})
			if len(g.LeftOut) > 0 {
				leftOut++
				t.Logf("%s: %s", task.ID, g.LeftOut[0].Reason)
				continue
			}
			if g.Write(io.Discard, "gbnf") != nil {
				t.Logf("%s: no call of %s is valid", task.ID, p.Name)
				continue
			}
			w := write(t, g, "gbnf")
			s := newSampler(w.rules, uint64(i))
			for range 20 {
				text := s.sample(w.start)
				if err := judged(r, text); err != nil {
					t.Fatalf("%s: %v:\n%s", task.ID, err, text)
				}
			}
			for _, truth := range task.GroundTruth {
				if truth.Name != p.Name || len(truth.Errors) > 0 || len(truth.Arguments) > 2000 {
					continue
				}
				calls++
				text := `{"tool":{"name":"` + p.Name + `","arguments":` + string(truth.Arguments) + `}}`
				if err := judged(r, text); err != nil {
					t.Errorf("%s: %v", task.ID, err)
				}
				if !w.matches(w.start, text) {
					missed++
					t.Logf("%s: not in the grammar: %v: %s", task.ID, g.Notes, text)
				}
			}
		}
	}
	t.Logf("%d tools, %d left out; %d true calls, %d not in the grammar", tools, leftOut, calls, missed)
	if tools < 30 || calls < 10 || leftOut*100 > tools || missed*20 > calls {
		t.Errorf("%d tools, %d left out; %d true calls, %d not in the grammar", tools, leftOut, calls, missed)
	}
}

// The schemas of the official suite: what can be written gives only accepted calls.
func TestSuite(t *testing.T) {
	type suiteCase struct {
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"schema"`
		Tests       []struct {
			Data json.RawMessage `json:"data"`
		} `json:"tests"`
	}
	loaded, leftOut, valid, missed := 0, 0, 0, 0
	files, err := filepath.Glob(filepath.Join(corpora.Path(t, "schema_suite", "tests", "draft2020-12"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []suiteCase
		if err := json.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if every(t) > 1 && i%5 != 0 {
				continue
			}
			tools, err := registryOf(t, "a.b", string(c.Schema))
			if err != nil {
				continue
			}
			loaded++
			g := grammar.New(toolsOf(tools, all), grammar.Options{})
			if len(g.LeftOut) > 0 {
				leftOut++
				continue
			}
			var b strings.Builder
			if g.Write(&b, "lark") != nil {
				continue // no value is valid
			}
			w := write(t, g, "lark")
			s := newSampler(w.rules, 3)
			for range 20 {
				text := s.sample(w.start)
				if err := judged(tools, text); err != nil {
					t.Errorf("%s: %s: %v:\n%s", filepath.Base(file), c.Description, err, text)
					break
				}
			}
			for _, test := range c.Tests {
				text := `{"tool":{"name":"a.b","arguments":{"v":` + string(test.Data) + `}}}`
				within, accepted := w.matches(w.start, text), judged(tools, text) == nil
				if within && !accepted {
					t.Errorf("%s: %s: a refused call is in the grammar: %s", filepath.Base(file), c.Description, text)
				}
				if accepted {
					valid++
					if !within && !strings.Contains(strings.Join(g.Notes, "\n"), "items must differ") {
						missed++
					}
				}
			}
		}
	}
	t.Logf("%d schemas, %d left out; %d accepted values, %d not in the grammar", loaded, leftOut, valid, missed)
	if loaded < 40 || valid < 40 || leftOut*2 > loaded || missed*10 > valid {
		t.Errorf("%d schemas, %d left out; %d accepted values, %d not in the grammar", loaded, leftOut, valid, missed)
	}
}

// every is the step through the tasks of the corpus: all of them where many samples are
// asked for, and of the sample that stands in for it.
func every(t *testing.T) int {
	if *samples > 300 || !corpora.Whole("bfcl_schemas") {
		return 1
	}
	return 25
}
