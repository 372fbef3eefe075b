package gateway_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// slowLimiter takes a second of its clock for each caller.
type slowLimiter struct {
	ratelimit.Limiter
	clock *clock
	err   error
}

func (l slowLimiter) Caller(context.Context, *ratelimit.Limits, string) error {
	l.clock.advance(time.Second)
	return l.err
}

// told notes what an observer and a tracer are told of refusals.
type told struct {
	gateway.Observer
	all []string
}

func (o *told) Stage(stage refusal.Stage, took time.Duration) {
	o.all = append(o.all, fmt.Sprint(stage, took))
}
func (*told) Recorded(bool, time.Duration) {}
func (o *told) Judged(verdict string, refused *refusal.Error, agent, tool string) {
	o.all = append(o.all, fmt.Sprint(verdict, refused, agent, tool))
}
func (*told) Wants(string, string, bool) (traced, content bool) { return true, true }
func (o *told) Trace(s tool.Span)                               { o.all = append(o.all, fmt.Sprintf("%+v", s)) }

// TestAdmitWritesWhatJudgeWrites: whoever is not admitted leaves the record, the counts and the span that a
// judgement of nothing leaves.
func TestAdmitWritesWhatJudgeWrites(t *testing.T) {
	for name, c := range map[string]struct {
		authn   gateway.Authenticator
		limited error
		request gateway.Request
	}{
		"nobody":          {knows{"k": analyst}, nil, gateway.Request{Credential: "x"}},
		"another's agent": {knows{"k": analyst}, nil, gateway.Request{Credential: "k", Subject: gateway.Subject{Agent: "Intern"}}},
		"unknown agent":   {nil, nil, gateway.Request{Subject: gateway.Subject{Agent: "Nobody"}, CallerAddress: "127.0.0.1", Thread: "t"}},
		"a panic":         {panics{}, nil, gateway.Request{Credential: "k"}},
		"over its rate":   {knows{"k": analyst}, refusal.New(refusal.CallerRateLimited, "m"), gateway.Request{Credential: "k"}},
		"a client left":   {knows{"k": analyst}, context.Canceled, gateway.Request{Credential: "k"}},
	} {
		t.Run(name, func(t *testing.T) {
			left := func(by func(*calls.Executor, gateway.Request) error) (records []audit.Record, all []string) {
				s, j, now, o := state(t, vectorConfig), &journal{}, newClock(), &told{}
				s.Identity = c.authn
				k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{
					Limiter: slowLimiter{clock: now, err: c.limited}, Journal: j, Observer: o, Tracer: o, Now: now.now, NewID: func() string { return "call_1" },
				}})
				if err := by(k, c.request); err == nil {
					t.Fatal("it was not refused")
				}
				return j.all(), o.all
			}
			ctx, cancel := context.WithCancel(t.Context())
			if cancel(); c.limited != context.Canceled {
				ctx = t.Context()
			}
			want, wanted := left(func(k *calls.Executor, r gateway.Request) error { return k.Kernel.Judge(ctx, r).Refusal() })
			got, found := left(func(k *calls.Executor, r gateway.Request) error { _, err := k.Kernel.Admit(ctx, r); return err })
			if !reflect.DeepEqual(got, want) {
				t.Errorf("found the records\n%+v\nexpected\n%+v", got, want)
			}
			if !reflect.DeepEqual(found, wanted) {
				t.Errorf("told\n%q\nexpected\n%q", found, wanted)
			}
		})
	}
}
