package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// token is found by the built-in pattern github-token. It is put together here, so that no scanner
// takes this file for one that has a secret.
var token = "gh" + "p_" + strings.Repeat("aB3", 12)

const gone = "[redacted:github-token]"

// hookFiles are a configuration with a hook.
func hookFiles(hooks string) map[string]string {
	return map[string]string{
		"callgate.yaml":   "registry: {files: [tools.yaml]}\nhooks: hooks.yaml\n",
		"hooks.yaml":      "hooks: " + hooks + "\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {roots: [/srv/alpha], agents: [Analyst]}}}}\n",
		"policy.csv":      "p, Analyst, *, acts, \"!has(args.to) || args.to != '" + gone + "'\", allow\n",
		"tools.yaml": `tools:
  - name: acts
    input_schema: {type: object, properties: {text: {type: string}, id: {type: string, maxLength: 40}, to: {type: string}, path: {type: string, x-boundary: path}}}
    output_schema: {type: object, properties: {id: {type: string, maxLength: 40}, text: {type: string}}}
    run: {type: mcp, url: "https://a.example", tool: acts, input_requests: [form]}
`,
	}
}

// kernelHooked is a kernel with a hook, its engine and its journal.
func kernelHooked(t testing.TB, hooks string, answer func(context.Context, tool.Call) (tool.Result, error), change func(*calls.Deps)) (*calls.Executor, *journal) {
	t.Helper()
	c := facetest.Config(t, hookFiles(hooks))
	j := &journal{}
	deps := calls.Deps{
		Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, RecordContent: audit.Completion},
		Engine: &engine{answer: answer}, Store: store.NewMemory(time.Now),
	}
	if change != nil {
		change(&deps)
	}
	return kernelOf(t, hookConfig(c), deps), j
}

func hookConfig(c *configs.Config) *gateway.Config {
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: &ratelimit.Limits{Replicas: 1},
		Defaults: gateway.Subject(c.Defaults), Digest: c.Digest, Hooks: c.Hooks,
	}
}

const redacting = `[{name: secrets, at: [call, result], patterns: [secrets], on_match: redact}]`

// written is a call in each form that it can come in.
func written(arguments string) map[string]gateway.Input {
	return map[string]gateway.Input{
		"completion": {Completion: []byte(` {"tool":{"name":"acts","arguments":` + arguments + `}} `)},
		"native":     {Native: &gateway.NativeCall{Name: "acts", Arguments: []byte(arguments)}},
	}
}

// clean fails where the token is anywhere in a record.
func clean(t *testing.T, j *journal) {
	t.Helper()
	for _, r := range j.all() {
		if encoded, err := json.Marshal(r); err != nil || strings.Contains(string(encoded), token) {
			t.Errorf("the record has the token: %s, %v", encoded, err)
		}
	}
}

// TestHookRedactsArguments: the redacted bytes are judged, executed, recorded and kept.
func TestHookRedactsArguments(t *testing.T) {
	escaped := fmt.Sprintf(`{"text": "a \u0067%s b", "id":"1"}`, token[1:])
	want := `{"text": "a ` + gone + ` b", "id":"1"}`
	for name, in := range written(escaped) {
		var ran string
		k, j := kernelHooked(t, redacting, func(_ context.Context, task tool.Call) (tool.Result, error) {
			ran = string(task.Arguments)
			return tool.Result{Body: []byte(`{}`), JSON: true}, nil
		}, nil)
		o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{in}}, "")
		if o.Refusal != nil || ran != want {
			t.Errorf("%s: executed %s, %v", name, ran, o.Refusal)
		}
		settle(t, k)
		records := j.all()
		if len(records) != 2 || !slices.Equal(records[0].Hooks, []string{"secrets"}) || records[1].Hooks != nil {
			t.Fatalf("%s: %+v", name, records)
		}
		if d := records[0]; string(d.Arguments) != want || name == "completion" && d.Completion != ` {"tool":{"name":"acts","arguments":`+want+`}} ` {
			t.Errorf("%s: recorded %s in %s", name, d.Arguments, d.Completion)
		}
		clean(t, j)
	}
}

