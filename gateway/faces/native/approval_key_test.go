package native_test

import (
	"testing"
)

// A call that was asked for under an idempotency key, and ran when it was taken up or sent again
// without the key, has the key: the same request again gets what became of it, and asks nobody. The
// key is one for no other request.
func TestKeyOfACallThatAsked(t *testing.T) {
	for name, run := range map[string]func(o office, id string) answered{
		"taken up":              func(o office, id string) answered { return o.send(t, "POST", "/v1/calls/"+id+"/resume", "") },
		"sent again without it": func(o office, _ string) answered { return o.send(t, "POST", "/v1/calls", pay(" 7")) },
		"sent again with it": func(o office, _ string) answered {
			return o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k")
		},
		"taken up, and the policy asks no more": func(o office, id string) answered {
			o.governed(t, "p, Analyst, *, pay, , allow\n")
			defer o.governed(t, "p, Analyst, *, pay, , ask:refunds\n")
			return o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			id := o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k").CallID
			if err := o.vote(t, id, "ada", true, ""); err != nil {
				t.Fatal(err)
			}
			ran := run(o, id)
			if ran.status != 200 || ran.Result == nil || o.ran.Load() != 1 {
				t.Fatalf("%+v, ran %d times", ran, o.ran.Load())
			}
			again := o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k")
			if again.status != 200 || again.Result == nil || string(again.Result.Output) != string(ran.Result.Output) || o.ran.Load() != 1 {
				t.Errorf("the same request again: %+v, ran %d times", again, o.ran.Load())
			}
			if other := o.send(t, "POST", "/v1/calls", pay("8"), "Idempotency-Key", "k"); other.code != "idempotency_conflict" {
				t.Errorf("another request: %+v", other)
			}
			if fresh := o.send(t, "POST", "/v1/calls", pay("7")); fresh.State != "approval" || fresh.CallID == id {
				t.Errorf("the same call without its key: %+v", fresh)
			}
		})
	}
}

// Where the key was given to another call meanwhile, that one keeps it.
func TestKeyThatAnotherCallHas(t *testing.T) {
	o := newOffice(t)
	id := o.send(t, "POST", "/v1/calls", pay("7"), "Idempotency-Key", "k").CallID
	o.governed(t, "p, Analyst, *, pay, args.amount == 8, allow\np, Analyst, *, pay, args.amount == 7, ask:refunds\n")
	other := o.send(t, "POST", "/v1/calls", pay("8"), "Idempotency-Key", "k")
	if err := o.vote(t, id, "ada", true, ""); err != nil || other.status != 200 {
		t.Fatal(err, other)
	}
	if a := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); a.status != 200 || o.ran.Load() != 2 {
		t.Errorf("taken up: %+v, ran %d times", a, o.ran.Load())
	}
	again := o.send(t, "POST", "/v1/calls", pay("8"), "Idempotency-Key", "k")
	if again.Result == nil || string(again.Result.Output) != string(other.Result.Output) || o.ran.Load() != 2 {
		t.Errorf("the other call: %+v, ran %d times", again, o.ran.Load())
	}
}
