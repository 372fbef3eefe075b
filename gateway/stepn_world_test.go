package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// attempt is a call, and what it meets. Its zero value passes every check; each fault
// changes fields that no other fault changes, so that faults can be put together.
type attempt struct {
	badCredential, callerSpent bool
	badRequest                 bool
	agent                      string // that the request names
	trailing, ending           string // behind the completion, and instead of its last brace
	fault                      *refusal.Error
	claim                      string
	agentRequired              bool
	surplus, noArguments       bool // of the envelope
	otherNamed, callsRuledOut  bool // by the terms of an admission
	tool                       string
	denied, quarantined        bool
	starting, stopped          bool
	unexpected, wrongType      bool // of the arguments
	state                      string
	amount                     int
	spent, held, away          bool // of the limits
	unnamedProject             bool
	foreignWorkspace, nowhere  bool
	foreignProject, noProject  bool
	closedProject              bool
	outside                    bool
	threadless                 bool // the request names no thread
	deniedSince                bool // the policy denies it by what another gateway has done since it was permitted
	pastAway, threadsFull      bool // of the ledger
	hooked                     bool // an argument has what a hook denies
	asked                      bool // by a row of the policy
	silent                     bool // the journal takes nothing
	storeAway, fails, garbled  bool
}

const (
	burst = 5
	slots = 2
)

// orderFiles are the configuration of an attempt.
func orderFiles(denied bool) map[string]string {
	rows := "p, Analyst, *, acts, args.amount <= 100, allow\n"
	if denied {
		rows += "p, Analyst, *, acts, , deny\n"
	}
	project := "{agents: [Analyst], roots: [/srv]}"
	return map[string]string{
		"policy.csv": rows,
		"workspaces.yaml": "workspaces:\n" +
			"  acme: {projects: {alpha: " + project + ", beta: " + project + ", closed: {agents: [Intern], roots: [/srv]}}}\n" +
			"  globex: {projects: {alpha: " + project + "}}\n",
		"tools.yaml": `tools:
  - name: acts
    input_schema:
      type: object
      required: [amount]
      properties: {amount: {type: integer}, label: {type: string}, note: {type: string}, text: {type: string}, path: {type: string, x-boundary: path}}
    run: {type: demo}
`,
	}
}

