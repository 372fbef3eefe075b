package agenthooks_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/agenthooks"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

func TestMain(m *testing.M) { facetest.Main(m) }

const tools = `tools:
  - name: Bash
    run: {type: client}
    input_schema: {type: object, properties: {command: {type: string}, description: {type: string}}, required: [command], additionalProperties: false}
  - name: Read
    run: {type: client}
    input_schema: {type: object, properties: {file_path: {type: string, x-boundary: path}}, required: [file_path], additionalProperties: false}
  - name: mcp__github.get_issue
    run: {type: client}
    input_schema: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
  - name: Edit
    run: {type: client}
    input_schema: {type: object, properties: {text: {type: string}, all: {type: boolean, default: false}}, required: [text], additionalProperties: false}
  - {name: Write, run: {type: client}, input_schema: {type: object}}
  - {name: mcp__a.b__c, run: {type: client}, input_schema: {type: object}}
  - {name: mcp__a_b.c, run: {type: client}, input_schema: {type: object}}
`

// office is a gateway whose project is a folder.
type office struct {
	*facetest.Fixture
	folder string
}

func open(t *testing.T, change func(*gateway.Config, *calls.Deps)) *office {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"sub/inner", "other"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(folder), filepath.Join(folder, "sub", "out")); err != nil {
		t.Fatal(err)
	}
	c := facetest.Config(t, map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\ndefaults: {agent: Coder}\nthreads: {labels: [web]}\n",
		"tools.yaml":      tools,
		"approvals.yaml":  "rules: {mine: {by: caller, hint: Look at it.}, theirs: {}}\nwait: 0s\n",
		"workspaces.yaml": fmt.Sprintf("workspaces: {local: {projects: {work: {agents: [Coder], roots: [%q]}, other: {agents: [Coder], roots: [%q]}}}}\n", folder, folder+"/other"),
		"policy.csv": `p, Coder, local/work, Bash, "args.command == ""ls""", allow
p, Coder, local/work, Bash, "args.command == ""make""", ask:mine
p, Coder, local/work, Bash, "args.command == ""make deploy""", ask:theirs
p, Coder, local/work, Bash, "args.command == ""once"" && thread.calls('Bash') <= 1", allow
p, Coder, local/work, Read, , allow
p, Coder, local/work, Edit, "args.text != ""no""", allow
p, Coder, local/work, Edit, "has(args.all) && args.all", deny
p, Coder, local/work, mcp__github.get_issue, , allow
p, Coder, local/work, mcp__a.*, , allow
p, Coder, local/other, Write, , allow
`,
	})
	o := &office{folder: folder}
	ledger := store.NewThreads(time.Now, store.ThreadBounds{})
	o.Fixture = facetest.New(t, facetest.Options{Config: c, Change: func(g *gateway.Config, d *calls.Deps) {
		if change != nil {
			change(g, d)
		}
		d.Ledger = ledger
	}})
	terms, _, err := o.Executor.Kernel.Config().Terms()
	if err == nil {
		_, err = ledger.KeepTerms(t.Context(), terms, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	agenthooks.New(o.Executor).Mount(o.Server)
	return o
}

// body is what an agent gives its hook, with more members.
func (o *office) body(event, tool, input, more string) string {
	return fmt.Sprintf(`{"session_id":"s1","transcript_path":"/t","cwd":%q,"hook_event_name":%q,"permission_mode":"default","tool_name":%q,"tool_input":%s%s}`, o.folder, event, tool, input, more)
}

func (o *office) post(path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/hooks/"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w
}

// decided are the codes of the decisions in the log, "" for those that passed.
func (o *office) decided(t *testing.T) (codes []string) {
	t.Helper()
	if err := o.Executor.Kernel.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range o.Journal.Records() {
		if r.Event == audit.Decision && r.Tool != "" {
			codes = append(codes, string(r.Code))
		}
	}
	return codes
}

const (
	deny = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"`
	ask  = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"`
)

// TestAnswers: what agents are answered, each by a gateway of its own (AH-01, AH-03 to AH-07).
func TestAnswers(t *testing.T) {
	const id = `,"tool_use_id":"toolu_1"`
	for name, c := range map[string]struct {
		agent, event, tool, input, more string
		status                          int
		answer                          string // begins so
		code                            string // of the decision, where there is one
		undecided                       bool
	}{
		"permitted":                        {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id, 200, `{}`, "", false},
		"permitted, Codex":                 {"codex", "PreToolUse", "Bash", `{"command":"ls"}`, id, 200, `{}`, "", false},
		"a member of a newer agent":        {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `,"new":{"a":[1]}`, 200, `{}`, "", false},
		"denied":                           {"claude-code", "PreToolUse", "Bash", `{"command":"rm -rf /"}`, id, 200, deny + `permission_denied: `, "permission_denied", false},
		"denied, Codex":                    {"codex", "PreToolUse", "Bash", `{"command":"rm -rf /"}`, id, 200, deny + `permission_denied: `, "permission_denied", false},
		"another argument":                 {"claude-code", "PreToolUse", "Bash", `{"command":"ls","x":1}`, id, 200, deny + `unexpected_argument: `, "unexpected_argument", false},
		"no object":                        {"claude-code", "PreToolUse", "Bash", `"ls"`, id, 200, deny + `wrong_type: `, "wrong_type", false},
		"twice the same argument":          {"claude-code", "PreToolUse", "Bash", `{"command":"ls","command":"ls"}`, id, 200, deny + `bad_request: `, "", true},
		"an unknown tool":                  {"claude-code", "PreToolUse", "Bush", `{"command":"ls"}`, id, 200, deny + `unknown_tool: `, "unknown_tool", false},
		"the user is asked":                {"claude-code", "PreToolUse", "Bash", `{"command":"make"}`, id, 200, ask + `Callgate asks you to decide this call. Look at it.`, "approval_required", false},
		"the user cannot be asked":         {"codex", "PreToolUse", "Bash", `{"command":"make"}`, id, 200, deny + `approval_required: `, "approval_required", false},
		"approvers are asked":              {"claude-code", "PreToolUse", "Bash", `{"command":"make deploy"}`, id, 200, deny + `approval_required: `, "approval_required", false},
		"a tool of MCP, Codex":             {"codex", "PreToolUse", "mcp__github__get_issue", `{"n":1}`, id, 200, `{}`, "", false},
		"inside":                           {"claude-code", "PreToolUse", "Read", `{"file_path":"a"}`, id, 200, `{}`, "", false},
		"outside":                          {"claude-code", "PreToolUse", "Read", `{"file_path":"/etc/passwd"}`, id, 200, deny + `boundary_violation: `, "boundary_violation", false},
		"a tool of another server":         {"codex", "PreToolUse", "mcp__a__b__c", `{}`, id, 200, `{}`, "", false},
		"a server whose name is longer":    {"codex", "PreToolUse", "mcp__a_b__c", `{}`, id, 200, deny + `permission_denied: `, "permission_denied", false},
		"a permission that is denied":      {"claude-code", "PermissionRequest", "Bash", `{"command":"rm"}`, "", 200, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"permission_denied: `, "permission_denied", false},
		"a permission that is left":        {"claude-code", "PermissionRequest", "Bash", `{"command":"ls"}`, "", 200, `{}`, "", false},
		"a permission of what asks":        {"claude-code", "PermissionRequest", "Bash", `{"command":"make"}`, "", 200, `{}`, "approval_required", false},
		"a command of a skill":             {"claude-code", "PreSkillShellCommand", "Bash", `{"command":"ls"}`, id + `,"command_name":"x"`, 200, `{}`, "", false},
		"a command of a skill, denied":     {"claude-code", "PreSkillShellCommand", "Bash", `{"command":"rm"}`, id, 200, strings.Replace(deny, "PreToolUse", "PreSkillShellCommand", 1) + `permission_denied: `, "permission_denied", false},
		"a command of a skill that asks":   {"claude-code", "PreSkillShellCommand", "Bash", `{"command":"make"}`, id, 200, strings.Replace(deny, "PreToolUse", "PreSkillShellCommand", 1) + `approval_required: `, "approval_required", false},
		"it ran unjudged":                  {"claude-code", "PostToolUse", "Bash", `{"command":"ls"}`, id, 200, `{"decision":"block","reason":"unjudged: `, "unjudged", false},
		"it failed unjudged":               {"claude-code", "PostToolUseFailure", "Bash", `{"command":"ls"}`, id, 200, `{"decision":"block","reason":"unjudged: `, "unjudged", false},
		"another event":                    {"claude-code", "SessionStart", "Bash", `{}`, id, 400, `{"error":{"code":"bad_request"`, "", true},
		"no id":                            {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, "", 200, deny + `bad_request: `, "", true},
		"an id that is none":               {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"a b"`, 200, deny + `bad_request: `, "", true},
		"a number for an id":               {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":7`, 200, deny + `bad_request: `, "", true},
		"a prompt that is none":            {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `,"prompt_id":"a b"`, 200, deny + `bad_request: `, "", true},
		"the event twice":                  {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `,"hook_event_name":"SessionStart"`, 200, deny + `bad_request: `, "", true},
		"bytes behind it":                  {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `}{`, 200, deny + `bad_request: `, "", true},
		"a subagent":                       {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `,"agent_id":"a1","agent_type":"Explore"`, 200, `{}`, "", false},
		"an agent that is named by itself": {"claude-code", "PreToolUse", "Bash", `{"command":"ls"}`, id + `,"agent_type":"Admin"`, 200, `{}`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, nil)
			w := o.post(c.agent, o.body(c.event, c.tool, c.input, c.more))
			if w.Code != c.status || !strings.HasPrefix(w.Body.String(), c.answer) {
				t.Errorf("%d %s; expected %d %s", w.Code, w.Body, c.status, c.answer)
			}
			if read := readAs(t, c.agent, c.event, w); read != "" && !strings.Contains(c.answer, read) || (read == "") != (c.answer == "{}") {
				t.Errorf("%s reads %q in %s", c.agent, read, w.Body)
			}
			codes := o.decided(t)
			if c.undecided != (len(codes) == 0) || !c.undecided && (len(codes) != 1 || codes[0] != c.code) {
				t.Errorf("decisions %q; expected %q", codes, c.code)
			}
		})
	}
}

