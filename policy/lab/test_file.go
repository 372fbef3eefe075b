package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/policy"

	"github.com/callgate/callgate/refusal"
)

// MaxTestCases bounds the cases of all tests that are read together, so that loading a configuration
// with tests ends within bounds.
const MaxTestCases = 10_000

// TestConfig is the configuration that tests are read and judged by. It is not changed.
type TestConfig struct {
	Judge      *Judge
	Policy     *policy.Policy
	Workspaces policy.Workspaces
	Agents     []string // that a project or a principal names, sorted
	Tools      []string // sorted
	Rules      []string // of approval, sorted
	Labels     []string // that a thread can have
}

// Test is one test: a case for each agent, project and tool.
type Test struct {
	Name      string
	File      string
	Line      int // from 1
	Agents    []string
	Projects  []TestProject
	Tools     []string
	Arguments json.RawMessage // an object; nil: whatever they are
	// Thread is what the thread of the call, and its caller, did before TestTime, when the call is judged.
	Thread []gateway.Step
	// Expect is allow, deny, ask:RULE (several rules: ask:A,B, sorted) or a code of a refusal;
	// without arguments it is a policy.Reach in words.
	Expect string
	// Row must be among the rows that decide; nil: any.
	Row *policy.Row
}

// TestProject is a project of a workspace.
type TestProject struct{ Workspace, Name string }

// String is the project as files write it.
func (p TestProject) String() string { return p.Workspace + "/" + p.Name }

// Cases is how many cases the test has. Where a list alone has more than MaxCases, it is only a
// number above that.
func (t *Test) Cases() int {
	n := 1
	for _, of := range []int{len(t.Agents), len(t.Projects), len(t.Tools)} {
		n *= min(of, MaxTestCases+1) // no product of three overflows
	}
	return n
}

// The words that are expected without arguments: each a policy.Reach.
var reaches = []string{policy.Never.String(), "conditions", policy.Asks.String(), policy.Always.String()}

// reachWord is how tests write a reach.
func reachWord(r policy.Reach) string {
	if r == policy.OnConditions {
		return "conditions"
	}
	return r.String()
}

// The words that are expected of a call, beside codes.
const (
	allow     = "allow"
	deny      = "deny"
	askPrefix = "ask:"
)

// codes are the codes by which a call of a registered tool in a project can be refused from the
// stage schema to the stage project.
var codes = func() []string {
	var all []string
	for _, c := range refusal.Codes() {
		switch refusal.New(c, "").Stage {
		case refusal.Schema, refusal.Permission, refusal.Project:
			if c != refusal.UnknownTool && c != refusal.InvalidOutput && c != refusal.ToolQuarantined && c != refusal.ToolStarting &&
				c != refusal.Stopped {
				all = append(all, string(c))
			}
		}
	}
	slices.Sort(all)
	return all
}()

// TestReader reads files of tests for one configuration.
//
// A file of tests is strict YAML with the line "# end" as its last, as every file of a
// configuration:
//
//	tests:
//	  - name: interns touch no money        # once in a file
//	    agent: Intern                       # or agents: [..]
//	    projects: [acme/alpha, acme/beta]   # or project
//	    tools: [payments.refund]            # or tool
//	    arguments: {payment_id: pay_1}      # absent: whatever they are
//	    expect: deny
//	    row: "p, Intern, *, payments.*, , deny"   # optional: a row that decides
//	    thread:                             # optional, with arguments: what its thread did before
//	      - {tool: crm.read, arguments: {id: 7}, ago: 30m, ended: result, times: 1}
//	      - labels: [untrusted]             # and labels that no step of these has added
//
// A test is one case for each agent, project and tool, and holds if every case comes out as
// expected. A test that could never fail, or is never run, is a fault of its file: one without an
// expectation or a case, of an agent, project or tool that is not there, or with an unknown code.
type TestReader struct {
	config TestConfig
	report *document.Report
	rows   map[policy.Row]policy.Row // by their content
	names  similar.Suggester
	cases  int
	steps  int
}

// maxHints bounds the hints at near names of one reader.
const maxHints = 50

// NewTestReader returns a reader that reports faults to report.
func NewTestReader(c TestConfig, report *document.Report) *TestReader {
	r := &TestReader{config: c, report: report, rows: map[policy.Row]policy.Row{}, names: similar.Suggester{Left: maxHints}}
	for _, row := range c.Policy.Rows() {
		r.rows[row.Content()] = row
	}
	return r
}

