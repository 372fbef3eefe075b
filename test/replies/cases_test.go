package replies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
)

// part is one part of a reply.
type part struct {
	kind string // text, thought, refusal, cite, hosted, call or block
	name string // of a call
	text string
}

// reply is one reply of the model.
type reply struct {
	parts []part
	end   string
	as    map[string]bool
}

// calls reports whether the reply has a call.
func (r *reply) calls() bool {
	return slices.ContainsFunc(r.parts, func(p part) bool { return p.kind == "call" })
}

// model is the name of the model that the reply states.
func (r *reply) model() string {
	if r.as["called_model"] {
		return `"<tool_call>HIDDEN"`
	}
	return `"model-1"`
}

// failure is an error that says nothing, in an answer that has one.
func (r *reply) failure() string {
	if r.as["empty_error"] {
		return `,"error":{"code":0,"message":null,"details":[]}`
	}
	return ""
}

// inUsage are more members of the usage.
func (r *reply) inUsage() string {
	if r.as["called_usage"] {
		return `,"tier":"<tool_call>HIDDEN"`
	}
	return ""
}

// testCase is a case of the table.
type testCase struct {
	name    string
	lines   []string // as they stand in the file, without what comes out
	on      []string // wires; nil: all
	rules   []string
	hooks   string
	people  bool
	budget  int64 // of tokens; 0: none
	tools   []string
	choice  string
	only    string // the tool that alone may be chosen
	single  bool
	output  string        // json_object, or the schema of the answer; empty: it may be prose
	differs bool          // a stream may have another verdict
	beat    time.Duration // how long a stream is silent before a sign of life; 0: usual
	replies []reply
	want    []string
}

// isOn reports whether an API that can say parts of some kinds can say the case.
func (c *testCase) isOn(name string, says []string) bool {
	if len(c.on) > 0 && !slices.Contains(c.on, name) {
		return false
	}
	return !slices.ContainsFunc(c.replies, func(r reply) bool {
		return slices.ContainsFunc(r.parts, func(p part) bool { return p.kind != "block" && !slices.Contains(says, p.kind) })
	})
}

// has reports whether the case sets a rule.
func (c *testCase) has(rule string) bool { return slices.Contains(c.rules, rule) }

// secret is put together here, so that no scanner takes a file for one that has a secret.
var secret = "gh" + "p_" + strings.Repeat("aB3", 12)

// file is a file of cases, with the comment that it begins with.
type file struct {
	path, head string
	cases      []*testCase
}

func readFiles(t *testing.T) (all []*file) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpora.Testdata("replies"), "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := &file{path: path}
		for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if err := f.read(line); err != nil {
				t.Fatalf("%s:%d: %v", path, i+1, err)
			}
		}
		for _, c := range f.cases {
			if names[c.name] || len(c.replies) == 0 {
				t.Fatalf("%s: the case %q stands twice, or has no reply", path, c.name)
			}
			names[c.name] = true
			if c.tools == nil {
				c.tools = offered
			} else if c.tools[0] == "none" {
				c.tools = nil
			}
		}
		all = append(all, f)
	}
	return all
}

// read reads a line.
func (f *file) read(line string) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if word == "case" {
		f.cases = append(f.cases, &testCase{name: rest, lines: []string{line}})
		return nil
	}
	if len(f.cases) == 0 {
		f.head += line + "\n"
		return nil
	}
	c := f.cases[len(f.cases)-1]
	if word == ">" {
		c.want = append(c.want, rest)
		return nil
	}
	if word == "" || word == "#" {
		if word == "#" {
			c.lines = append(c.lines, line)
		}
		return nil
	}
	c.lines = append(c.lines, line)
	return c.read(word, rest)
}

func (c *testCase) read(word, rest string) error {
	switch word {
	case "on":
		c.on = strings.Fields(rest)
		return nil
	case "with":
		c.rules = strings.Fields(rest)
		return nil
	case "hooks":
		c.hooks = rest
		return nil
	case "people":
		c.people = true
		return nil
	case "budget":
		tokens, err := strconv.ParseInt(rest, 10, 64)
		c.budget = tokens
		return err
	case "tools":
		c.tools = strings.Fields(rest)
		return nil
	case "choice":
		c.choice, c.only, _ = strings.Cut(rest, " ")
		return nil
	case "single":
		c.single = true
		return nil
	case "output":
		c.output = rest
		return nil
	case "differs":
		c.differs = true
		return nil
	}
	if word == "turn" || len(c.replies) == 0 {
		c.replies = append(c.replies, reply{as: map[string]bool{}})
		if word == "turn" {
			return nil
		}
	}
	r := &c.replies[len(c.replies)-1]
	p := part{kind: word, text: rest}
	switch word {
	case "as":
		for _, deviation := range strings.Fields(rest) {
			r.as[deviation] = true
		}
		return nil
	case "end":
		r.end = rest
		return nil
	case "nothing":
		return nil
	case "text", "thought", "refusal", "cite", "hosted", "block":
	case "call":
		p.name, p.text, _ = strings.Cut(rest, " ")
		p.name = strings.ReplaceAll(p.name, "%20", " ")
	default:
		return fmt.Errorf("%q is no line of a case", word)
	}
	if strings.HasPrefix(p.text, `"`) {
		var err error
		if p.text, err = strconv.Unquote(p.text); err != nil {
			return fmt.Errorf("%s: %w", rest, err)
		}
	}
	p.text = strings.ReplaceAll(p.text, "{secret}", secret)
	r.parts = append(r.parts, p)
	return nil
}

// write writes the cases back, with what came out of each.
func (f *file) write(t *testing.T, found map[string][]string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(f.head)
	for i, c := range f.cases {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, line := range c.lines {
			b.WriteString(line + "\n")
		}
		for _, line := range found[c.name] {
			b.WriteString("  > " + line + "\n")
		}
	}
	if err := os.WriteFile(f.path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// format is the form that the answer is asked to have, as most APIs write it.
func (c *testCase) format() string {
	if c.output == "json_object" {
		return `{"type":"json_object"}`
	}
	return `{"type":"json_schema","schema":` + c.output + `}`
}

// setRule sets a rule of a case.
func setRule(r *upstream.Rules, rule string) error {
	name, value, _ := strings.Cut(rule, "=")
	number, _ := strconv.Atoi(value)
	switch name {
	case "mode":
		r.Modes = []upstream.Mode{upstream.Mode(value)}
	case "protocol":
		r.Protocol = upstream.Protocol(value)
	case "call_format":
		r.CallFormat = upstream.Presentation(value)
	case "structured_output":
		r.StructuredOutput = upstream.Treatment(value)
	case "native_prose":
		r.NativeProse = upstream.Treatment(value)
	case "parallel":
		r.Parallel = upstream.Treatment(value)
	case "reasoning":
		r.Reasoning = upstream.Treatment(value)
	case "stream_buffer":
		r.StreamBuffer = upstream.Buffer(value)
	case "refusals":
		r.Refusals = upstream.RefusalForm(value)
	case "repairs":
		r.MaxRepairs = number
	case "turns":
		r.MaxTurns = number
	case "tokens":
		r.TokenBudget = int64(number)
	case "hosted":
		r.Messages.ServerTools, r.Responses.HostedTools = []string{value}, []string{value}
	case "unknown":
		r.Messages.UnknownBlocks, r.Responses.UnknownItems = upstream.Treatment(value), upstream.Treatment(value)
	default:
		return fmt.Errorf("there is no rule %q", rule)
	}
	return nil
}