// TestFaultyMember: a member that is faulty denies the call wherever it stands, and null stands for one that is not there.
func TestFaultyMember(t *testing.T) {
	o := open(t, nil)
	for fault, said := range map[string]string{
		`"session_id":null`:                     "session_id",
		`"session_id":7`:                        "session_id",
		`"cwd":null`:                            `cwd\" is missing`,
		`"cwd":[]`:                              "cwd",
		`"tool_name":null`:                      "tool_name",
		`"tool_use_id":null`:                    "tool_use_id",
		`"agent_id":{"hook_event_name":"Stop"}`: "agent_id",
		`"agent_id":"\ud800"`:                   "not strict JSON",
		"\"agent_id\":\"\xff\"":                 "invalid UTF-8",
		`"new":NaN`:                             "not strict JSON",
		`"new":1,"new":1`:                       "stands twice",
		`"hook_event_name":"Stop"`:              "stands twice",
		`"hook_event_name":null`:                "stands twice",
		`"agent_id":null`:                       "",
		`"prompt_id":null`:                      "",
		`"turn_id":null`:                        "",
		`"permission_mode":null`:                "",
	} {
		for _, event := range []string{"PreToolUse", "PermissionRequest", "PreSkillShellCommand", "PostToolUse"} {
			name, _, _ := strings.Cut(fault, ":")
			members := []string{`"hook_event_name":"` + event + `"`}
			for _, m := range []string{`"session_id":"s"`, fmt.Sprintf(`"cwd":%q`, o.folder), `"tool_name":"Bash"`, `"tool_input":{"command":"ls"}`, `"tool_use_id":"i"`} {
				if !strings.HasPrefix(m, name) {
					members = append(members, m)
				}
			}
			said := said
			if name == `"tool_use_id"` && event == "PermissionRequest" {
				said = "" // which has none
			}
			rest := strings.Join(members, ",")
			for _, body := range []string{"{" + fault + "," + rest + "}", "{" + rest + "," + fault + "}"} {
				w := o.post("claude-code", body)
				answer := fmt.Sprintf(`{"hookSpecificOutput":{"hookEventName":%q,`, event)
				if event == "PostToolUse" {
					answer = `{"decision":"block",`
				}
				if passes := w.Body.String() == "{}"; w.Code != 200 || passes != (said == "") || !passes && (!strings.HasPrefix(w.Body.String(), answer) || !strings.Contains(w.Body.String(), said)) {
					t.Errorf("%s: %d %s", body, w.Code, w.Body)
				}
			}
		}
	}
}