// orderConfigs are the configurations of attempts, by whether the policy denies the tool.
func orderConfigs(t testing.TB) map[bool]*configs.Config {
	t.Helper()
	of := map[bool]*configs.Config{}
	for _, denied := range []bool{false, true} {
		files := orderFiles(denied)
		c := *facetest.Config(t, files)
		asking := files["policy.csv"] + `p, Analyst, *, acts, "args.amount < 100 && thread.calls('acts') > 1", deny` + "\n" + `p, Analyst, *, acts, "has(args.note) && args.note == 'ask'", ask:board` +
			"\np, Analyst, *, acts, args.amount > 100, deny\n# end\n" // a row that asks permits too
		loaded, _, err := policy.Load(policy.Source{File: "policy.csv", Data: []byte(asking)}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Policy = loaded
		of[denied] = &c
	}
	return of
}

// denying is a hook that denies arguments with a text.
func denying(t testing.TB, text string) *hook.Set {
	t.Helper()
	p, err := hook.NewPattern("text", text)
	if err != nil {
		t.Fatal(err)
	}
	return hook.NewSet([]*hook.Hook{{Name: "quiet", At: []hook.Point{hook.Call}, Patterns: []*hook.Pattern{p}, OnMatch: hook.Deny, MaxBytes: 1 << 10}})
}

// limits counts what is asked of a limiter.
type limits struct {
	*ratelimit.Local
	of    *ratelimit.Limits
	takes int
	away  bool
}

func newLimits(t testing.TB) *limits {
	t.Helper()
	rate, err := ratelimit.ParseRate("1/h")
	if err != nil {
		t.Fatal(err)
	}
	concurrency := slots
	return &limits{Local: ratelimit.NewLocal(newClock().now), of: &ratelimit.Limits{
		Replicas: 1, Caller: &ratelimit.Budget{Rate: rate, Burst: burst},
		Default: ratelimit.Allowance{Budget: &ratelimit.Budget{Rate: rate, Burst: burst}, Concurrency: &concurrency},
	}}
}

func (l *limits) Take(ctx context.Context, of *ratelimit.Limits, key ratelimit.Key) (ratelimit.Lease, error) {
	l.takes++
	if l.away {
		return ratelimit.Lease{}, refusal.New(refusal.LimiterUnavailable, "m")
	}
	return l.Local.Take(ctx, of, key)
}

// take takes once for the agent of attempts, without being counted.
func (l *limits) take() (ratelimit.Lease, error) {
	return l.Local.Take(context.Background(), l.of, ratelimit.Key{Agent: "Analyst", Tool: "acts"})
}

// left tells how many slots are free, and how many tokens there are; both are taken.
func (l *limits) left() (free, tokens int) {
	var held []ratelimit.Lease
	for {
		lease, err := l.take()
		if err != nil {
			break
		}
		held = append(held, lease)
	}
	free = len(held)
	for _, lease := range held {
		lease.Release()
	}
	for tokens = free; ; tokens++ {
		lease, err := l.take()
		if err != nil {
			return free, tokens
		}
		lease.Release()
	}
}

// boundedName counts what is written to a store.
type boundedName struct {
	*store.Memory
	away   bool
	writes int
}

func (s *boundedName) Open(ctx context.Context, c store.Call) (*store.Call, error) {
	s.writes++
	if s.away {
		return nil, errors.New("the store is away")
	}
	return s.Memory.Open(ctx, c)
}

func (s *boundedName) Dispatch(ctx context.Context, id string, task store.Task) error {
	s.writes++
	return s.Memory.Dispatch(ctx, id, task)
}

// keptCalls is a ledger that counts what is kept of calls.
type keptCalls struct {
	gateway.Ledger // of nothing else
	away, full     bool
	terms          *history.Terms
	before         history.Adds // by a call of another gateway, of which only the latest past tells
	kept           int
}

// newKeptCalls is the ledger of a configuration, for which another gateway may have made a call of acts since it was read.
func newKeptCalls(t testing.TB, s *gateway.Config, behind bool) *keptCalls {
	t.Helper()
	terms, _, err := s.Terms()
	if err != nil {
		t.Fatal(err)
	}
	l := &keptCalls{terms: terms}
	if behind {
		if l.before, err = terms.Adds("acts", nil, nil, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *keptCalls) Past(_ context.Context, _ store.ThreadKeys, latest bool) (history.Past, error) {
	if l.away {
		return history.Past{}, errors.New("the ledger is away")
	}
	now := time.Now()
	past := history.Past{Thread: history.Begin(now), Caller: history.Begin(now), Keeping: (*history.Keeping)(nil).With("", l.terms, time.Time{}), Now: now}
	if past.Old = !latest; latest {
		past.Thread = past.Thread.Apply(l.before, false)
	}
	return past, nil
}

func (l *keptCalls) Reserve(ctx context.Context, of store.ThreadKeys, decide func(history.Past) ([]history.Adds, error)) (all []store.Reserved, err error) {
	if l.full {
		return nil, store.ErrFull
	}
	past, _ := l.Past(ctx, of, true)
	adds, err := decide(past)
	for _, a := range adds {
		l.kept++
		all = append(all, store.Reserved{Adds: a, Turn: uint64(l.kept)})
	}
	return all, err
}

func (l *keptCalls) Release(context.Context, store.ThreadKeys, history.Adds) (store.Reserved, error) {
	l.kept--
	return store.Reserved{}, nil
}

// world is what one attempt meets, and what is left of it afterwards.
type world struct {
	attempt
	kernel  *calls.Executor
	engine  *engine
	journal *journal
	store   *boundedName
	limits  *limits
	ledger  *keptCalls
	holds   []ratelimit.Lease // slots that others hold
}

// meet builds the world of an attempt.
func (a attempt) meet(t testing.TB, of map[bool]*configs.Config) *world {
	t.Helper()
	w := &world{attempt: a, journal: &journal{}, store: &boundedName{Memory: store.NewMemory(time.Now), away: a.storeAway}, limits: newLimits(t)}
	w.engine = &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		var err error
		if a.fails {
			err = refusal.New(refusal.ToolFailed, "m")
		}
		if a.garbled {
			return tool.Result{Body: []byte(`{"a":`), JSON: true, Attempts: 1}, err
		}
		return tool.Result{Body: []byte(`{"ok":true}`), JSON: true, Attempts: 1}, err
	}}
	principal := &identity.Principal{Name: "one", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha", "omega", "closed"}}
	if a.nowhere {
		principal.Workspace = "nowhere"
	}
	c := of[a.denied]
	s := &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: w.limits.of,
		AgentRequired: a.agentRequired, Identity: knows{"k": principal}, Digest: c.Digest, Hooks: denying(t, "hush"),
	}
	w.ledger = newKeptCalls(t, s, a.deniedSince)
	w.ledger.away, w.ledger.full = a.pastAway, a.threadsFull
	w.kernel = kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: w.limits, Journal: w.journal, Ledger: w.ledger}, Engine: w.engine, Store: w.store})
	if a.quarantined {
		w.kernel.Kernel.Quarantine(map[string]bool{"acts": true})
	}
	if a.starting {
		w.kernel.Kernel.Starting(map[string]time.Duration{"acts": 0})
	}
	if a.stopped {
		w.kernel.Kernel.Stop([]store.Stop{{ID: "stop_1", Agent: "Analyst"}}, true)
	}
	w.journal.fail(a.silent)
	w.drain(t)
	return w
}

