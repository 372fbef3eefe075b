package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

var bothModes = []gateway.Mode{gateway.ModeCall, gateway.ModeEnforce}

// knows are the credentials of a test.
type knows map[string]*identity.Principal

func (k knows) Authenticate(credential string) *identity.Principal { return k[credential] }

// panics knows nobody, loudly.
type panics struct{}

func (panics) Authenticate(string) *identity.Principal { panic("secret of the keys") }

func admit(t testing.TB, k *calls.Executor, request gateway.Request) *gateway.Admission {
	t.Helper()
	a, err := k.Kernel.Admit(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// refusedAs is the code and stage of a refusal.
func refusedAs(err error) string {
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused == nil {
		return ""
	}
	return string(refused.Stage) + " " + string(refused.Code)
}

func refusedBy(d *gateway.Decision) string {
	if r := d.Refusal(); r != nil {
		return refusedAs(r)
	}
	return ""
}

// cuts calls back with every way of cutting b into one piece a byte, or into two.
func cuts(b []byte, with func(pieces [][]byte)) {
	single := make([][]byte, len(b))
	for i := range b {
		single[i] = b[i : i+1]
	}
	with(single)
	step := 1 + len(b)/256
	for at := 0; at <= len(b); at += step {
		with([][]byte{b[:at], b[at:]})
	}
}

// TestVectorsAdmitted: under an admission the verdicts are those of Judge, in
// both modes, whole and cut.
func TestVectorsAdmitted(t *testing.T) {
	k := unlimited(t)
	for _, v := range corpora.Vectors(t) {
		in, truncated := v.Bytes(t), parser.Truncates(v.FinishReason)
		a, err := k.Kernel.Admit(context.Background(), gateway.Request{Subject: subjectOf(v)})
		if err != nil {
			if refusedAs(err) != v.Expect.Stage+" "+v.Expect.Code {
				t.Errorf("%s: %v", v.ID, err)
			}
			continue
		}
		for _, mode := range bothModes {
			d := a.Judge(context.Background(), mode, gateway.Input{Completion: in, Truncated: truncated})
			matches(t, v, d.Reports[0])
			d.Release()
			cuts(in, func(pieces [][]byte) {
				s, err := a.Stream(context.Background(), mode, false)
				if err != nil {
					t.Fatalf("%s: %v", v.ID, err)
				}
				released := ""
				for _, p := range pieces {
					released += string(s.Write(p))
				}
				d := s.Close(context.Background(), truncated)
				d.Release()
				matches(t, v, d.Reports[0])
				if d.Reports[0].Verdict == gateway.VerdictText && released+string(d.Reports[0].Text) != string(in) {
					t.Errorf("%s: text came out as %q", v.ID, released)
				}
			})
		}
	}
}

// TestAdmissionTakesTheCallersRateOnce: a conversation is one request of its
// caller, however many judgements it takes.
func TestAdmissionTakesTheCallersRateOnce(t *testing.T) {
	s := state(t, vectorConfig)
	rate, _ := ratelimit.ParseRate("1/h")
	s.Limits = &ratelimit.Limits{Replicas: 1, Caller: &ratelimit.Budget{Rate: rate, Burst: 1}}
	j := &journal{}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: j}})
	request := gateway.Request{CallerAddress: "127.0.0.1"}
	a := admit(t, k, request)
	for range 20 {
		for _, mode := range bothModes {
			d := a.Judge(context.Background(), mode, gateway.Input{Completion: []byte(search)})
			if got := refusedBy(d); got != "" {
				t.Fatal(got)
			}
			d.Release()
			if _, err := a.Stream(context.Background(), mode, true); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Tools(); err != nil {
			t.Fatal(err)
		}
	}
	before := len(j.all())
	if _, err := k.Kernel.Admit(context.Background(), request); refusedAs(err) != "identity caller_rate_limited" {
		t.Errorf("a second request: %v", err)
	}
	if len(j.all()) != before {
		t.Error("a caller over its rate was written down")
	}
	if got := codeOf(k.Kernel.Judge(context.Background(), gateway.Request{CallerAddress: "127.0.0.1"})); got != refusal.CallerRateLimited {
		t.Errorf("a judgement without admission: %s", got)
	}
}

