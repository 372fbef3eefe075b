package app

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/policy/lab"

	"github.com/callgate/callgate/telemetry"
)

// hostile are candidates that do not do what they should.
var hostile = map[string]func(context.Context, lab.Call) lab.Judgement{
	"panics": func(context.Context, lab.Call) lab.Judgement { panic("candidate") },
	"hangs": func(ctx context.Context, _ lab.Call) lab.Judgement {
		<-ctx.Done()
		return lab.Judgement{Verdict: lab.Allowed}
	},
	"allows all": func(context.Context, lab.Call) lab.Judgement { return lab.Judgement{Verdict: lab.Allowed} },
	"overwrites": func(_ context.Context, c lab.Call) lab.Judgement {
		clear(c.Arguments)
		return lab.Judgement{Verdict: lab.Allowed}
	},
	"asks of all": func(context.Context, lab.Call) lab.Judgement {
		return lab.Judgement{Verdict: lab.Asks, Rules: []string{"all"}}
	},
}

type judgeFunc func(context.Context, lab.Call) lab.Judgement

func (f judgeFunc) Judge(ctx context.Context, c lab.Call) lab.Judgement { return f(ctx, c) }

// No candidate changes an answer: calls are answered as without one, byte for byte but for what
// the tools themselves answer. CALLGATE_CANDIDATE_CALLS is how many calls each candidate sees.
func TestCandidateChangesNothing(t *testing.T) {
	n := 6000 // more than the queue holds
	if more, err := strconv.Atoi(os.Getenv("CALLGATE_CANDIDATE_CALLS")); err == nil {
		n = more
	}
	vectors := corpora.Vectors(t)
	plain := answersOf(t, vectors, n, nil)
	for name, judge := range hostile {
		t.Run(name, func(t *testing.T) {
			for i, got := range answersOf(t, vectors, n, judgeFunc(judge)) {
				if got != plain[i] {
					t.Fatalf("%s: found %+v; expected %+v", vectors[i%len(vectors)].ID, got, plain[i])
				}
			}
		})
	}
}

// answered is an answer without what differs from run to run.
type answered struct {
	status        int
	code, message string
	text          string
}

// answersOf are the answers to the vectors, of a gateway with a candidate.
func answersOf(t *testing.T, vectors []corpora.Vector, n int, judge lab.CandidateJudge) []answered {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(corpora.Testdata("vectors", "config"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte("{}\n# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	comparer := lab.NewComparer(time.Now, nil)
	comparer.Set(judge, c.Digest, "hostile", "")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		comparer.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	r, err := Open(t.Context(), c, nil, Options{Wait: time.Minute, ChangeDeps: func(d calls.Deps) calls.Deps {
		if judge != nil {
			d.Shadow = comparer
		}
		d.Journal = &facetest.Journal{} // the disk has no part in this
		return d
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out []answered
	for i := range n {
		v := vectors[i%len(vectors)]
		o := r.Executor.Handle(t.Context(), gateway.Request{
			Subject: gateway.Subject{Agent: v.Agent, Workspace: v.Workspace, Project: v.Project},
			Inputs:  []gateway.Input{{Completion: v.Bytes(t), Truncated: v.FinishReason != ""}},
		}, "")
		a := answered{status: o.Status, text: string(o.Text)}
		if o.Refusal != nil {
			a.code, a.message = string(o.Refusal.Code), o.Refusal.Message
		}
		out = append(out, a)
	}
	if judge != nil {
		if r := comparer.Report(); len(r.Counts) == 0 {
			t.Errorf("the candidate was asked about nothing: %+v", r)
		}
	}
	return out
}

// A candidate is made ready before its configuration takes effect, and changes nothing until then.
// One that cannot be made is a fault that holds nothing up.
func TestCandidateIsReadyBefore(t *testing.T) {
	load := func() *configs.Config {
		c, err := configs.Default("")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second, broken := load(), load(), load()
	first.Digest, first.Candidate = "first", load()
	second.Digest, second.Candidate = "second", load()
	second.Candidate.Digest = "second candidate"
	broken.Digest, broken.Candidate = "broken", &configs.Config{Digest: "broken candidate"}
	k := newComparing(first, telemetry.New())
	defer k.Close()
	before := k.Report()
	for _, c := range []*configs.Config{second, broken} {
		prepared, err := k.follow(t.Context(), c, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.Digest, err)
		}
		// A change of the configuration from here on is too late to be half of it.
		made := c.Candidate
		c.Candidate = &configs.Config{Digest: "other"}
		prepared.abort()
		if now := k.Report(); now.Candidate != before.Candidate || now.Served != "first" || !now.Active {
			t.Errorf("%s: %+v is in effect before its configuration is", c.Digest, now)
		}
		prepared.commit()
		if now := k.Report(); now.Candidate != made.Digest || now.Served != c.Digest || now.Active != (c == second) || (now.Fault != "") != (c == broken) {
			t.Errorf("%s: found %+v", c.Digest, now)
		}
		k.set(ready(first))
	}
}
