package turns_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// follower notes what it is told, and may act on a judgement.
type follower struct {
	reported []string
	judged   func()
}

func (f *follower) Judged(*turns.Turn) {
	f.reported = append(f.reported, "judged")
	if f.judged != nil {
		f.judged()
	}
}

func (f *follower) Running(*turns.Turn) { f.reported = append(f.reported, "running") }

func (f *follower) Ended(_ *turns.Turn, outcomes []calls.Outcome) {
	word := "ended"
	for _, o := range outcomes {
		switch {
		case o.Refusal != nil:
			word += " " + string(o.Refusal.Code)
		case o.Result != nil:
			word += " ok"
		}
	}
	f.reported = append(f.reported, word)
}

// TestObserver: each turn is followed from its judgement to the outcomes of its calls; the answer has
// none.
func TestObserver(t *testing.T) {
	f := &follower{}
	ends(t, plan{script: script{turns: []string{"files_delete", "let me+time_now", "so be it"}}, rules: orchestrate, observer: f})
	const want = "judged, ended permission_denied, judged, running, ended ok, judged"
	if got := strings.Join(f.reported, ", "); got != want {
		t.Errorf("found %s; expected %s", got, want)
	}
}

// TestCalledOff: a call whose application left after the judgement is not run.
func TestCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{judged: cancel}
	got := ends(t, plan{
		script: script{turns: []string{"time_now"}}, rules: orchestrate, observer: f, ctx: ctx,
		engine: func(tool.Call) (tool.Result, error) {
			t.Error("the tool was called")
			return tool.Result{}, nil
		},
	})
	if code(got.failed) != refusal.Canceled || len(got.appended) != 0 {
		t.Errorf("found %q, %q", code(got.failed), got.appended)
	}
	if reported := strings.Join(f.reported, ", "); reported != "judged, ended canceled" {
		t.Errorf("found %s", reported)
	}
}