// TestNoAdmission: what Admit did not make lets nothing in.
func TestNoAdmission(t *testing.T) {
	var a gateway.Admission
	d := a.Judge(context.Background(), gateway.ModeCall, gateway.Input{Completion: []byte(search)})
	if refusedBy(d) != "identity internal" || d.Reports[0].Verdict != gateway.VerdictRefused {
		t.Errorf("judged: %+v", d.Reports)
	}
	e := &engine{}
	k := open(t, e, &journal{})
	for _, act := range []func(context.Context, *gateway.Decision) []calls.Outcome{k.Execute, k.HandOver} {
		if o := act(context.Background(), d); len(o) != 1 || o[0].Refusal == nil || e.runs.Load() != 0 {
			t.Errorf("acted on: %+v", o)
		}
	}
	if _, err := a.Stream(context.Background(), gateway.ModeCall, false); refusedAs(err) != "identity internal" {
		t.Errorf("streamed: %v", err)
	}
	if _, err := a.Tools(); refusedAs(err) != "identity internal" {
		t.Errorf("tools: %v", err)
	}
	if _, ok := a.ToolName("web_search"); ok {
		t.Error("a name")
	}
}

var (
	analyst = &identity.Principal{Name: "ann", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
	both    = &identity.Principal{Name: "bob", Agents: []string{"Analyst", "Intern"}, Workspace: "acme", Projects: []string{"alpha"}}
)

// TestAdmissionIsCheckedAnew: what changes after the admission refuses, whatever
// was let in.
func TestAdmissionIsCheckedAnew(t *testing.T) {
	base := state(t, vectorConfig)
	base.Limits = &ratelimit.Limits{Replicas: 1}
	base.Identity = knows{"k": analyst}
	renamed, moved, elsewhere := *analyst, *analyst, *analyst
	renamed.Name, moved.Agents, elsewhere.Workspace = "eve", []string{"Intern"}, "globex"
	denies := state(t, deniesAll(t))
	for name, c := range map[string]struct {
		change func(*gateway.Config)
		want   string
		lists  string // of Tools
	}{
		"nothing":               {func(*gateway.Config) {}, "", ""},
		"the credential":        {func(s *gateway.Config) { s.Identity = knows{} }, "identity unauthenticated", "identity unauthenticated"},
		"whose it is":           {func(s *gateway.Config) { s.Identity = knows{"k": &renamed} }, "identity unauthenticated", "identity unauthenticated"},
		"what it may stand for": {func(s *gateway.Config) { s.Identity = knows{"k": &moved} }, "identity agent_mismatch", "identity agent_mismatch"},
		"the agents":            {func(s *gateway.Config) { s.Agents = map[string]bool{"Intern": true} }, "identity agent_unknown", "identity agent_unknown"},
		"the policy":            {func(s *gateway.Config) { s.Policy = denies.Policy }, "permission permission_denied", ""},
		"the workspace":         {func(s *gateway.Config) { s.Identity = knows{"k": &elsewhere} }, "workspace workspace_mismatch", ""},
		"who knows credentials": {func(s *gateway.Config) { s.Identity = panics{} }, "identity internal", "identity internal"},
	} {
		e, j := &engine{}, &journal{}
		k := kernelOf(t, base, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}, Engine: e, Store: newShelf()})
		a := admit(t, k, gateway.Request{Credential: "k", CallerAddress: "127.0.0.1"})
		if a.Principal() != "ann" || a.Subject() != (gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}) {
			t.Fatalf("let in as %s %+v", a.Principal(), a.Subject())
		}
		changed := *base
		changed.Digest = "changed"
		c.change(&changed)
		if err := k.Kernel.Swap(&changed); err != nil {
			t.Fatal(err)
		}
		d := a.Judge(context.Background(), gateway.ModeCall, gateway.Input{Completion: []byte(search)})
		k.Execute(context.Background(), d)
		if got := refusedBy(d); got != c.want || d.Digest != "changed" || (e.runs.Load() == 1) != (c.want == "") {
			t.Errorf("%s: got %q by %s, ran %d times", name, got, d.Digest, e.runs.Load())
		}
		if s, err := a.Stream(context.Background(), gateway.ModeCall, false); strings.HasPrefix(c.want, "identity") {
			if refusedAs(err) != c.want {
				t.Errorf("%s: streams: %v", name, err)
			}
		} else if s.Write([]byte(search)); refusedBy(s.Close(context.Background(), false)) != c.want {
			t.Errorf("%s: streamed another verdict", name)
		}
		if _, err := a.Tools(); refusedAs(err) != c.lists {
			t.Errorf("%s: lists: %v", name, err)
		}
	}
}

