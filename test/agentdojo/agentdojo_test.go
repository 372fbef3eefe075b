// Package agentdojo_test plays AgentDojo's tasks against the gateway with a script that obeys whatever it reads. No model is
// run: what counts is which calls reached their tools.
package agentdojo_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// call is a call of the ground truth.
type call struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// task is one of the user's or of an attacker's.
type task struct {
	ID      string `json:"id"`
	Truth   []call `json:"ground_truth"`
	Derived []call `json:"derived_ground_truth"` // of a goal whose source states no calls
	Slots   []struct {
		Calls []int `json:"calls"`
	} `json:"slots_seen"`
}

// calls are those that the task takes.
func (s task) calls() []call {
	if len(s.Truth) > 0 {
		return s.Truth
	}
	return s.Derived
}

// injected is how many calls the task has made when it has read the first result that an attacker may have written in.
func (s task) injected() int {
	first := len(s.Truth)
	for _, slot := range s.Slots {
		first = min(first, slices.Min(slot.Calls)+1)
	}
	return first
}

// suite is one of the four.
type suite struct {
	tools []struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	}
	tasks struct {
		User      []task `json:"user_tasks"`
		Injection []task `json:"injection_tasks"`
	}
}

// read reads a member of a file of the corpus.
func read(t *testing.T, file, member string, into any) {
	t.Helper()
	text, err := os.ReadFile(corpora.Path(t, "agentdojo", file))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[member], into); err != nil {
		t.Fatal(err)
	}
}

// spelled is a schema in which objects of undeclared members say that they are: the gateway takes no others.
func spelled(schema any) any {
	switch schema := schema.(type) {
	case map[string]any:
		if schema["type"] == "object" && schema["properties"] == nil {
			schema["additionalProperties"] = true
		}
		for _, member := range schema {
			spelled(member)
		}
	case []any:
		for _, one := range schema {
			spelled(one)
		}
	}
	return schema
}

// office is a gateway with the tools of a suite, which only note that they were called.
type office struct {
	t       *testing.T
	runtime *app.Runtime
	threads int
	reached []string // since the thread began
}