// TestRedactedCallsAreCounted: the policy counts a call that is judged anew once, whether or not a row reads its arguments.
func TestRedactedCallsAreCounted(t *testing.T) {
	files := hookFiles(redacting)
	for _, policy := range []string{files["policy.csv"], "p, Analyst, *, acts, , allow\n"} {
		files["policy.csv"] = policy
		c := hookConfig(facetest.Config(t, files))
		k := kernelOf(t, c, calls.Deps{
			Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}},
			Engine: &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{Body: []byte(`{}`), JSON: true}, nil
			}},
			Store: store.NewMemory(time.Now),
		})
		call := written(`{"text": "` + token + `"}`)["completion"]
		if o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{call}}, ""); o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
		settle(t, k)
		if counts := c.Policy.Counts(); counts[0].Decided != 1 {
			t.Errorf("%s: counted %+v", policy, counts)
		}
	}
}

// TestHookedStream: a completion in pieces is redacted, and judged anew from what was written.
func TestHookedStream(t *testing.T) {
	ctx := context.Background()
	k, j := kernelHooked(t, redacting, nil, nil)
	s, err := k.Kernel.Stream(ctx, gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	text := `{"tool":{"name":"acts","arguments":{"text":"` + token + `"}}}`
	for i := range text {
		s.Write([]byte{text[i]})
	}
	j.fail(true)
	d := s.Close(ctx, false)
	j.fail(false)
	for range 2 {
		if d.Refusal() != nil {
			d.Become(d.Reopen(ctx).Judge(ctx))
		}
	}
	if r := d.Reports[0]; r.Refusal != nil || string(r.Call.Arguments) != `{"text":"`+gone+`"}` {
		t.Errorf("%+v", r)
	}
	d.Release()
	if r := j.all()[0]; !slices.Equal(r.Hooks, []string{"secrets"}) || r.Completion != `{"tool":{"name":"acts","arguments":{"text":"`+gone+`"}}}` {
		t.Errorf("%+v", r)
	}
	clean(t, j)
}

// TestHookRefusesCalls: a denial, and arguments that do not pass once they are redacted.
func TestHookRefusesCalls(t *testing.T) {
	const denying = `[{name: secrets, at: [call], patterns: [secrets]}]`
	for name, test := range map[string]struct {
		hooks, arguments, message string
		mode                      gateway.Mode
	}{
		"denied":              {denying, `{"text":"` + token + `"}`, "does not let these arguments pass: it has something that must not pass here, of the kind github-token, at /text.", gateway.ModeCall},
		"denied to clients":   {denying, `{"text":"` + token + `"}`, "github-token", gateway.ModeEnforce},
		"redacted to clients": {redacting, `{"text":"` + token + `"}`, "which cannot be done in a call that the application runs", gateway.ModeEnforce},
		"redacted by schema":  {`[{name: own, at: [call], patterns: [{name: abcdefghijklmnopqrstuvwxyz, regex: "x"}], on_match: redact}]`, `{"id":"xx"}`, "and what is left is refused (invalid_value)", gateway.ModeCall},
		"redacted by project": {`[{name: own, at: [call], patterns: [{name: folders, regex: "a/b"}], on_match: redact}]`, `{"path":"a/b/../../c"}`, "and what is left is refused (boundary_violation)", gateway.ModeCall},
		"redacted by policy":  {redacting, `{"to":"` + token + `"}`, "and what is left is refused (permission_denied)", gateway.ModeCall},
		"too long":            {`[{name: short, at: [call], patterns: [secrets], max_bytes: 4}]`, `{"text":"x"}`, "it is longer than the 4 bytes", gateway.ModeCall},
		"nobody to ask":       {`[{name: away, at: [call], url: "https://a.example"}]`, `{"text":"x"}`, "The hook away of this gateway could not be asked about this call, so nothing was executed.", gateway.ModeCall},
		"for another tool":    {`[{name: secrets, at: [call], patterns: [secrets], tools: [other.*]}]`, `{"text":"` + token + `"}`, "", gateway.ModeCall},
		"for results":         {`[{name: secrets, at: [result], patterns: [secrets]}]`, `{"text":"` + token + `"}`, "", gateway.ModeCall},
		"for another agent":   {`[{name: secrets, at: [call], patterns: [secrets], agents: [Intern]}]`, `{"text":"` + token + `"}`, "", gateway.ModeCall},
	} {
		for form, in := range written(test.arguments) {
			k, j := kernelHooked(t, test.hooks, nil, nil)
			d := admit(t, k, gateway.Request{}).Judge(context.Background(), test.mode, in)
			d.Release()
			refused := d.Refusal()
			if (refused != nil) != (test.message != "") {
				t.Errorf("%s, %s: %v", name, form, refused)
				continue
			}
			if refused == nil {
				continue
			}
			r := j.all()[0]
			if refused.Code != refusal.HookDenied || refused.Stage != refusal.Approval || !strings.Contains(refused.Message, test.message) || strings.Contains(refused.Message, token) {
				t.Errorf("%s, %s: %v", name, form, refused)
			}
			if r.Code != refusal.HookDenied || len(r.Hooks) != 1 {
				t.Errorf("%s, %s: recorded %+v", name, form, r)
			}
			clean(t, j)
		}
	}
}

// toolSays is a value with the token, at every place where a tool can say something.
var toolSays = map[string]func(context.Context, tool.Call) (tool.Result, error){
	"a JSON result": func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(`{"text":"` + token + `"}`), JSON: true}, nil
	},
	"JSON in a text": func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(`{"text":"{\"a\":\"\\u0067` + token[1:] + `\"}"}`), JSON: true}, nil
	},
	"a failure": func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, refusal.New(refusal.ToolFailed, "no: "+token)
	},
	"a failure with a question": func(context.Context, tool.Call) (tool.Result, error) {
		params := `{"message":"Sure?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}}}`
		return tool.Result{InputRequired: want(nil, question("q", "form", params))}, refusal.New(refusal.ToolFailed, "no: "+token)
	},
	"questions": func(context.Context, tool.Call) (tool.Result, error) {
		params := `{"message":"Is it ` + token + `?","requestedSchema":{"type":"object","properties":{"yes":{"type":"boolean"}}}}`
		return tool.Result{InputRequired: want(nil, question("q", "form", params))}, failed()
	},
	"challenges": func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Challenges: []tool.Challenge{{URL: "https://a.example/" + token}}}, failed()
	},
	"progress": func(_ context.Context, task tool.Call) (tool.Result, error) {
		task.Progress(tool.Progress{Done: 1, Message: "at " + token})
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	},
	"logs": func(_ context.Context, task tool.Call) (tool.Result, error) {
		task.Log(tool.Log{Level: "error", Logger: token, Data: json.RawMessage(`{"a":"` + token + `"}`)})
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	},
}

