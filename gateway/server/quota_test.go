package server_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/callgate/callgate/gateway/server"
)

// TestPoolHalves: nobody holds more than half, of a bound of one that one, and what is
// given back can be taken again.
func TestPoolHalves(t *testing.T) {
	for _, c := range []struct{ most, half int64 }{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {9, 4}, {256, 128}} {
		p := server.NewQuota(c.most)
		for range 2 {
			if p.Take("one", c.half+1) || !p.Take("one", c.half) || p.Take("one", 1) {
				t.Errorf("of %d, one has not just %d", c.most, c.half)
			}
			rest := min(c.half, c.most-c.half)
			if rest > 0 && !p.Take("two", rest) || p.Take("two", c.half) {
				t.Errorf("of %d, two has not just %d", c.most, rest)
			}
			p.Release("one", c.half)
			p.Release("two", rest)
			if taken, holders, _ := p.State(); taken != 0 || holders != 0 {
				t.Errorf("of %d, %d are taken by %d in the end", c.most, taken, holders)
			}
		}
	}
}

// TestPoolTurns: who waits comes before who comes, in order, as far as the half of each
// allows; who gives up takes nothing.
func TestPoolTurns(t *testing.T) {
	p := server.NewQuota(2)
	order := make(chan string, 8)
	waits := func(ctx context.Context, caller string) {
		_, _, before := p.State()
		go func() {
			if p.Wait(ctx, caller) {
				order <- caller
			} else {
				order <- caller + " gave up"
			}
		}()
		for {
			if _, _, now := p.State(); now > before {
				return
			}
			runtime.Gosched()
		}
	}
	p.Take("one", 1)
	p.Take("two", 1)
	leaving, disconnect := context.WithCancel(context.Background())
	waits(context.Background(), "one") // which has its half already
	waits(leaving, "three")
	waits(context.Background(), "four")
	waits(context.Background(), "five")
	disconnect()
	if got := <-order; got != "three gave up" {
		t.Errorf("first %s", got)
	}
	p.Release("two", 1)
	if got := <-order; got != "four" {
		t.Errorf("then %s", got)
	}
	if p.Take("six", 1) {
		t.Error("one who comes was before those who wait")
	}
	p.Release("one", 1)
	if got := <-order; got != "one" {
		t.Errorf("then %s", got)
	}
	p.Release("four", 1)
	if got := <-order; got != "five" {
		t.Errorf("at last %s", got)
	}
	p.Release("one", 1)
	p.Release("five", 1)
	if taken, holders, waiting := p.State(); taken != 0 || holders != 0 || waiting != 0 {
		t.Errorf("%d are taken by %d, and %d wait", taken, holders, waiting)
	}
}

// TestPoolUnderLoad: whatever many do at once, nothing is lost, and nothing is held
// beyond its bound.
func TestPoolUnderLoad(t *testing.T) {
	const most = 7
	p := server.NewQuota(most)
	var running sync.WaitGroup
	for _, caller := range []string{"one", "two", "three", "four"} {
		for range 8 {
			running.Go(func() {
				for range 200 {
					ctx, cancel := context.WithCancel(context.Background())
					if rand.N(2) == 0 {
						go cancel()
					}
					if p.Wait(ctx, caller) {
						if taken, _, _ := p.State(); taken > most {
							t.Errorf("%d are taken", taken)
						}
						runtime.Gosched()
						p.Release(caller, 1)
					}
					cancel()
				}
			})
		}
	}
	running.Wait()
	if taken, holders, waiting := p.State(); taken != 0 || holders != 0 || waiting != 0 {
		t.Errorf("%d are taken by %d, and %d wait", taken, holders, waiting)
	}
}