// Read reads one file. The result is whole only where it has reported nothing.
func (r *TestReader) Read(file string, data []byte) []Test {
	root, ok := document.ReadYAML(r.report, file, data)
	if !ok {
		return nil
	}
	return r.ReadTests(root)
}

// ReadTests reads the root of a file of tests. The result is whole only where it has reported
// nothing.
func (r *TestReader) ReadTests(root document.Node) []Test {
	var tests []Test
	names := map[string]int{}
	ok := root.Object(document.Field("tests", func(n document.Node) {
		n.List("tests", func(_ int, item document.Node) {
			t := r.test(item)
			if first, twice := names[t.Name]; twice && t.Name != "" {
				item.At("/name").Fail("found the test %q again; expected each name once (it stands at line %d already)", t.Name, first)
			}
			names[t.Name] = item.Line
			tests = append(tests, t)
		})
	}))
	root.Describes(func(s *document.Schema) {
		s.Required, s.Properties["tests"].MinItems = []string{"tests"}, 1
	})
	if ok && len(tests) == 0 {
		root.Fail("found no test; expected tests: and at least one")
	}
	return tests
}

// test reads one test.
func (r *TestReader) test(n document.Node) Test {
	t := Test{File: n.File, Line: n.Line}
	var expect document.Node
	n.Describes(func(s *document.Schema) {
		s.Required = []string{"name", "expect"}
		s.DependentRequired = map[string][]string{"row": {"arguments"}, "thread": {"arguments"}}
		s.AllOf = []*document.Schema{oneKey("agent"), oneKey("project"), oneKey("tool")}
	})
	n.Object(
		document.Text("name", "a name of the test", &t.Name),
		names("agent", "an agent", &t.Agents), namesOf("agents", "agents", &t.Agents).Unique(),
		document.Field("project", func(n document.Node) { r.project(n, &t) }),
		document.Field("projects", func(n document.Node) {
			n.List("projects", func(_ int, item document.Node) { r.project(item, &t) })
			n.Unique()
			n.NotEmptyAs("found no projects, so that the test has no case; expected at least one")
		}),
		names("tool", "a tool", &t.Tools), namesOf("tools", "tools", &t.Tools).Unique(),
		document.Field("arguments", func(n document.Node) {
			n.Free("the arguments of a call")
			if !n.IsMapping() {
				n.Fail("found %s; expected the arguments of a call, as a mapping", n.TypeName())
				return
			}
			t.Arguments, _ = n.JSON()
		}),
		document.Field("expect", func(n document.Node) {
			n.Matching("what comes of the call",
				"^("+strings.Join(append(slices.Concat(reaches, codes), allow, deny, askPrefix+".+"), "|")+")$")
			expect = n
		}),
		document.Field("row", func(n document.Node) { r.row(n, &t) }),
		document.Field("thread", func(n document.Node) {
			n.List("what the thread did before the call", func(i int, item document.Node) { r.step(item, i+1, &t) })
			n.NotEmptyAs("found no step; expected at least one, or no thread, which is one that has done nothing")
		}),
	)
	if !n.IsMapping() {
		return t
	}
	switch {
	case strings.ContainsFunc(t.Name, func(r rune) bool { return !strconv.IsPrint(r) }):
		n.At("/name").Fail("found a name with a hidden character; expected one that can be seen")
	case !n.Has("name"):
		n.Fail("found a test without a name; expected name: and a few words")
	}
	r.checkNames(n, "agent", r.config.Agents, t.Agents, "no project or principal names it")
	r.checkNames(n, "tool", r.config.Tools, t.Tools, "it is not registered")
	oneOf(n, "project")
	if !n.Has("expect") {
		n.Fail("found a test without an expectation, which cannot fail; expected expect: allow, deny, ask:RULE or a code, or without arguments %s", strings.Join(reaches, ", "))
	} else {
		r.expect(expect, n.Has("arguments"), &t)
	}
	if t.Row != nil && !n.Has("arguments") {
		n.At("/row").Fail("found a row without arguments; expected arguments, since rows decide calls")
	}
	if n.Has("thread") && !n.Has("arguments") {
		n.At("/thread").Fail("found a thread without arguments; expected arguments, since what was done before decides calls")
	}
	if r.cases += t.Cases(); r.cases > MaxTestCases && r.cases-t.Cases() <= MaxTestCases {
		n.Fail("found more than %d cases in all tests; expected fewer agents, projects and tools, or fewer tests", MaxTestCases)
	}
	return t
}

// names is the field of one name, which is read into a list.
func names(key, of string, into *[]string) document.FieldReader {
	return document.Field(key, func(n document.Node) {
		var name string
		if n.Text(of, &name) {
			*into = []string{name}
		}
	})
}

