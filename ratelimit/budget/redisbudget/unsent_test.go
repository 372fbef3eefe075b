package redisbudget_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/ratelimit/budget/redisbudget"
	"github.com/callgate/callgate/refusal"
)

// TestUnsentAmountsInFlightCount: what was granted while Redis was away counts for this gateway's part also
// while a request carries it to a Redis that does not answer.
func TestUnsentAmountsInFlightCount(t *testing.T) {
	server := redistest.Start(t)
	a, err := redisbudget.NewAt(optionsOf(server.Address(), "x:"), nil, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	set, charges := monthly(1000, 2)
	reserve := func(tokens int64) error {
		_, err := a.Reserve(t.Context(), set, charges, budget.Amount{Tokens: tokens})
		return err
	}
	if err := reserve(600); err != nil {
		t.Fatal(err)
	}
	server.Signal(t, syscall.SIGSTOP)
	defer server.Signal(t, syscall.SIGCONT)
	a.Lose(errors.New("Redis stands still"))
	if err := reserve(150); err != nil { // of (1000-600)/2
		t.Fatal(err)
	}
	until(t, "the amount is on its way", func() bool {
		own, inFlight := a.HasUnsent()
		return !own && inFlight
	})
	a.Lose(errors.New("Redis stands still"))
	if err := reserve(60); codeOf(err) != refusal.RateLimited {
		t.Errorf("150 of 200 are on their way, and 60 more: %v", err)
	}
	server.Signal(t, syscall.SIGCONT)
	until(t, "Redis is charged", func() bool {
		states, err := a.Read(t.Context(), charges)
		return err == nil && states[0].Spent.Tokens == 750
	})
	until(t, "nothing is owed", func() bool {
		own, inFlight := a.HasUnsent()
		return !own && !inFlight
	})
}

// TestForeignKeyAtTheEnd: where a key was overwritten while a request ran, its settlement ends with
// that, and Redis does not count as away for the others.
func TestForeignKeyAtTheEnd(t *testing.T) {
	server := redistest.Start(t)
	l := open(t, optionsOf(server.Address(), "x:"))
	_, charges := monthly(1000, 0)
	r, err := l.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(t.Context(), "x:*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	if err := client.Set(t.Context(), keys[0], "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.Settle(budget.Amount{})
	other := *charges[0].Budget
	other.Name = "other"
	if _, err := l.Reserve(t.Context(), nil, []budget.Charge{{Budget: &other}}, budget.Amount{Tokens: 1}); err != nil {
		t.Errorf("another budget: %v", err)
	}
}

// TestReservationsOfTheDead: what a gateway had reserved when it ended stays reserved, and every
// gateway sees it; names are those that a gateway has charged itself.
func TestReservationsOfTheDead(t *testing.T) {
	prefix, address := redistest.Prefix(), redistest.Shared(t)
	dead, alive := open(t, optionsOf(address, prefix)), open(t, optionsOf(address, prefix))
	_, charges := monthly(1000, 0)
	if _, err := dead.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 300}); err != nil {
		t.Fatal(err)
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if used := alive.Used(); len(used) != 0 {
		t.Errorf("it has charged nothing, and knows %v", used)
	}
	r, err := alive.Reserve(t.Context(), nil, charges, budget.Amount{Tokens: 50})
	if err != nil {
		t.Fatal(err)
	}
	r.Settle(budget.Amount{Tokens: 20})
	states, err := alive.Read(t.Context(), charges)
	if err != nil || states[0].Spent.Tokens != 320 || states[0].Reserved.Tokens != 300 {
		t.Errorf("found %+v, %v", states, err)
	}
	if used := alive.Used(); len(used) != 1 || used[0] != charges[0].Counter() {
		t.Errorf("it knows %v", used)
	}
}
