package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// The model: one call that asks, two replicas that run it, two approvers, a policy, a rule and
// rights that are edited, crashes at every point. The search goes through every state, and
// what the states allow is decided by this package's own functions, not by a copy of them.

// replica is what one replica has judged of the call, and pinned.
type replica struct {
	at      int8 // 0 idle, 1 judged, 2 dispatched
	allowed bool // the policy let it pass
	enough  bool // approvers of then said yes, as many as the rule of then asked for
}

type world struct {
	ended    approval.End // "", denied, revoked, or expired where the time is over
	votes    [2]bool
	entitled [2]bool
	need     int8
	allow    bool
	used     bool
	reserved int8 // by which replica, with the shortcut usedInTheStage
	acted    int8 // how often the tool has acted
	bad      bool // it acted and must not have
	replicas [2]replica
	edits    int8 // left
	crashes  int8 // left
}

// shortcut is a usual way to get approvals wrong.
type shortcut int

const (
	none shortcut = iota
	runOnTheOldJudgement
	votesNotCountedAnew
	checkThenAct
	usedInTheStage
)

var approvers = [2]string{"ada", "bob"}

// modelled is the approval that all states are about, without its votes and its end.
func modelled(t testing.TB) approval.Approval {
	t.Helper()
	a, err := approval.Open(approval.Approval{ID: "call_A", Call: call(), Rules: []string{"refunds"}}, rules, start)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// record is the approval of a state.
func (w *world) record(base approval.Approval) approval.Approval {
	for i, by := range approvers {
		if w.votes[i] {
			base.Votes = append(base.Votes, approval.Vote{By: by, Yes: true, Digest: base.Digest, Rules: base.Rules, At: start})
		}
	}
	if w.ended != approval.EndExpired {
		base.Ended.End = w.ended
	}
	if w.used {
		base.Ran = "call_B"
	}
	return base
}

func (w *world) now() time.Time {
	if w.ended == approval.EndExpired {
		return start.Add(2 * time.Hour)
	}
	return start.Add(time.Minute)
}

func (w *world) rules() approval.Rules {
	return approval.Rules{"refunds": {Name: "refunds", Approve: int(w.need), Within: 30 * time.Minute}}
}

func (w *world) people(cut shortcut) approval.People {
	able := staff{}
	for i, by := range approvers {
		if w.entitled[i] || cut == votesNotCountedAnew {
			able[by] = approval.Voter{Principal: by, Approves: []string{"refunds"}}
		}
	}
	return able.now
}

// sufficient is the model's own count, by which the package's is judged.
func (w *world) sufficient() bool {
	n := int8(0)
	for i := range w.votes {
		if w.votes[i] && w.entitled[i] {
			n++
		}
	}
	return n >= w.need
}

type modelStep struct {
	name string
	to   world
}

func (w world) next(base approval.Approval, cut shortcut) (steps []modelStep) {
	add := func(name string, change func(*world)) {
		to := w
		change(&to)
		steps = append(steps, modelStep{name, to})
	}
	for i, by := range approvers {
		a := w.record(base)
		if decides, err := a.MayVote(w.people(none)(approval.Vote{By: by})); err == nil {
			if same, err := a.Cast(approval.Vote{By: by, Yes: true, Digest: a.Digest, Rules: decides}, w.now()); err == nil && !same {
				add("yes of "+by, func(to *world) { to.votes[i] = true })
			}
		}
	}
	a := w.record(base)
	if _, err := a.Cast(approval.Vote{By: "cyd", Digest: a.Digest, Rules: a.Rules}, w.now()); err == nil {
		add("no", func(to *world) { to.ended = a.Ended.End })
	}
	b := w.record(base)
	if b.Finish(approval.Ending{End: approval.EndRevoked}, w.now()) == nil {
		add("revoked", func(to *world) { to.ended = b.Ended.End })
	}
	if w.ended == "" && !w.used {
		add("its time is over", func(to *world) { to.ended = approval.EndExpired })
	}
	if w.edits > 0 {
		add("the policy is edited", func(to *world) { to.allow = !w.allow; to.edits-- })
		add("ada loses or gains the right", func(to *world) { to.entitled[0] = !w.entitled[0]; to.edits-- })
		add("the rule asks for another number", func(to *world) { to.need = 3 - w.need; to.edits-- })
	}
	for i := range w.replicas {
		steps = append(steps, w.runs(i, base, cut)...)
	}
	return steps
}

// runs are the steps of one replica: the caller sends the call, it is judged, dispatched, and
// its tool answers.
func (w *world) runs(i int, base approval.Approval, cut shortcut) (steps []modelStep) {
	add := func(name string, change func(*world)) {
		to := *w
		change(&to)
		steps = append(steps, modelStep{fmt.Sprintf("%s at %d", name, i+1), to})
	}
	idle := func(to *world) { to.replicas[i] = replica{} }
	a := w.record(base)
	switch r := w.replicas[i]; r.at {
	case 0:
		c := call()
		v, err := approval.Judge(&c, []string{"refunds"}, []approval.Approval{a}, nil, w.rules(), w.people(cut), w.now())
		if err != nil || !v.Passes || !w.allow && cut != runOnTheOldJudgement {
			return nil
		}
		add("judged", func(to *world) {
			to.replicas[i] = replica{1, w.allow, w.sufficient()}
			if cut == usedInTheStage {
				to.used, to.reserved = a.Use("call_B", w.now()) == nil, int8(i+1)
			}
		})
	case 1:
		add("the log refuses", idle)
		if w.crashes > 0 {
			add("crash before dispatch", func(to *world) { idle(to); to.crashes-- })
		}
		var may bool
		switch cut {
		case checkThenAct:
			may = true
		case usedInTheStage:
			may = w.reserved == int8(i+1) && w.ended == ""
		default:
			may = a.Use("call_B", w.now()) == nil
		}
		if may {
			add("dispatched", func(to *world) {
				to.used, to.replicas[i].at = true, 2
				to.acted++
				to.bad = w.bad || w.ended != "" || !r.enough || !r.allowed
			})
		}
	case 2:
		add("the tool has answered", idle)
		if w.crashes > 0 {
			add("crash after dispatch", func(to *world) { idle(to); to.crashes-- })
		}
	}
	return steps
}

// fault returns what is wrong in a state; empty: nothing.
func (w *world) fault(base approval.Approval) string {
	idle := w.replicas[0].at == 0 && w.replicas[1].at == 0
	switch {
	case w.acted > 1:
		return "it acted twice"
	case w.bad:
		return "it acted without a valid approval"
	case w.acted > 0 || w.ended != "" || !w.sufficient() || !idle:
		return ""
	case w.used:
		return "the approval is spent, and nothing has run"
	}
	a := w.record(base)
	if state := a.State(w.rules(), w.people(none), w.now()); state != approval.Approved {
		return "enough people say yes, and it is " + string(state)
	}
	return ""
}

// search returns the shortest way to a fault; nil if there is none.
func search(base approval.Approval, cut shortcut) (fault string, way []string, states, transitions int) {
	type node struct {
		from *node
		by   string
		w    world
	}
	seen := map[world]bool{}
	var queue []*node
	for _, need := range []int8{1, 2} {
		w := world{entitled: [2]bool{true, true}, need: need, allow: true, edits: 3, crashes: 2}
		seen[w] = true
		queue = append(queue, &node{w: w})
	}
	for ; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if fault := n.w.fault(base); fault != "" {
			for ; n.from != nil; n = n.from {
				way = append(way, n.by)
			}
			slices.Reverse(way)
			return fault, way, len(seen), transitions
		}
		for _, s := range n.w.next(base, cut) {
			transitions++
			if !seen[s.to] {
				seen[s.to] = true
				queue = append(queue, &node{n, s.name, s.to})
			}
		}
	}
	return "", nil, len(seen), transitions
}

// No order of votes, edits, judgements, crashes and dispatches lets a call run twice, or run
// without a valid approval, or lose one; and each usual shortcut does one of these.
func TestModel(t *testing.T) {
	base := modelled(t)
	fault, way, states, transitions := search(base, none)
	if fault != "" {
		t.Fatalf("%s: %s", fault, strings.Join(way, " → "))
	}
	t.Logf("%d states, %d transitions", states, transitions)
	if states < 1_000 {
		t.Errorf("only %d states: the model does not move", states)
	}
	for name, tc := range map[string]struct {
		cut   shortcut
		fault string
	}{
		"run on the old judgement":      {runOnTheOldJudgement, "it acted without a valid approval"},
		"votes are not counted anew":    {votesNotCountedAnew, "it acted without a valid approval"},
		"check in the stage, act later": {checkThenAct, "it acted without a valid approval"},
		"used up in the stage":          {usedInTheStage, "the approval is spent, and nothing has run"},
	} {
		fault, way, _, _ := search(base, tc.cut)
		if fault != tc.fault {
			t.Errorf("%s: found %q, want %q", name, fault, tc.fault)
		}
		t.Logf("%s: %s: %s", name, fault, strings.Join(way, " → "))
	}
}