// TestHookedResults: nothing that a tool says gets anywhere before hooks have seen it: not into the
// outcome, the store, the log, or to a caller that listens meanwhile.
func TestHookedResults(t *testing.T) {
	for place, say := range toolSays {
		for _, action := range []string{"redact", "deny"} {
			k, j := kernelHooked(t, `[{name: secrets, at: [result], patterns: [secrets], on_match: `+action+`}]`, say, nil)
			var heard []string
			hears := func(v any) {
				b, err := json.Marshal(v)
				if err != nil {
					t.Error(err)
				}
				heard = append(heard, string(b))
			}
			request := gateway.Request{Inputs: []gateway.Input{{
				Native: &gateway.NativeCall{Name: "acts", Arguments: []byte(`{}`)},
				Dialogue: &elicit.Dialogue{
					Progress: func(p tool.Progress) { hears(p) }, Log: func(l tool.Log) { hears(l) }, LogLevel: "debug", QuestionKinds: everything,
				},
			}}}
			o := k.Handle(context.Background(), request, "key")
			again := k.Handle(context.Background(), request, "key")
			settle(t, k)
			for _, o := range []calls.Outcome{o, again} {
				shown, err := json.Marshal(o)
				if err != nil || strings.Contains(string(shown)+string(o.Result), token) {
					t.Errorf("%s, %s: %s, %v", place, action, shown, err)
				}
			}
			if !again.Replayed || string(again.Result) != string(o.Result) {
				t.Errorf("%s, %s: replayed %s", place, action, again.Result)
			}
			if all := strings.Join(heard, " "); strings.Contains(all, token) || action == "redact" && (place == "progress" || place == "logs") && !strings.Contains(all, gone) {
				t.Errorf("%s, %s: heard %s", place, action, all)
			}
			meanwhile := place == "progress" || place == "logs"
			bound := place == "questions" || place == "challenges" // by their bytes
			switch {
			case meanwhile:
				if o.Refusal != nil {
					t.Errorf("%s, %s: %v", place, action, o.Refusal)
				}
			case action == "deny" || bound:
				if o.Refusal == nil || o.Refusal.Code != refusal.HookDenied || o.Refusal.Stage != refusal.Wrap || o.InputRequest != nil || o.Challenges != nil {
					t.Errorf("%s, %s: %+v", place, action, o)
				}
			case !strings.Contains(string(o.Result), gone):
				t.Errorf("%s, %s: %s", place, action, o.Result)
			}
			if last := j.all()[len(j.all())-1]; !meanwhile && !slices.Equal(last.Hooks, []string{"secrets"}) {
				t.Errorf("%s, %s: recorded %+v", place, action, last)
			}
			clean(t, j)
		}
	}
}

