package gateway_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// A decision that was refused behind the stage rate is judged anew: it pays no second token,
// its calls have new ids, and its holder sees the new judgement. However the completion
// came, the bytes are those that came.
func TestJudgedAnew(t *testing.T) {
	ctx := context.Background()
	for name, judge := range map[string]func(k *calls.Executor) *gateway.Decision{
		"whole": func(k *calls.Executor) *gateway.Decision { return k.Kernel.Judge(ctx, completion(search)) },
		"admitted": func(k *calls.Executor) *gateway.Decision {
			return admit(t, k, gateway.Request{}).Judge(ctx, gateway.ModeCall, gateway.Input{Completion: []byte(search)})
		},
		"pieces": func(k *calls.Executor) *gateway.Decision {
			s, err := k.Kernel.Stream(ctx, gateway.Request{})
			if err != nil {
				t.Fatal(err)
			}
			s.Write([]byte(search[:20]))
			s.Write([]byte(search[20:]))
			return s.Close(ctx, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			k := kernelOf(t, state(t, vectorConfig), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: j}})
			for range 2 { // of the burst of 3
				k.Kernel.Judge(ctx, completion(search)).Release()
			}
			j.fail(true)
			d := judge(k)
			if code := codeOf(d); code != refusal.AuditUnavailable {
				t.Fatalf("judged first: %q", code)
			}
			first := d.Reports[0].CallID
			if code := codeOf(d.Reopen(ctx).Judge(ctx)); code != refusal.AuditUnavailable {
				t.Fatalf("judged again without a log: %q", code)
			}
			j.fail(false)
			d.Become(d.Reopen(ctx).Judge(ctx))
			if code := codeOf(d); code != "" || d.Reports[0].CallID == first || string(d.Reports[0].Call.Arguments) != `{"query":"x"}` {
				t.Fatalf("judged anew: %q, %+v", code, d.Reports[0])
			}
			if _, err := gateway.DoorOf(k.Kernel).Approve(d, gateway.ModeCall); err != nil {
				t.Errorf("a decision that passed: %v", err)
			}
			d.Release()
			if code := codeOf(k.Kernel.Judge(ctx, completion(search))); code != refusal.RateLimited {
				t.Errorf("another call behind the burst: %q", code)
			}
		})
	}
}

// Checks that a call passed are not run again; the others are run by the current configuration and
// the current credentials.
func TestJudgedAnewByTheConfigurationOfNow(t *testing.T) {
	ctx := context.Background()
	s := loose(t)
	j := &journal{}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(newClock().now), Journal: j}})
	passed := k.Kernel.Judge(ctx, completion(search))
	if o := passed.Reopen(ctx); len(o.Calls()) != 0 {
		t.Error("a decision that passed was opened again")
	}
	j.fail(true)
	d := k.Kernel.Judge(ctx, completion(search))
	j.fail(false)
	now := *s
	now.Agents = map[string]bool{"Intern": true}
	if err := k.Kernel.Swap(&now); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(d.Reopen(ctx).Judge(ctx)); code != refusal.AgentRequired {
		t.Errorf("judged anew, and its agent is gone: %q", code)
	}
}
