package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// evaluators are all that evaluate values by one schema.
type evaluators struct {
	*Schema
	oracle *oracle.Schema
}

// check compares what the program's schema has without nodes with what the nodes of the library say. It
// returns what is wrong.
func (e *evaluators) check() string {
	library := e.library()
	if library.err != nil {
		return "kaptinlin/jsonschema cannot be had: " + library.err.Error()
	}
	if problem := library.root.complexity(); problem != "" {
		return problem
	}
	bounded, secrets := false, e.secretAdditional
	library.root.walk(func(n *node) { bounded, secrets = bounded || n.boundary != "", secrets || n.secret })
	if bounded != e.HasBoundaries() || secrets != e.HasSecrets() {
		return fmt.Sprintf("boundaries %v, secrets %v; the nodes say %v, %v", e.HasBoundaries(), e.HasSecrets(), bounded, secrets)
	}
	return ""
}

// TestLargePlainSchema: a plain schema as large and deep as one may be, in which each object that is closed
// counts twice, is not too complex.
func TestLargePlainSchema(t *testing.T) {
	const chains, depth = 160, 61
	chain := `{"type":"string"}`
	for range depth {
		chain = `{"type":"object","properties":{"a":` + chain + `}}`
	}
	raw := json.RawMessage(`{"type":"object","properties":{` + listed(chains, `"p%d":`+chain) + `}}`)
	c, faults := newClosing(raw, Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	document := c.document(c.top, c.at)
	if compilePlain(document) == nil {
		t.Fatal("it is not plain")
	}
	nodes, f := buildNodes(document)
	if f != nil {
		t.Fatal(f)
	}
	if problem := nodes[0].complexity(); problem != "" {
		t.Errorf("of %d nodes: %s", len(nodes), problem)
	}
}

// compare evaluates one text by all of them. It returns what the program says, and why
// that is wrong, if it is.
func (e *evaluators) compare(raw []byte) (accepted bool, wrong string) {
	accepted = e.AcceptsJSON(raw)
	if err := rawjson.Check(raw, 1000); err != nil {
		var syntax *rawjson.Error
		if accepted && !(errors.As(err, &syntax) && syntax.Reason == rawjson.Duplicate) {
			return accepted, "the program accepts what is not strict JSON"
		}
		return accepted, ""
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return accepted, err.Error()
	}
	if !wellFormed(v, 1) {
		if accepted {
			return accepted, "the program accepts a value that is not well formed"
		}
		return accepted, ""
	}
	if _, refused := e.plain.Judge(raw); accepted || refused {
		found := e.decide(ofArguments("tool"), v, refused)
		if accepted != (len(found) == 0) {
			return accepted, fmt.Sprintf("the program says %v, kaptinlin/jsonschema %v", accepted, found)
		}
		if refused && found[0].Cause != nil {
			return accepted, "the refusal: " + found[0].Cause.Error()
		}
	}
	if !accepted {
		return accepted, ""
	}
	if args, is := v.(map[string]any); is && e.bounded {
		listed, asked := map[string]bool{}, map[string]bool{}
		for _, b := range e.Boundaries(args) {
			listed[b.Kind+" "+b.Value] = true
		}
		e.WithinJSON(raw, func(kind, text string) bool {
			asked[kind+" "+text] = true
			return true
		})
		if !maps.Equal(listed, asked) {
			return accepted, fmt.Sprintf("the program asks about %v, Boundaries lists %v", asked, listed)
		}
	}
	if err := e.oracle.Validate(v); err != nil {
		return accepted, "the program accepts what santhosh-tekuri/jsonschema refuses: " + err.Error()
	}
	return accepted, ""
}

// TestDifferential compares the programs of plain schemas, generated ones and those of the
// corpora, with kaptinlin/jsonschema, both ways, and with santhosh-tekuri/jsonschema, on generated and mutated values. CALLGATE_DIFFERENTIAL says on
// how many.
func TestDifferential(t *testing.T) {
	want, perSchema := 6000, 8
	if env := os.Getenv("CALLGATE_DIFFERENTIAL"); env != "" {
		n, err := strconv.Atoi(env)
		if err != nil {
			t.Fatal(err)
		}
		want, perSchema = n, 200
	}
	var published []json.RawMessage
	for _, corpus := range []string{"registry_github_mcp", "registry_docker_mcp", "bfcl_schemas"}[:numCorpora()] {
		published = append(published, publishedSchemas(t, corpus)...)
	}
	var seeds, schemas, values, accepted atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for values.Load() < int64(want) && !t.Failed() {
				seed := uint64(seeds.Add(1))
				a := newAuthor(seed)
				raw := a.definition()
				if seed%2 == 0 {
					raw = published[a.IntN(len(published))]
				}
				options := Options{Open: a.oneIn(4), Authored: a.oneIn(6)}
				s, faults := read(raw, options)
				if len(faults) > 0 || s.plain == nil {
					continue
				}
				o, err := oracleFor(s.closed)
				if err != nil {
					t.Error(err)
					return
				}
				e := &evaluators{s, o}
				if wrong := e.check(); wrong != "" {
					t.Errorf("seed %d: %s\nschema %s", seed, wrong, raw)
					return
				}
				s.bounded = s.bounded && !options.Authored // results have no boundaries
				schemas.Add(1)
				for text := range a.values(s, perSchema) {
					ok, wrong := e.compare(text)
					if wrong != "" {
						t.Errorf("seed %d: %s\nschema %s\nvalue %s", seed, wrong, s.closed, text)
						return
					}
					if ok {
						accepted.Add(1)
					}
					if n := values.Add(1); n%1_000_000 == 0 {
						fmt.Printf("%d values of %d schemas compared, %d accepted\n", n, schemas.Load(), accepted.Load())
					}
				}
			}
		})
	}
	workers.Wait()
	if n := values.Load(); schemas.Load() < n/1000 || accepted.Load() < n/8 {
		t.Errorf("%d schemas, %d values, %d accepted", schemas.Load(), n, accepted.Load())
	}
}