// drain takes from the limits what others have taken before.
func (w *world) drain(t testing.TB) {
	t.Helper()
	for range burst {
		if w.callerSpent {
			if err := w.limits.Caller(context.Background(), w.limits.of, "one"); err != nil {
				t.Fatal(err)
			}
		}
		if w.spent || w.held && len(w.holds) < slots {
			lease, err := w.limits.take()
			if err != nil {
				t.Fatal(err)
			}
			if w.held {
				w.holds = append(w.holds, lease)
			} else {
				lease.Release()
			}
		}
	}
	w.limits.away = w.away
}

// completion is what the model has written.
func (a attempt) completion() string {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	arguments := []string{fmt.Sprintf(`"amount":%d`, max(a.amount, 1))}
	if a.unexpected {
		arguments = append(arguments, `"more":1`)
	}
	if a.hooked {
		arguments = append(arguments, `"text":"hush"`)
	}
	if a.asked {
		arguments = append(arguments, `"note":"ask"`)
	}
	if a.wrongType {
		arguments = append(arguments, `"label":1`)
	}
	if a.outside {
		arguments = append(arguments, `"path":"/etc/passwd"`)
	}
	tool := fmt.Sprintf(`"name":%q`, or(a.tool, "acts"))
	if !a.noArguments {
		tool += `,"arguments":{` + strings.Join(arguments, ",") + "}"
	}
	members := []string{`"tool":{` + tool + "}"}
	if a.claim != "" {
		members = append(members, fmt.Sprintf(`"agent":%q`, a.claim))
	}
	if a.surplus {
		members = append(members, `"thought":"hm"`)
	}
	return "{" + strings.Join(members, ",") + or(a.ending, "}") + a.trailing
}

// request is how the attempt is asked for.
func (a attempt) request() gateway.Request {
	r := gateway.Request{Credential: "k", Thread: "t", Subject: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}}
	if a.badCredential {
		r.Credential = "another"
	}
	if a.threadless {
		r.Thread = ""
	}
	if a.agent != "" {
		r.Agent = a.agent
	}
	switch {
	case a.nowhere:
		r.Workspace = "nowhere"
	case a.foreignWorkspace:
		r.Workspace = "globex"
	}
	switch {
	case a.unnamedProject:
		r.Project = ""
	case a.foreignProject:
		r.Project = "beta"
	case a.noProject:
		r.Project = "omega"
	case a.closedProject:
		r.Project = "closed"
	}
	return r
}

// input is the completion, with the state that it brings.
func (a attempt) input() gateway.Input {
	in := gateway.Input{Completion: []byte(a.completion())}
	if a.state != "" {
		in.Dialogue = &elicit.Dialogue{QuestionKinds: []string{"form"}, RequestState: a.state, Answers: map[string]json.RawMessage{}}
	}
	return in
}

// terms are those of the answer that the completion is.
func (a attempt) terms() gateway.Constraints {
	terms := gateway.Constraints{RefuseAll: a.fault}
	if a.otherNamed {
		terms.OnlyTools = []string{"other"}
	}
	if a.callsRuledOut {
		terms.RefuseCall = refusal.New(refusal.MixedOutput, "beside")
	}
	return terms
}