// namesOf is the field of a list of names.
func namesOf(key, of string, into *[]string) document.FieldReader {
	return document.Field(key, func(n document.Node) {
		n.Texts(of, into)
		n.NotEmptyAs("found no " + of + ", so that the test has no case; expected at least one")
	})
}

// oneKey describes that a test has a key or its plural.
func oneKey(key string) *document.Schema {
	return &document.Schema{OneOf: []*document.Schema{{Required: []string{key}}, {Required: []string{key + "s"}}}}
}

// oneOf refuses a test that has neither a key nor its plural, or both.
func oneOf(n document.Node, key string) bool {
	switch many := key + "s"; {
	case n.Has(key) && n.Has(many):
		return n.At("/"+many).Fail("found both %s and %s; expected one of them", key, many)
	case !n.Has(key) && !n.Has(many):
		return n.Fail("found a test without %s, so that it has no case; expected %s or %s", key, key, many)
	}
	return true
}

// checkNames checks the names that a test gives by a key or its plural.
func (r *TestReader) checkNames(n document.Node, key string, known, given []string, absent string) {
	if !oneOf(n, key) {
		return
	}
	_, list, several := n.Child(key + "s")
	seen := map[string]bool{}
	for i, name := range given {
		at := n.At("/" + key)
		if several {
			at = n.With(list.Content[i])
		}
		if _, found := slices.BinarySearch(known, name); !found && name != "" {
			at.Fail("found the %s %q, but %s, so that the test says nothing; expected a known one%s", key, name, absent,
				r.names.DidYouMean(name, known))
		}
		if seen[name] {
			at.Fail("found %q again; expected it once", name)
		}
		seen[name] = true
	}
}

// project reads workspace/project.
func (r *TestReader) project(n document.Node, t *Test) {
	var text string
	if !n.Text("a project, as workspace/project", &text) {
		return
	}
	workspace, name, _ := strings.Cut(text, "/")
	p := TestProject{workspace, name}
	if _, known := r.config.Workspaces[workspace].Projects[name]; !known {
		n.Fail("found the project %q, which no workspace has, so that the test says nothing; expected a known one, as workspace/project%s",
			text, r.names.DidYouMean(text, r.projects()))
		return
	}
	if slices.Contains(t.Projects, p) {
		n.Fail("found %q again; expected it once", text)
		return
	}
	t.Projects = append(t.Projects, p)
}

func (r *TestReader) projects() []string {
	var all []string
	for workspace, in := range r.config.Workspaces {
		for project := range maps.Keys(in.Projects) {
			all = append(all, TestProject{workspace, project}.String())
		}
	}
	slices.Sort(all)
	return all
}

// expect reads what comes of the cases.
func (r *TestReader) expect(n document.Node, withArguments bool, t *Test) {
	var word string
	if !n.Text("what comes of the call", &word) {
		return
	}
	known := reaches
	if withArguments {
		known = append([]string{allow, deny, askPrefix + "RULE"}, codes...)
	}
	rules, asks := strings.CutPrefix(word, askPrefix)
	switch {
	case withArguments && asks:
		t.Expect = r.asks(n, rules)
	case word == askPrefix+"RULE":
		n.Fail("found %q; expected the name of a rule in place of RULE", word)
	case withArguments && word == string(refusal.PermissionDenied):
		t.Expect = deny
	case slices.Contains(known, word):
		t.Expect = word
	case !withArguments && (word == allow || word == deny || asks || slices.Contains(codes, word)):
		n.Fail("found %q without arguments; expected arguments: beside it, or one of %s", word, strings.Join(reaches, ", "))
	case withArguments && slices.Contains(reaches, word):
		n.Fail("found %q with arguments; expected no arguments, or %s, %s, %sRULE or a code", word, allow, deny, askPrefix)
	default:
		n.Fail("found %q%s; expected %s", word, r.names.DidYouMean(word, known), strings.Join(known, ", "))
	}
}

// asks reads the rules after ask:, and returns the expectation with them in order.
func (r *TestReader) asks(n document.Node, text string) string {
	rules := strings.Split(text, ",")
	for _, rule := range rules {
		if _, known := slices.BinarySearch(r.config.Rules, rule); !known {
			n.Fail("found the rule %q, which the approvals file does not have; expected a known one%s", rule,
				r.names.DidYouMean(rule, r.config.Rules))
		}
	}
	slices.Sort(rules)
	return askPrefix + strings.Join(slices.Compact(rules), ",")
}