// values yields values for a schema: generated ones, and texts that are mutated.
func (a author) values(s *Schema, n int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range n {
			text := a.json(nil, a.value(s.library().root, 0))
			if i%8 == 7 {
				text = a.mutated(text)
			}
			if !yield(text) {
				return
			}
		}
	}
}

// numCorpora is the number of corpora of schemas that are read; the third is large.
func numCorpora() int {
	if testing.Short() {
		return 2
	}
	return 3
}

// publishedSchemas are the schemas of a corpus, as an import writes them.
func publishedSchemas(t testing.TB, corpus string) []json.RawMessage {
	t.Helper()
	var tools []publishedTool
	if corpus == "bfcl_schemas" {
		type task struct {
			Tools []publishedTool `json:"tools"`
		}
		for _, task := range corpora.Lines[task](t, corpora.Path(t, corpus, corpus+".jsonl.gz")) {
			tools = append(tools, task.Tools...)
		}
	} else {
		readJSON(t, corpora.Path(t, corpus, corpus+".json"), &tools)
	}
	var list []json.RawMessage
	for _, p := range tools {
		list = append(list, p.withMembers(t))
	}
	return list
}

// TestCorporaArePlain counts the plain schemas of the corpora, as docs/design.md states them.
func TestCorporaArePlain(t *testing.T) {
	for _, c := range []struct {
		corpus                      string
		plain, loaded               int
		samplesPlain, samplesLoaded int
	}{
		{"registry_github_mcp", 112, 117, 22, 24},
		{"registry_docker_mcp", 436, 436, 14, 15},
		{"bfcl_schemas", 8726, 8726, 39, 45},
	}[:numCorpora()] {
		compiler, isPlain, loaded := NewCompiler(), 0, 0
		for _, raw := range publishedSchemas(t, c.corpus) {
			s, faults := compiler.Compile(raw, Options{})
			if len(faults) > 0 {
				continue
			}
			loaded++
			if s.plain != nil {
				isPlain++
			}
		}
		if isPlain != corpora.Count(c.corpus, c.plain, c.samplesPlain) || loaded != corpora.Count(c.corpus, c.loaded, c.samplesLoaded) {
			t.Errorf("%s: %d of %d are plain", c.corpus, isPlain, loaded)
		}
	}
}