// TestHookLabelsResults: what a tool says, at any place, has its label in the thread once somebody gets it, and in the record of
// the outcome; where no record follows, or the call is in no thread, nobody gets it.
func TestHookLabelsResults(t *testing.T) {
	labelling := hookFiles(`[{name: secrets, at: [result], patterns: [secrets], on_match: label, label: customer}]`)
	labelling["callgate.yaml"] += "threads: {labels: [customer]}\n"
	labelling["policy.csv"] = `p, Analyst, *, acts, "!('customer' in thread.labels)", allow` + "\n"
	for place, say := range toolSays {
		t.Run(place, func(t *testing.T) {
			c := facetest.Config(t, labelling)
			j, threads := &journal{}, store.NewThreads(time.Now, store.ThreadBounds{})
			k := kernelOf(t, hookConfig(c), calls.Deps{
				Deps:   gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j, Ledger: threads},
				Engine: &engine{answer: say}, Store: store.NewMemory(time.Now),
			})
			terms, _, err := k.Kernel.Config().Terms()
			if err == nil {
				_, err = threads.KeepTerms(t.Context(), terms, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			var heard []byte
			hears := func(v any) {
				b, err := json.Marshal(v)
				if err != nil {
					t.Error(err)
				}
				heard = append(heard, b...)
			}
			in := []gateway.Input{{
				Native: &gateway.NativeCall{Name: "acts", Arguments: []byte(`{}`)},
				Dialogue: &elicit.Dialogue{
					Progress: func(p tool.Progress) { hears(p) }, Log: func(l tool.Log) { hears(l) }, LogLevel: "debug", QuestionKinds: everything,
				},
			}}
			unnamed := k.Handle(t.Context(), gateway.Request{Inputs: in}, "")
			if unnamed.Refusal == nil || unnamed.Refusal.Code != refusal.ThreadRequired {
				t.Errorf("in no thread: %v", unnamed.Refusal)
			}
			o := k.Handle(t.Context(), gateway.Request{Inputs: in, Thread: "t"}, "")
			again := k.Handle(t.Context(), gateway.Request{Inputs: in, Thread: "t"}, "")
			settle(t, k)
			meanwhile := place == "progress" || place == "logs"
			if strings.Contains(string(heard), token) || o.Pending || (again.Refusal != nil && again.Refusal.Code == refusal.PermissionDenied) == meanwhile {
				t.Errorf("heard %s; %v, then %v", heard, o.Refusal, again.Refusal)
			}
			for _, r := range j.all() {
				if r.Event == audit.Ending && r.CallID == o.CallID && !meanwhile &&
					(!slices.Equal(r.Hooks, []string{"secrets"}) || len(r.Adds) != 2 || r.Adds[1] != "label:customer" || r.Turn == 0) {
					t.Errorf("recorded %+v", r)
				}
			}
		})
	}
}

// TestRedactedResultFitsItsSchema: what is left is held against the output schema again.
func TestRedactedResultFitsItsSchema(t *testing.T) {
	const own = `[{name: own, at: [result], patterns: [{name: abcdefghijklmnopqrstuvwxyz, regex: "x"}], on_match: redact}]`
	k, _ := kernelHooked(t, own, body(`{"id":"xx"}`, true), nil)
	if o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{written(`{}`)["native"]}}, ""); o.Refusal == nil || o.Refusal.Code != refusal.InvalidResult {
		t.Errorf("%+v", o)
	}
}

// verdicts counts what hooks answered.
type verdicts []string

func (v *verdicts) HookEnded(hook, at, verdict string, _ time.Duration) {
	*v = append(*v, hook+" "+at+" "+verdict)
}

// asker answers as a callout.
type asker func(q hook.Question, value string) (hook.Answer, error)