// row reads a row of the policy, as its file writes it.
func (r *TestReader) row(n document.Node, t *Test) {
	var text string
	if !n.Text("a row of the policy, as its file writes it", &text) {
		return
	}
	content, err := policy.ParseRow(text)
	if err != nil {
		n.Fail("found a row that cannot be read (%v); expected a p row as the policy file writes it", firstFault(err))
		return
	}
	row, found := r.rows[content]
	if !found {
		n.Fail("found a row that the policy does not have; expected one of its p rows")
		return
	}
	t.Row = &row
}

// firstFault is the first fault of a row, without its place.
func firstFault(err error) string {
	for err := range document.Each(err) {
		var f *policy.FileError
		if errors.As(err, &f) {
			return "found " + f.Found + ", expected " + f.Expected
		}
	}
	return err.Error()
}

// TestTime is when the calls of tests are judged: the beginning of a minute, an hour and a day, so that what is as old as a
// window is still within it.
var TestTime = time.Unix(1_767_225_600, 0).UTC() // 2026-01-01

// The bounds of one step.
const (
	maxTimes = 1000
	maxAgo   = 366 * 24 * time.Hour
)

// step reads a step of a thread, the one with this number.
func (r *TestReader) step(n document.Node, number int, t *Test) {
	step := gateway.Step{At: TestTime, Arguments: map[string]any{}}
	arguments, ended, times, ago := json.RawMessage("{}"), "result", 1, time.Duration(0)
	n.Describes(func(s *document.Schema) {
		s.OneOf = []*document.Schema{{Required: []string{"tool"}}, {Required: []string{"labels"}}}
		s.DependentRequired = map[string][]string{"arguments": {"tool"}, "ended": {"tool"}, "times": {"tool"}}
	})
	n.Object(
		document.Text("tool", "a tool that was called", &step.Tool),
		document.Field("arguments", func(n document.Node) {
			n.Free("the arguments of that call")
			arguments, _ = n.JSON()
		}),
		document.Field("ago", func(n document.Node) { n.Span("how long before the call", time.Millisecond, maxAgo, &ago) }),
		document.Choice("ended", "how that call ended: with a result, failed, or not yet", &ended, "result", "failed", "no"),
		document.Int("times", "how often that call was made", 1, maxTimes, &times),
		document.Field("labels", func(n document.Node) {
			n.Texts("labels that the thread has", &step.Labels)
			n.NotEmpty("label")
		}),
	)
	if n.Describing() || !n.IsMapping() {
		return
	}
	for _, label := range step.Labels {
		if !slices.Contains(r.config.Labels, label) {
			n.At("/labels").Fail("found the label %q, but it is none of threads.labels in the main file, so that no thread can have it; expected one of them%s", label, r.names.DidYouMean(label, r.config.Labels))
		}
	}
	switch {
	case n.Has("tool") && n.Has("labels"):
		n.Fail("found both tool and labels; expected one of them: a call adds the labels of its tool")
		return
	case !n.Has("tool") && !n.Has("labels"):
		n.Fail("found a step that does nothing; expected tool, or labels")
		return
	case n.Has("labels") && (n.Has("arguments") || n.Has("ended") || n.Has("times")):
		n.Fail("found labels with keys of a call; expected at most ago beside labels")
		return
	}
	if step.At = TestTime.Add(-ago); len(t.Thread) > 0 && step.At.Before(t.Thread[len(t.Thread)-1].At) {
		n.Fail("found a step that was before the one above it; expected the steps in the order of their times")
	}
	step.Ended = ended == "result"
	if step.Tool != "" {
		entry, known := r.config.Judge.config.Tools.Lookup(step.Tool)
		if !known {
			n.At("/tool").Fail("found the tool %q, but it is not registered; expected a known one%s", step.Tool,
				r.names.DidYouMean(step.Tool, r.config.Tools))
			return
		}
		var err error
		step.Arguments, err = violations.ReadArguments(entry, arguments, r.config.Judge.config.Output.MaxDepth)
		var refused *refusal.Error
		switch {
		case errors.As(err, &refused):
			n.Fail("found a step that would have been refused, and expected arguments that its tool accepts: %s", refused.Detail())
			return
		case err != nil:
			n.At("/arguments").Fail("found arguments that cannot be read: %v", err)
			return
		}
	}
	if r.steps += times; r.steps > MaxTestCases && r.steps-times <= MaxTestCases {
		n.Fail("found more than %d steps in all tests, each as often as it is made; expected fewer", MaxTestCases)
	}
	step.Name = fmt.Sprintf("step %d", number)
	for range times {
		t.Thread = append(t.Thread, step)
	}
}
