package approval_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/store/approval"
)

var (
	start = time.UnixMilli(1_700_000_000_000).UTC()
	rules = approval.Rules{
		"refunds": {Name: "refunds", Approve: 1, Within: 30 * time.Minute, Remember: map[approval.Scope]time.Duration{approval.Same: 8 * time.Hour}},
		"deploys": {Name: "deploys", Approve: 2, Within: 4 * time.Hour, Remember: map[approval.Scope]time.Duration{approval.Same: time.Hour, approval.InThread: time.Hour, approval.AnyCall: time.Hour}},
		"edits":   {Name: "edits", Approve: 1, Within: 5 * time.Minute, By: approval.ByCaller},
	}
)

func call() approval.Call {
	return approval.Call{
		Principal: "app", Workspace: "acme", Project: "alpha", Agent: "Analyst", User: "eve", Thread: "t", Tool: "payments.refund", Version: "1.0.0",
		Definition: "d", AnswersDigest: "s", Arguments: []byte(`{"amount": 1, "to": {"name": "Ann", "n": [1, "a"]}}`),
	}
}

// staff are people who may decide the rules of their names.
type staff map[string]approval.Voter

func (s staff) now(v approval.Vote) approval.Voter { return s[v.By] }

func allow(names ...string) staff {
	s := staff{}
	for _, name := range names {
		s[name] = approval.Voter{Principal: name, Approves: []string{"refunds", "deploys", "edits"}}
	}
	return s
}