// TestAdmissionKeepsItsSubject: defaults that change do not make it another's.
func TestAdmissionKeepsItsSubject(t *testing.T) {
	s := state(t, vectorConfig)
	k := kernelWith(t, s, ratelimit.NewLocal(time.Now))
	a := admit(t, k, gateway.Request{})
	changed := *s
	changed.Defaults = gateway.Subject{Agent: "Intern", Workspace: "globex", Project: "gamma"}
	if err := k.Kernel.Swap(&changed); err != nil {
		t.Fatal(err)
	}
	d := a.Judge(context.Background(), gateway.ModeCall, gateway.Input{Completion: []byte(search)})
	if call := d.Reports[0].Call; call == nil || call.Agent != "Analyst" || call.Project != "alpha" {
		t.Errorf("judged for %+v (%s)", call, refusedBy(d))
	}
}

// TestAdmitRefuses as every judgement does, and writes down what they would.
func TestAdmitRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		authn   gateway.Authenticator
		request gateway.Request
		want    string
		written int
	}{
		"nobody":          {knows{"k": analyst}, gateway.Request{Credential: "x"}, "identity unauthenticated", 0},
		"another's agent": {knows{"k": analyst}, gateway.Request{Credential: "k", Subject: gateway.Subject{Agent: "Intern"}}, "identity agent_mismatch", 1},
		"unknown agent":   {nil, gateway.Request{Subject: gateway.Subject{Agent: "Nobody"}}, "identity agent_unknown", 1},
		"a panic":         {panics{}, gateway.Request{Credential: "k"}, "identity internal", 1},
		"several agents":  {knows{"k": both}, gateway.Request{Credential: "k"}, "", 0},
	} {
		s, j := state(t, vectorConfig), &journal{}
		s.Identity = c.authn
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: j}})
		a, err := k.Kernel.Admit(context.Background(), c.request)
		if refusedAs(err) != c.want || (a == nil) != (c.want != "") || len(j.all()) != c.written {
			t.Errorf("%s: %v, %d records", name, err, len(j.all()))
		}
		for _, r := range j.all() {
			if r.Verdict != audit.Refused || string(r.Stage)+" "+string(r.Code) != c.want {
				t.Errorf("%s: wrote %+v", name, r)
			}
		}
		if a != nil {
			if got := refusedBy(a.Judge(context.Background(), gateway.ModeCall, gateway.Input{Completion: []byte(search)})); got != "identity agent_required" {
				t.Errorf("%s: a call is %q", name, got)
			}
		}
	}
}

// TestNobodyCanSayWhoAsks: a part that knows credentials and panics refuses
// within the kernel, at every door, and tells nothing.
func TestNobodyCanSayWhoAsks(t *testing.T) {
	s, e := state(t, vectorConfig), &engine{}
	s.Identity = panics{}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: e, Store: newShelf()})
	ctx, request := context.Background(), completion(search)
	request.Credential = "k"
	errorOf := func(_ any, err error) error { return err }
	orNil := func(r *refusal.Error) error {
		if r == nil {
			return nil
		}
		return r
	}
	for door, err := range map[string]error{
		"Judge":  orNil(k.Kernel.Judge(ctx, request).Refusal()),
		"Check":  orNil(k.Kernel.Check(ctx, request).Refusal),
		"Handle": orNil(k.Handle(ctx, request, "").Refusal),
		"Stream": errorOf(k.Kernel.Stream(ctx, request)),
		"Admit":  errorOf(k.Kernel.Admit(ctx, request)),
		"Tools":  errorOf(k.Kernel.Tools(ctx, request)),
		"Lookup": errorOf(k.Lookup(ctx, request, "call_1")),
	} {
		if refusedAs(err) != "identity internal" {
			t.Errorf("%s: %v", door, err)
			continue
		}
		var refused *refusal.Error
		errors.As(err, &refused)
		if visible, _ := json.Marshal(refused); strings.Contains(string(visible)+err.Error(), "secret") {
			t.Errorf("%s tells: %s", door, visible)
		}
	}
	if e.runs.Load() != 0 {
		t.Errorf("ran %d times", e.runs.Load())
	}
}