func (a asker) Ask(_ context.Context, _ *hook.Hook, q hook.Question, value []byte) (hook.Answer, error) {
	return a(q, string(value))
}

// TestCalloutIsAsked: what a callout is told, once for a call and once for its result.
func TestCalloutIsAsked(t *testing.T) {
	var asked []string
	var counted verdicts
	k, _ := kernelHooked(t, `[{name: dlp, at: [call, result], url: "https://a.example"}]`, body(`{"text":"y"}`, true), func(d *calls.Deps) {
		d.HookObserver = &counted
		d.Hooks = asker(func(q hook.Question, value string) (hook.Answer, error) {
			asked = append(asked, fmt.Sprintf("%s %s %s %s/%s %s", q.At, q.Mode, q.Agent, q.Workspace, q.Project, value))
			if q.CallID == "" || q.Tool != "acts" {
				t.Errorf("asked %+v", q)
			}
			return hook.Answer{Redact: []string{"/text"}}, nil
		})
	})
	o := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{written(`{"text":"x"}`)["native"]}}, "")
	if string(o.Result) != `{"tool_result":{"tool":"acts","output":{"text":"[redacted:dlp]"}}}`+"\n" && string(o.Result) != `{"tool_result":{"tool":"acts","output":{"text":"[redacted:dlp]"}}}` {
		t.Errorf("%s", o.Result)
	}
	if want := []string{`call call Analyst acme/alpha {"text":"x"}`, `result call Analyst acme/alpha {"text":"y"}`}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	if want := []string{"dlp call redacted", "dlp result redacted"}; !slices.Equal(counted, want) {
		t.Errorf("counted %q", counted)
	}
	if r := k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{written(`{"text":"x"}`)["native"]}}); r.Refusal != nil || len(asked) != 2 {
		t.Errorf("a check asks: %+v", r)
	}
}

// TestHookBrought: results that a request brings back.
func TestHookBrought(t *testing.T) {
	for hooks, want := range map[string]string{
		redacting: `{"a":["` + gone + `"]}`,
		`[{name: secrets, at: [result], patterns: [secrets]}]`:                   "",
		`[{name: secrets, at: [call], patterns: [secrets]}]`:                     `{"a":["` + token + `"]}`,
		`[{name: secrets, at: [result], patterns: [secrets], tools: [other.*]}]`: `{"a":["` + token + `"]}`,
	} {
		k, _ := kernelHooked(t, hooks, nil, nil)
		left, err := admit(t, k, gateway.Request{}).Hooks().Brought(context.Background(), hook.Result, "acts", []byte(`{"a":["`+token+`"]}`))
		if string(left) != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v", hooks, left, err)
		}
		if err != nil && (refusal.From(refusal.Request, err).Code != refusal.HookDenied || strings.Contains(err.Error(), token)) {
			t.Errorf("%v", err)
		}
	}
}

// TestHookTurnsBrought: calls and texts of earlier turns that a request brings back, by the tools of a hook.
func TestHookTurnsBrought(t *testing.T) {
	for hooks, want := range map[string][2]string{ // of a call and of a text; empty: denied
		`[{name: s, at: [call], patterns: [secrets], on_match: redact}]`:                   {gone, token},
		`[{name: s, at: [call], patterns: [secrets], on_match: redact, tools: [other.*]}]`: {token, token},
		`[{name: s, at: [text], patterns: [secrets], on_match: redact}]`:                   {token, gone},
		`[{name: s, at: [call, text], patterns: [secrets]}]`:                               {"", ""},
	} {
		k, _ := kernelHooked(t, hooks, nil, nil)
		a := admit(t, k, gateway.Request{})
		call, errCall := a.Hooks().Brought(context.Background(), hook.Call, "acts", []byte(`"`+token+`"`))
		texts, errText := a.Hooks().TextsBrought(context.Background(), []string{token})
		for i, got := range []string{strings.Trim(string(call), `"`), strings.Join(texts, "")} {
			err := []error{errCall, errText}[i]
			if got != want[i] || (err != nil) != (want[i] == "") {
				t.Errorf("%s: %q, %v", hooks, got, err)
			}
			if refused := refusal.From(refusal.Wrap, err); err != nil && (refused.Code != refusal.HookDenied || refused.Stage != refusal.Request || strings.Contains(err.Error(), token)) {
				t.Errorf("%v", err)
			}
		}
	}
}
