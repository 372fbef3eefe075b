// Package acptest is for tests of the Agent Client Protocol: a recorder, which holds every
// message of both directions against the protocol's stable schema and against its rules, and
// a scripted client and a scripted agent. It shares no code with the faces under test.
package acptest

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
)

// Side is one end of a connection, and also the direction of the messages that it sends.
type Side int

// The ends of a connection: an editor, and a program that runs a model and its tools.
const (
	Client Side = iota
	Agent
)

func (s Side) String() string { return [...]string{"client", "agent"}[s] }

func (s Side) other() Side { return 1 - s }

// schemas are the definitions of the stable schema by method and direction.
type schemas struct {
	open, closed  *corpora.Components
	requests      [2]map[string]string // by the side that sends it and the method: the definition of its parameters
	notifications [2]map[string]string
	results       map[string]string // by the method of the request
}

const schemaFile = "v1.schema.json"

// stable are the schemas of this process: to read and compile them takes longer than most tests.
var stable struct {
	once sync.Once
	read *schemas
}

func readSchemas(t testing.TB) *schemas {
	t.Helper()
	stable.once.Do(func() { stable.read = parseSchemas(t) })
	if stable.read == nil {
		t.Fatal("the schema could not be read, as an earlier test says")
	}
	return stable.read
}

func parseSchemas(t testing.TB) *schemas {
	t.Helper()
	data, err := os.ReadFile(corpora.Testdata("schemas", "acp", schemaFile))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Defs map[string]struct {
			Side   string `json:"x-side"` // the side that implements the method
			Method string `json:"x-method"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	s := &schemas{
		open:    corpora.Definitions(t, "acp", schemaFile),
		closed:  corpora.Closed(t, nameTheTool, "acp", schemaFile),
		results: map[string]string{},
	}
	for side := range s.requests {
		s.requests[side], s.notifications[side] = map[string]string{}, map[string]string{}
	}
	for name, d := range document.Defs {
		senders := map[string][]Side{"agent": {Client}, "client": {Agent}, "protocol": {Client, Agent}}[d.Side]
		for _, sender := range senders {
			switch {
			case strings.HasSuffix(name, "Notification"):
				s.notifications[sender][d.Method] = name
			case strings.HasSuffix(name, "Request"):
				s.requests[sender][d.Method] = name
			case strings.HasSuffix(name, "Response"):
				s.results[d.Method] = name
			default:
				t.Fatalf("%s: %s is no request, notification or response", schemaFile, name)
			}
		}
	}
	return s
}

// nameTheTool adds the member "name" of tool calls, which is stable since the release that
// our copy of the schema is of.
func nameTheTool(definitions map[string]any) {
	for _, definition := range []string{"ToolCall", "ToolCallUpdate"} {
		d, _ := definitions[definition].(map[string]any)
		properties, _ := d["properties"].(map[string]any)
		properties["name"] = map[string]any{"type": []any{"string", "null"}}
	}
}

// check holds a value against a definition: of a side of ours to the letter, of a foreign
// one as the schema has it, which lets unknown members pass.
func (s *schemas) check(ours bool, definition string, value []byte) error {
	if ours {
		return s.closed.Check(definition, value)
	}
	return s.open.Check(definition, value)
}