// readAs is what an agent makes of an answer, by its documentation: empty where it finds no decision, and runs the tool. Codex
// finds none where a member is unknown to it, where it is asked to ask, and in a denial without a reason; no agent finds one in
// an answer about another event. Where the status is not 200 it is the error that the agent's settings have to block.
func readAs(t *testing.T, agent, event string, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Code != 200 {
		return "error"
	}
	var answer struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Specific struct {
			Event      string `json:"hookEventName"`
			Permission string `json:"permissionDecision"`
			Reason     string `json:"permissionDecisionReason"`
			Decision   struct {
				Behavior string `json:"behavior"`
				Message  string `json:"message"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	d := json.NewDecoder(strings.NewReader(w.Body.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&answer); err != nil {
		t.Errorf("%s: %v", agent, err)
	}
	of := answer.Specific
	switch {
	case strings.HasPrefix(event, "PostToolUse") && answer.Reason != "":
		return answer.Decision
	case of.Event != event:
	case event == "PermissionRequest" && of.Decision.Message != "":
		return of.Decision.Behavior
	case of.Permission == "deny" && of.Reason != "", of.Permission == "ask" && agent == "claude-code":
		return of.Permission
	}
	return ""
}

// TestRecorded: a decision says what the hook said, and which call was judged under its id before (AH-04, AH-13, AH-15).
func TestRecorded(t *testing.T) {
	o := open(t, nil)
	const id = `,"tool_use_id":"i","agent_id":"a1"`
	o.post("claude-code", o.body("PreToolUse", "Bash", `{"command":"ls"}`, id+`,"prompt_id":"p"`))
	o.post("codex", o.body("PreToolUse", "Bash", `{"command":"rm"}`, id+`,"turn_id":"t"`))
	o.post("claude-code", o.body("PostToolUse", "Bash", `{"command":"rm -f"}`, id))
	o.decided(t)
	first := ""
	said := []audit.AgentHook{{HookAgent: "claude-code", HookEvent: "PreToolUse", Prompt: "p"}, {HookAgent: "codex", HookEvent: "PreToolUse", Prompt: "t"}, {HookAgent: "claude-code", HookEvent: "PostToolUse"}}
	for _, r := range o.Journal.Records() {
		if r.Event != audit.Decision {
			if r.AgentHook != nil {
				t.Errorf("an outcome has %+v", r.AgentHook)
			}
			continue
		}
		want := said[0]
		said = said[1:]
		want.Session, want.PermissionMode = "s1", "default"
		if want.ChangedAfterVerdict = first; first == "" {
			first = r.CallID
		}
		if r.AgentHook == nil || r.HookEvent == "PreToolUse" && *r.AgentHook != want || r.Thread != "a1" {
			t.Errorf("found %+v in the thread %q; expected %+v", r.AgentHook, r.Thread, want)
		}
	}
	if len(said) > 0 {
		t.Errorf("there are no decisions on %+v", said)
	}
}

// TestFolders: relative paths start where the agent is, and the folder says which project it is about.
func TestFolders(t *testing.T) {
	for name, c := range map[string]struct{ cwd, tool, input, code string }{
		"in a folder below":              {"/sub", "Read", `{"file_path":"inner"}`, ""},
		"up":                             {"/sub", "Read", `{"file_path":"../sub/inner"}`, ""},
		"up and out":                     {"/sub", "Read", `{"file_path":"../../x"}`, "boundary_violation"},
		"a link that is only there":      {"/sub", "Read", `{"file_path":"out/x"}`, "boundary_violation"},
		"from outside":                   {"/..", "Bash", `{"command":"ls"}`, "boundary_violation"},
		"by a link from outside":         {"/sub/out", "Bash", `{"command":"ls"}`, "boundary_violation"},
		"in the other project":           {"/other", "Write", `{}`, ""},
		"of the first, in the other one": {"/other", "Bash", `{"command":"ls"}`, "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, func(g *gateway.Config, _ *calls.Deps) { g.Defaults.Workspace, g.Defaults.Project = "local", "work" })
			body := strings.Replace(o.body("PreToolUse", c.tool, c.input, `,"tool_use_id":"i"`), `"cwd":"`+o.folder, `"cwd":"`+o.folder+c.cwd, 1)
			w := o.post("claude-code", body)
			if codes := o.decided(t); len(codes) != 1 || codes[0] != c.code {
				t.Errorf("%q, expected %q: %s", codes, c.code, w.Body)
			}
		})
	}
}

// TestOnce: one call is judged and counted once, however often and on how many events it is asked about (AH-10, AH-13).
func TestOnce(t *testing.T) {
	o := open(t, nil)
	const once, id = `{"command":"once"}`, `,"tool_use_id":"i"`
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if w := o.post("claude-code", o.body("PreToolUse", "Bash", once, id)); w.Body.String() != "{}" {
				t.Errorf("%s", w.Body)
			}
		})
	}
	all.Wait()
	for _, event := range []string{"PreToolUse", "PermissionRequest", "PostToolUse"} {
		if w := o.post("claude-code", o.body(event, "Bash", once, id)); w.Body.String() != "{}" {
			t.Errorf("%s: %s", event, w.Body)
		}
	}
	if codes := o.decided(t); len(codes) != 1 || codes[0] != "" {
		t.Errorf("%q", codes)
	}
	if w := o.post("claude-code", o.body("PostToolUse", "Bash", `{"command":"other"}`, id)); !strings.Contains(w.Body.String(), "executed_differs") {
		t.Errorf("changed after the verdict: %s", w.Body)
	}
	if w := o.post("claude-code", o.body("PostToolUse", "Bash", once, `,"tool_use_id":"l"`)); !strings.Contains(w.Body.String(), "unjudged") {
		t.Errorf("the same call under an id that was not judged: %s", w.Body)
	}
	for _, second := range []string{`,"tool_use_id":"j"`, `,"tool_use_id":"k","agent_id":"a"`} { // a subagent is in the same thread
		if w := o.post("claude-code", o.body("PreToolUse", "Bash", once, second)); !strings.HasPrefix(w.Body.String(), deny+"permission_denied") {
			t.Errorf("the second call: %s", w.Body)
		}
	}
	if w := o.post("claude-code", o.body("PreToolUse", "Bash", `{"command":"rm"}`, id)); !strings.HasPrefix(w.Body.String(), deny) {
		t.Errorf("another call under an id that passed: %s", w.Body)
	}
}

// TestNotAnyMore: a verdict does not outlive what it was given by.
func TestNotAnyMore(t *testing.T) {
	o := open(t, nil)
	body := o.body("PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"i"`)
	permission := o.body("PermissionRequest", "Bash", `{"command":"ls"}`, "")
	for _, b := range []string{body, permission, body} {
		if w := o.post("claude-code", b); w.Body.String() != "{}" {
			t.Fatalf("%s", w.Body)
		}
	}
	o.Executor.Kernel.Stop([]store.Stop{{ID: "stop_1", Tool: "Bash"}}, true)
	for _, b := range []string{body, permission} {
		if w := o.post("claude-code", b); !strings.Contains(w.Body.String(), `"stopped: `) {
			t.Errorf("a tool that was stopped since: %s", w.Body)
		}
	}
	o.Executor.Kernel.Stop(nil, true)
	if w := o.post("claude-code", body); w.Body.String() != "{}" {
		t.Errorf("resumed: %s", w.Body)
	}
}

// TestHooksOnly: the key of a hook gets verdicts, and nothing else (AH-09).
func TestHooksOnly(t *testing.T) {
	key, sha := identity.NewAPIKey()
	keys, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: {Name: "hook", Agents: []string{"Coder"}, Workspace: "local", Projects: []string{"work"}, HooksOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	o := open(t, func(g *gateway.Config, _ *calls.Deps) { g.Identity = keys })
	for command, answer := range map[string]string{"ls": "{}", "rm": deny + "permission_denied: "} {
		if w := o.post("claude-code", o.body("PreToolUse", "Bash", `{"command":"`+command+`"}`, `,"tool_use_id":"`+command+`"`), "Authorization", "Bearer "+key); w.Code != 200 || !strings.HasPrefix(w.Body.String(), answer) {
			t.Errorf("%s: %d %s", command, w.Code, w.Body)
		}
	}
	if _, err := o.Executor.Kernel.Admit(t.Context(), gateway.Request{Credential: key}); refusal.From(refusal.Identity, err).Code != refusal.PermissionDenied {
		t.Errorf("a call: %v", err)
	}
	if _, err := o.Executor.Kernel.AdmitQuery(t.Context(), gateway.Request{Credential: key}); refusal.From(refusal.Identity, err).Code != refusal.PermissionDenied {
		t.Errorf("a query: %v", err)
	}
}

// TestAsked: the user's yes is known once the call has run, and is recorded then.
func TestAsked(t *testing.T) {
	o := open(t, nil)
	const id = `,"tool_use_id":"i"`
	for _, event := range []string{"PreToolUse", "PreToolUse"} {
		if w := o.post("claude-code", o.body(event, "Bash", `{"command":"make"}`, id)); !strings.HasPrefix(w.Body.String(), ask) {
			t.Fatalf("%s: %s", event, w.Body)
		}
	}
	if w := o.post("claude-code", o.body("PermissionRequest", "Bash", `{"command":"make"}`, "")); w.Body.String() != "{}" {
		t.Errorf("%s", w.Body)
	}
	for range 2 {
		if w := o.post("claude-code", o.body("PostToolUse", "Bash", `{"command":"make"}`, id)); w.Body.String() != "{}" {
			t.Errorf("after it ran: %s", w.Body)
		}
	}
	if codes := o.decided(t); len(codes) != 2 || codes[0] != "approval_required" || codes[1] != "" {
		t.Errorf("%q", codes)
	}
}

// TestFailsClosed: whatever fails here, the agent is told to run nothing (AH-07), but for callers without a credential.
func TestFailsClosed(t *testing.T) {
	stranger := open(t, func(g *gateway.Config, _ *calls.Deps) { g.Identity = &identity.APIKeys{} })
	if w := stranger.post("claude-code", stranger.body("PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"i"`)); w.Code != 401 || !strings.HasPrefix(w.Body.String(), `{"error":{"code":"unauthenticated"`) {
		t.Errorf("no credential: %d %s", w.Code, w.Body)
	}
	o := open(t, nil)
	o.Journal.SetFailing(true)
	if w := o.post("codex", o.body("PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"i"`)); w.Code != 200 || !strings.HasPrefix(w.Body.String(), deny+"audit_unavailable") {
		t.Errorf("no log: %d %s", w.Code, w.Body)
	}
	o.Drain()
	if w := o.post("codex", o.body("PreToolUse", "Bash", `{"command":"ls"}`, `,"tool_use_id":"i"`)); w.Code != 200 || !strings.HasPrefix(w.Body.String(), deny) {
		t.Errorf("draining: %d %s", w.Code, w.Body)
	}
	if w := o.post("codex", strings.Repeat(" ", 16<<20)); w.Code != 413 {
		t.Errorf("too long: %d %s", w.Code, w.Body)
	}
}

// TestVerdictsOfOthers: a verdict stands for the call that it was asked for alone: not for one in another folder, not for
// what asks nobody where a user was to be asked, and not for one more call once that has run.
func TestVerdictsOfOthers(t *testing.T) {
	const id = `,"tool_use_id":"i"`
	for name, c := range map[string]struct{ first, second, answer string }{
		"in another folder":     {`PreToolUse Bash {"command":"ls"} `, `PreToolUse Bash {"command":"ls"} /other`, deny + "permission_denied"},
		"a question":            {`PreToolUse Bash {"command":"make"} `, `PreSkillShellCommand Bash {"command":"make"} `, strings.Replace(deny, "PreToolUse", "PreSkillShellCommand", 1) + "approval_required"},
		"a permission":          {`PermissionRequest Bash {"command":"ls"} `, `PermissionRequest Bash {"command":"ls"} /other`, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny"`},
		"once more":             {`PostToolUse Bash {"command":"once"} `, `PreToolUse Bash {"command":"once"} `, deny + "permission_denied"},
		"once more, as it fell": {`PostToolUseFailure Bash {"command":"once"} `, `PreToolUse Bash {"command":"once"} `, deny + "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, func(g *gateway.Config, _ *calls.Deps) { g.Defaults.Workspace, g.Defaults.Project = "local", "work" })
			ask := func(what string) string {
				part := strings.Split(what, " ")
				body := o.body(part[0], part[1], part[2], id)
				return o.post("claude-code", strings.Replace(body, o.folder, o.folder+part[3], 1)).Body.String()
			}
			if strings.HasPrefix(c.first, "Post") {
				if found := ask(c.second); found != "{}" {
					t.Fatalf("the first: %s", found)
				}
			}
			if found := ask(c.first); strings.Contains(found, "deny") {
				t.Fatalf("the first: %s", found)
			}
			if found := ask(c.second); !strings.HasPrefix(found, c.answer) {
				t.Errorf("found %s, expected %s", found, c.answer)
			}
		})
	}
}

// TestKeptIsSmall: what is kept of a verdict does not grow with the call.
func TestKeptIsSmall(t *testing.T) {
	o := open(t, nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var names strings.Builder
	for i := range 100 {
		fmt.Fprintf(&names, `,"%s%d":0`, strings.Repeat("x", 5000), i)
	}
	ask := func(i int) {
		for path, input := range map[string]string{
			"denied": `{"command":"ls"` + names.String() + `}`, "asked": `{"command":"make","description":"` + strings.Repeat("x", 500_000) + `"}`,
		} {
			o.post("claude-code", o.body("PreToolUse", "Bash", input, fmt.Sprintf(`,"tool_use_id":"%s%d"`, path, i)))
		}
	}
	ask(0)
	before := heap()
	for i := range 8 {
		ask(i)
	}
	if grown := int64(heap()) - int64(before); grown > 2<<20 {
		t.Errorf("16 verdicts take %d MiB", grown>>20)
	}
}