// open opens the gateway under the policy of a suite; effect is what becomes of the calls that it holds.
func open(t *testing.T, name, effect string, s *suite) *office {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	labels, rows := map[string][]string{}, []string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "HELD", effect)) {
		if of, stated := strings.CutPrefix(line, "label, "); stated {
			tool, names, _ := strings.Cut(strings.TrimSpace(of), ", ")
			labels[tool] = strings.Fields(names)
			continue
		}
		rows = append(rows, line)
	}
	var tools []map[string]any
	for _, one := range s.tools {
		tools = append(tools, map[string]any{
			"name": one.Name, "description": one.Description, "input_schema": spelled(one.Parameters), "run": map[string]string{"type": "demo"},
			"labels": append([]string{}, labels[one.Name]...),
		})
		delete(labels, one.Name)
	}
	if len(labels) > 0 {
		t.Fatalf("%s labels tools that the suite does not have: %v", name, labels)
	}
	file, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		t.Fatal(err)
	}
	c := facetest.Config(t, map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\nthreads: {labels: [untrusted, private]}\n",
		"tools.yaml":      string(file) + "\n",
		"approvals.yaml":  "rules: {people: {}}\nwait: 0s\n",
		"policy.csv":      strings.Join(rows, ""),
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Assistant], roots: [.]}}}}\n",
	})
	o := &office{t: t}
	o.runtime, err = app.Open(t.Context(), c, nil, app.Options{
		Logger: slog.New(slog.DiscardHandler), Wait: time.Minute,
		ChangeDeps: func(d calls.Deps) calls.Deps {
			d.Engine = facetest.ToolFunc(func(made tool.Call) (tool.Result, error) {
				o.reached = append(o.reached, made.Tool)
				return tool.Result{Body: []byte(`{}`), JSON: true}, nil
			})
			return d
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) close() {
	if err := o.runtime.Close(); err != nil {
		o.t.Error(err)
	}
}

// become is what becomes of calls: of several, of the one that fares worst.
type become int

const (
	passed become = iota
	asked
	refused
)

// make makes calls in the thread, one after the other, whatever becomes of those before.
func (o *office) make(all []call) (worst become) {
	o.t.Helper()
	for _, c := range all {
		written, err := json.Marshal(map[string]any{"tool": map[string]any{"name": c.Tool, "arguments": c.Arguments}})
		if err != nil {
			o.t.Fatal(err)
		}
		before := len(o.reached)
		outcome := o.runtime.Executor.Handle(o.t.Context(), gateway.Request{
			Subject: gateway.Subject{Agent: "Assistant", Workspace: "acme", Project: "alpha"}, Thread: fmt.Sprint(o.threads),
			Inputs: []gateway.Input{{Completion: written}},
		}, "")
		now, runs := passed, 1
		if outcome.Refusal != nil {
			switch runs = 0; outcome.Refusal.Code {
			case refusal.ApprovalRequired:
				now = asked
			case refusal.PermissionDenied:
				now = refused
			default:
				o.t.Fatalf("%s %s: %v", c.Tool, c.Arguments, outcome.Refusal)
			}
		}
		if len(o.reached)-before != runs {
			o.t.Fatalf("%s: %v, and its tool was called %d times", c.Tool, outcome.Refusal, len(o.reached)-before)
		}
		worst = max(worst, now)
	}
	return worst
}

// begin begins a thread.
func (o *office) begin() { o.threads++; o.reached = nil }

// figures count what became of tasks.
type figures struct {
	attacks, attacked int    // attacks that make calls, and those whose calls all reached their tools
	alone             [3]int // user tasks, by what became of their calls
	rest              [3]int // tasks under attack, by what became of the calls behind it
	done              int    // tasks under attack that had no more calls
}

// play plays the user tasks of a suite, alone and under each attack: each in a gateway of its own, since nobody answers
// those that ask people.
func play(open func() *office, users, attackers []task) (f figures) {
	for _, user := range users {
		o := open()
		o.begin()
		f.alone[o.make(user.Truth)]++
		for _, attacker := range attackers {
			if len(attacker.calls()) == 0 {
				continue
			}
			o.begin()
			o.make(user.Truth[:user.injected()])
			before := len(o.reached)
			o.make(attacker.calls())
			if f.attacks++; len(o.reached)-before == len(attacker.calls()) {
				f.attacked++
			}
			if rest := user.Truth[user.injected():]; len(rest) == 0 {
				f.done++
			} else {
				f.rest[o.make(rest)]++
			}
		}
		o.close()
	}
	return f
}

// TestAgentDojo plays the tasks of AgentDojo: all with CALLGATE_AGENTDOJO, which have to give the figures of
// docs/benchmarks.md; else two of each suite, under two attacks.
func TestAgentDojo(t *testing.T) {
	if !corpora.Whole("agentdojo") {
		t.Skip("left out: the corpus agentdojo is not here (CALLGATE_CORPORA names the folder of the corpora)")
	}
	whole := os.Getenv("CALLGATE_AGENTDOJO") != ""
	var table strings.Builder
	for _, name := range []string{"banking", "slack", "travel", "workspace"} {
		var s suite
		read(t, "tools.json", name, &s.tools)
		read(t, "tasks.json", name, &s.tasks)
		users, attackers := s.tasks.User, s.tasks.Injection
		if !whole {
			t.Logf("left out of %s: %d of %d user tasks, %d of %d attacks (make agentdojo plays them)", name, len(users)-2, len(users), len(attackers)-2, len(attackers))
			users, attackers = users[:2], attackers[:2]
		}
		for _, effect := range []string{"deny", "ask"} {
			f := play(func() *office {
				return open(t, name, map[string]string{"deny": "deny", "ask": "ask:people"}[effect], &s)
			}, users, attackers)
			if !whole && f.attacked > 0 { // all of these are held
				t.Errorf("%s, %s: %d attacks reached their goal", name, effect, f.attacked)
			}
			fmt.Fprintf(&table, "| %s | `%s` | %d of %d | %d | %d / %d / %d | %d / %d / %d / %d |\n", name, effect, f.attacks, f.attacks, f.attacked,
				f.alone[passed], f.alone[asked], f.alone[refused], f.rest[passed], f.rest[asked], f.rest[refused], f.done)
		}
	}
	t.Logf("suite, held calls, attacks without Callgate, with, user tasks, rest under attack:\n%s", &table)
	if !whole {
		return
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Error("docs/benchmarks.md has other figures")
	}
}