func open(t testing.TB, asks ...string) *approval.Approval {
	t.Helper()
	a, err := approval.Open(approval.Approval{ID: "call_A", Call: call(), Rules: asks, Rows: []string{"policy.csv:3"}, Config: "c"}, rules, start)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func vote(a *approval.Approval, by string, yes bool) approval.Vote {
	return approval.Vote{By: by, Yes: yes, Digest: a.Digest, Rules: a.Rules}
}

func cast(t testing.TB, a *approval.Approval, v approval.Vote, at time.Time) {
	t.Helper()
	if _, err := a.Cast(v, at); err != nil {
		t.Fatal(err)
	}
}

// Every part of a call changes its digest; white space and the order of members do not.
func TestDigestBindsEveryPart(t *testing.T) {
	digest := func(c approval.Call) string {
		t.Helper()
		d, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want, seen := digest(call()), map[string]bool{}
	for i := range reflect.TypeFor[approval.Call]().NumField() {
		c := call()
		if f := reflect.ValueOf(&c).Elem().Field(i); f.Kind() == reflect.String {
			f.SetString(f.String() + "x")
		} else {
			c.Arguments = []byte(`{}`)
		}
		got := digest(c)
		if got == want || seen[got] {
			t.Errorf("%s is not bound", reflect.TypeFor[approval.Call]().Field(i).Name)
		}
		seen[got] = true
	}
	for arguments, same := range map[string]bool{
		`{"to":{"n":[1,"a"],"name":"Ann"},"amount":1}`:                   true,
		" {\n\"amount\" :1,\"to\":{\"name\":\"Ann\",\"n\":[ 1,\"a\"] }}": true,
		`{"amount":1.0,"to":{"name":"Ann","n":[1,"a"]}}`:                 false,
		`{"amount":1e0,"to":{"name":"Ann","n":[1,"a"]}}`:                 false,
		`{"amount":1,"to":{"name":"\u0041nn","n":[1,"a"]}}`:              false,
		`{"amount":1,"to":{"name":"Ann","n":["a",1]}}`:                   false,
		`{"amount":"1","to":{"name":"Ann","n":[1,"a"]}}`:                 false,
		`{"amount":1,"to":{"name":"Ann","n":[1,"a",null]}}`:              false,
		`{"amount":1,"to":{"name":"Ann","n":[[1,"a"]]}}`:                 false,
		`{"amount":1,"to":{"name":"Ann"},"n":[1,"a"]}`:                   false,
	} {
		c := call()
		c.Arguments = []byte(arguments)
		if got := digest(c) == want; got != same {
			t.Errorf("%s: the same digest %v, want %v", arguments, got, same)
		}
	}
	// A separator within one part does not move text to another.
	c, d := call(), call()
	c.Agent, c.Workspace = `a" "b`, "c"
	d.Agent, d.Workspace = "a", `b" "c`
	if digest(c) == digest(d) {
		t.Error("parts run into each other")
	}
}

func TestArgumentsThatCannotBeShown(t *testing.T) {
	for arguments, want := range map[string]error{
		`{"a":"` + strings.Repeat("x", approval.MaxArguments) + `"}`: approval.ErrTooLong,
		`{"a":1,"a":1}`: nil, `{"a":1`: nil, ``: nil, `{} {}`: nil, `{"a":"\ud800"}`: nil,
		strings.Repeat("[", 200) + strings.Repeat("]", 200): nil,
	} {
		c := call()
		c.Arguments = []byte(arguments)
		if d, err := c.Digest(); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.20s: %q, %v", arguments, d, err)
		}
	}
}

func TestNeverTheRequester(t *testing.T) {
	a := open(t, "refunds")
	all := []string{"refunds"}
	for name, tc := range map[string]struct {
		voter approval.Voter
		want  error
	}{
		"approver":             {approval.Voter{Principal: "ada", Approves: all}, nil},
		"its principal":        {approval.Voter{Principal: "app", Approves: all}, approval.ErrRequester},
		"of its agent":         {approval.Voter{Principal: "app2", Approves: all, Agents: []string{"X", "Analyst"}}, approval.ErrRequester},
		"of another agent":     {approval.Voter{Principal: "app2", Approves: all, Agents: []string{"X"}}, nil},
		"its user":             {approval.Voter{Principal: "eve", Approves: all}, approval.ErrRequester},
		"its user, by a token": {byToken("eve"), approval.ErrRequester},
		"another's user":       {byToken("steve"), nil},
		"a # before its user":  {byToken("steve#eve"), nil},
		"no token, and a #":    {approval.Voter{Principal: "steve#eve", Approves: all}, nil},
		"without the right":    {approval.Voter{Principal: "ada"}, approval.ErrNotApprover},
		"of another rule":      {approval.Voter{Principal: "ada", Approves: []string{"deploys"}}, approval.ErrNotApprover},
		"nobody":               {approval.Voter{Approves: all}, approval.ErrRequester},
	} {
		t.Run(name, func(t *testing.T) {
			decides, err := a.MayVote(tc.voter)
			if !errors.Is(err, tc.want) || (err == nil) != slices.Equal(decides, all) {
				t.Errorf("decides %q, %v; want %v", decides, err, tc.want)
			}
			// A vote that was cast all the same does not count.
			b := open(t, "refunds")
			cast(t, b, vote(b, tc.voter.Principal, true), start)
			people := func(approval.Vote) approval.Voter { return tc.voter }
			if got := b.Enough("refunds", rules, people, start); got != (tc.want == nil) {
				t.Errorf("counts %v", got)
			}
		})
	}
}

// An approval that was kept with two votes of one person, however that came, has one.
func TestOnePersonIsOne(t *testing.T) {
	a := open(t, "deploys")
	cast(t, a, vote(a, "ada", true), start)
	a.Votes = append(a.Votes, a.Votes[0])
	people := allow("ada", "bob").now
	if a.Enough("deploys", rules, people, start) {
		t.Error("two votes of one person are enough")
	}
	cast(t, a, vote(a, "bob", true), start)
	if !a.Enough("deploys", rules, people, start) {
		t.Error("two people are not enough")
	}
}

func TestStates(t *testing.T) {
	people := allow("ada", "bob").now
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	expect := func(t *testing.T, a *approval.Approval, minutes int, want approval.State) {
		t.Helper()
		if got := a.State(rules, people, at(minutes)); got != want {
			t.Errorf("after %d minutes: %s, want %s", minutes, got, want)
		}
	}
	t.Run("silence expires, and is no denial", func(t *testing.T) {
		a := open(t, "refunds")
		expect(t, a, 29, approval.Waiting)
		expect(t, a, 30, approval.Expired)
		if a.Stands(at(30)) || a.Live(at(30)) {
			t.Error("it stands")
		}
		if _, err := a.Cast(vote(a, "ada", true), at(30)); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("a late yes: %v", err)
		}
	})
	t.Run("a late yes can be used for ten minutes", func(t *testing.T) {
		a := open(t, "refunds")
		cast(t, a, vote(a, "ada", true), at(29))
		expect(t, a, 38, approval.Approved)
		expect(t, a, 39, approval.Expired)
		if err := a.Use("call_B", at(39)); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("used when it was over: %v", err)
		}
	})
	t.Run("used once", func(t *testing.T) {
		a := open(t, "refunds")
		cast(t, a, vote(a, "ada", true), at(1))
		if err := a.Use("call_B", at(2)); err != nil || a.Arguments != nil {
			t.Errorf("%v, arguments %q", err, a.Arguments)
		}
		expect(t, a, 2, approval.Used)
		if err := a.Use("call_C", at(2)); !errors.Is(err, approval.ErrUsed) || a.Ran != "call_B" {
			t.Errorf("a second time: %v", err)
		}
		for _, err := range []error{second(a.Cast(vote(a, "bob", false), at(2))), a.Finish(approval.Ending{End: approval.EndRevoked}, at(2))} {
			if !errors.Is(err, approval.ErrUsed) {
				t.Errorf("a change of what was used: %v", err)
			}
		}
	})
	t.Run("one no denies, for an hour at most", func(t *testing.T) {
		a := open(t, "deploys")
		cast(t, a, vote(a, "ada", true), at(1))
		cast(t, a, vote(a, "ada", false), at(2)) // the same person, who has changed their mind
		expect(t, a, 3, approval.Denied)
		if !a.Stands(at(61)) || a.Stands(at(62)) || a.Arguments != nil || len(a.Votes) != 1 {
			t.Errorf("got %+v", a)
		}
		if same, err := a.Cast(vote(a, "ada", false), at(3)); !same || err != nil {
			t.Errorf("the same vote again: %v, %v", same, err)
		}
		if _, err := a.Cast(vote(a, "bob", true), at(3)); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("a yes after a no: %v", err)
		}
	})
	t.Run("a denial stands no longer than its approval", func(t *testing.T) {
		a := open(t, "refunds")
		cast(t, a, vote(a, "ada", false), at(1))
		if !a.Stands(at(29)) || a.Stands(at(30)) {
			t.Error("it stands too long, or not at all")
		}
	})
	t.Run("a denial that does not stand", func(t *testing.T) {
		a := open(t, "refunds")
		v := vote(a, "ada", false)
		v.Once = true
		cast(t, a, v, at(1))
		if expect(t, a, 1, approval.Denied); a.Stands(at(1)) {
			t.Error("it stands")
		}
	})
	t.Run("counted anew", func(t *testing.T) {
		a := open(t, "deploys")
		cast(t, a, vote(a, "ada", true), at(1))
		expect(t, a, 1, approval.Waiting)
		cast(t, a, vote(a, "ada", true), at(2)) // two votes of one person are one
		expect(t, a, 2, approval.Waiting)
		cast(t, a, vote(a, "bob", true), at(3))
		expect(t, a, 3, approval.Approved)
		if got := a.State(rules, allow("bob").now, at(3)); got != approval.Waiting {
			t.Errorf("an approver has lost the right: %s", got)
		}
		if got := a.State(approval.Rules{}, people, at(3)); got != approval.Waiting {
			t.Errorf("the rule is gone: %s", got)
		}
		more := approval.Rules{"deploys": {Name: "deploys", Approve: 3}}
		if got := a.State(more, people, at(3)); got != approval.Waiting {
			t.Errorf("the rule asks for more: %s", got)
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		for _, end := range []approval.End{approval.EndWithdrawn, approval.EndRevoked} {
			a := open(t, "refunds")
			if err := a.Finish(approval.Ending{End: end}, at(1)); err != nil {
				t.Error(err)
			}
			if expect(t, a, 1, approval.Withdrawn); a.Stands(at(1)) {
				t.Error("it stands as a denial")
			}
			if err := a.Finish(approval.Ending{End: end}, at(1)); !errors.Is(err, approval.ErrEnded) {
				t.Errorf("ended twice: %v", err)
			}
		}
	})
	t.Run("marked as expired only when it has", func(t *testing.T) {
		a := open(t, "refunds")
		e := approval.Ending{End: approval.EndExpired}
		if err := a.Finish(e, at(29)); !errors.Is(err, approval.ErrEnded) {
			t.Errorf("too early: %v", err)
		}
		if err := a.Finish(e, at(30)); err != nil {
			t.Error(err)
		}
		expect(t, a, 30, approval.Expired)
	})
	t.Run("a vote to another call", func(t *testing.T) {
		a := open(t, "refunds")
		v := vote(a, "ada", true)
		v.Digest = strings.Repeat("0", 64)
		if _, err := a.Cast(v, at(1)); !errors.Is(err, approval.ErrDigest) || len(a.Votes) > 0 {
			t.Errorf("got %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// The caller confirms rules that are its own, and no others.
func TestTheCallerConfirms(t *testing.T) {
	nobody := staff{}.now
	a := open(t, "edits", "refunds")
	decides, err := a.MayConfirm("app", rules)
	if err != nil || !slices.Equal(decides, []string{"edits"}) {
		t.Fatalf("decides %q, %v", decides, err)
	}
	if _, err := a.MayConfirm("other", rules); !errors.Is(err, approval.ErrNotApprover) {
		t.Errorf("another principal: %v", err)
	}
	v := vote(a, "app", true)
	v.Caller = true // and all rules of the approval
	cast(t, a, v, start)
	if !a.Enough("edits", rules, nobody, start) || a.Enough("refunds", rules, nobody, start) {
		t.Error("the confirmation counts for the wrong rules")
	}
	b := open(t, "edits")
	cast(t, b, vote(b, "ada", true), start)
	if !b.Enough("edits", rules, allow("ada").now, start) {
		t.Error("an approver cannot answer for a caller that cannot be asked")
	}
}

func TestRules(t *testing.T) {
	good := rules["deploys"]
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*approval.Rule){
		"no name":         func(r *approval.Rule) { r.Name = "" },
		"nobody":          func(r *approval.Rule) { r.Approve = 0 },
		"too many":        func(r *approval.Rule) { r.Approve = 6 },
		"at once":         func(r *approval.Rule) { r.Within = 0 },
		"for ever":        func(r *approval.Rule) { r.Within = 8 * 24 * time.Hour },
		"unknown scope":   func(r *approval.Rule) { r.Remember = map[approval.Scope]time.Duration{"all": time.Hour} },
		"no time":         func(r *approval.Rule) { r.Remember = map[approval.Scope]time.Duration{approval.Same: 0} },
		"unknown people":  func(r *approval.Rule) { r.By = "callers" },
		"two callers":     func(r *approval.Rule) { r.By = approval.ByCaller },
		"a hint too long": func(r *approval.Rule) { r.Hint = strings.Repeat("x", approval.MaxHint+1) },
	} {
		r := rules["deploys"]
		if change(&r); r.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJSON(t *testing.T) {
	a := open(t, "deploys")
	v := vote(a, "ada", true)
	v.Remember, v.Reason = approval.Remember{Scope: approval.Same, For: time.Hour}, "fine"
	cast(t, a, v, start)
	cast(t, a, vote(a, "bob", true), start)
	for range 2 {
		b, err := approval.Encode(*a)
		if err != nil {
			t.Fatal(err)
		}
		got, err := approval.Decode[approval.Approval](b)
		if err != nil || !reflect.DeepEqual(&got, a) {
			t.Errorf("got %+v, %v", got, err)
		}
		for _, bad := range []string{strings.Replace(string(b), `"id"`, `"di"`, 1), string(b) + "{}", string(b[:len(b)-1]), `{}`, `null`} {
			if _, err := approval.Decode[approval.Approval]([]byte(bad)); err == nil {
				t.Errorf("accepted %.60s", bad)
			}
		}
		if err := a.Use("call_B", start); err != nil {
			t.Fatal(err)
		}
		a.Ended = approval.Ending{}
		a.Ran, a.Revision = "", 9
	}
}

// Whatever is cast and whenever: so many different approvers have said yes, and nobody no,
// where an approval is approved; and Judge, State and Use agree.
func TestApprovedMeansEnough(t *testing.T) {
	names := []string{"ada", "bob", "cyd", "app", "eve"}
	rapid.Check(t, func(t *rapid.T) {
		c := call()
		a, err := approval.Open(approval.Approval{ID: "call_A", Call: c, Rules: []string{"deploys"}}, rules, start)
		if err != nil {
			t.Fatal(err)
		}
		yes, denied, now := map[string]bool{}, false, start
		for range rapid.IntRange(0, 8).Draw(t, "votes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "minutes")) * time.Minute)
			v := vote(&a, rapid.SampledFrom(names).Draw(t, "by"), rapid.IntRange(0, 9).Draw(t, "no") > 0)
			if _, err := a.Cast(v, now); err == nil {
				yes[v.By], denied = v.Yes, denied || !v.Yes
			}
		}
		able := allow(rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, "able")...)
		count := 0
		for by, said := range yes {
			if _, may := able[by]; may && said && by != "app" && by != "eve" {
				count++
			}
		}
		state := a.State(rules, able.now, now)
		if approved := state == approval.Approved; approved && (count < 2 || denied) || !approved && !denied && count >= 2 && now.Before(a.Until) {
			t.Fatalf("%s with %d yes, denied %v", state, count, denied)
		}
		v, err := approval.Judge(&c, []string{"deploys"}, []approval.Approval{a}, nil, rules, able.now, now)
		if err != nil || v.Passes != (state == approval.Approved) || v.Passes && !slices.Equal(v.Using, []string{"call_A"}) {
			t.Fatalf("%s, and judged %+v, %v", state, v, err)
		}
		if v.Passes && a.Use("call_B", now) != nil {
			t.Fatal("what passes cannot be used")
		}
	})
}

// Two copies of an approval that have each missed a change of the other make one that has
// missed none.
func TestMerge(t *testing.T) {
	a := *open(t, "deploys")
	cast(t, &a, vote(&a, "ada", true), start)
	b, denied, used, revoked := a, a, a, a
	cast(t, &a, vote(&a, "bob", true), start)
	cast(t, &b, vote(&b, "cyd", true), start)
	cast(t, &denied, vote(&denied, "dan", false), start)
	if err := errors.Join(used.Use("call_B", start), revoked.Finish(approval.Ending{End: approval.EndRevoked}, start)); err != nil {
		t.Fatal(err)
	}
	if got := approval.Merge(a, b); len(got.Votes) != 3 || got.Revision <= max(a.Revision, b.Revision) {
		t.Errorf("got %+v", got)
	}
	if got := approval.Merge(a, a); got.Revision != a.Revision {
		t.Errorf("nothing new, and got %+v", got)
	}
	people := allow("ada", "bob", "cyd", "dan").now
	for _, tc := range []struct {
		a, b approval.Approval
		want approval.State
	}{{a, denied, approval.Denied}, {a, used, approval.Used}, {a, revoked, approval.Withdrawn}, {denied, revoked, approval.Denied}, {used, denied, approval.Used}, {a, b, approval.Approved}} {
		for _, got := range []approval.Approval{approval.Merge(tc.a, tc.b), approval.Merge(tc.b, tc.a)} {
			if state := got.State(rules, people, start); state != tc.want || (got.Arguments != nil) != (tc.want == approval.Approved) {
				t.Errorf("%s, want %s: %+v", state, tc.want, got)
			}
		}
	}
}
