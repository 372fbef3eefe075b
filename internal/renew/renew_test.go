package renew_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/renew"
	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// fetcher is a source whose fetches the test answers.
type fetcher struct {
	group   renew.Group
	mu      sync.Mutex
	now     time.Time
	asked   chan struct{} // one for each fetch that has begun
	answers chan answer
	failed  chan error
}

type answer struct {
	value       string
	renew, life time.Duration
	err         error
}

func newFetcher() *fetcher {
	return &fetcher{now: time.Unix(1_000_000, 0), asked: make(chan struct{}, 100), answers: make(chan answer), failed: make(chan error, 100)}
}

func (f *fetcher) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fetcher) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *fetcher) value() *renew.Value[string] {
	return renew.New(renew.Source[string]{
		Group: &f.group, Now: f.clock, Timeout: time.Minute,
		Fetch: func(ctx context.Context) (renew.Fetched[string], error) {
			f.asked <- struct{}{}
			select {
			case a := <-f.answers:
				now := f.clock()
				return renew.Fetched[string]{Value: a.value, Renew: now.Add(a.renew), Until: now.Add(a.life)}, a.err
			case <-ctx.Done():
				return renew.Fetched[string]{}, ctx.Err()
			}
		},
		Failed: func(err error, _ time.Time) { f.failed <- err },
	})
}

// get asks for the value, which is fetched: the answer is given once the fetch has begun.
func (f *fetcher) get(t *testing.T, v *renew.Value[string], a answer) (string, error) {
	t.Helper()
	go func() { f.answers <- a }()
	got, err := v.Get(t.Context())
	<-f.asked
	return got, err
}

func TestOneFetchForAll(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := v.Get(left); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left got %v", err)
	}
	<-f.asked
	var all sync.WaitGroup
	var right atomic.Int64
	for range 50 {
		all.Go(func() {
			if got, err := v.Get(t.Context()); got == "one" && err == nil {
				right.Add(1)
			}
		})
	}
	f.answers <- answer{value: "one", renew: time.Minute, life: time.Hour}
	all.Wait()
	if right.Load() != 50 || len(f.asked) != 0 {
		t.Errorf("%d of 50 got the value, and %d more fetches began", right.Load(), len(f.asked))
	}
}

// TestRenewal: from one time on it is fetched again beside its use, and a failure leaves it in use
// until its end.
func TestRenewal(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	if got, err := f.get(t, v, answer{value: "one", renew: time.Minute, life: time.Hour}); got != "one" || err != nil {
		t.Fatal(got, err)
	}
	f.pass(time.Minute)
	for range 3 {
		if got, err := v.Get(t.Context()); got != "one" || err != nil {
			t.Fatal(got, err)
		}
	}
	<-f.asked
	broken := errors.New("broken")
	f.answers <- answer{err: broken}
	if err := <-f.failed; !errors.Is(err, broken) {
		t.Error(err)
	}
	if got, err := v.Get(t.Context()); got != "one" || err != nil || len(f.asked) != 0 {
		t.Error(got, err, "expected no fetch right after a failure")
	}
	f.pass(time.Hour)
	if got, err := f.get(t, v, answer{err: broken}); !errors.Is(err, broken) || got != "" {
		t.Error(got, err)
	}
	if _, err := v.Get(t.Context()); !errors.Is(err, broken) || len(f.asked) != 0 {
		t.Error(err, "expected the same error, and no fetch right after a failure")
	}
	f.pass(time.Second)
	if got, err := f.get(t, v, answer{value: "two", renew: time.Minute, life: time.Hour}); got != "two" || err != nil {
		t.Error(got, err)
	}
}

// TestExpiresAtOnce: the value is for those who waited for it, and for nobody after them.
func TestExpiresAtOnce(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	for _, want := range []string{"one", "two"} {
		if got, err := f.get(t, v, answer{value: want}); got != want || err != nil {
			t.Error(got, err)
		}
	}
}

func TestDrop(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	long := func(value string) answer { return answer{value: value, renew: time.Hour, life: time.Hour} }
	first, _ := f.get(t, v, long("one"))
	for range 2 {
		if !v.Drop(first) {
			t.Error("the first value that is not accepted, and all that carry it, may be tried again")
		}
	}
	second, err := f.get(t, v, long("two"))
	if second != "two" || err != nil {
		t.Fatal(second, err)
	}
	if !v.Drop(first) {
		t.Error("a late refusal of the first value, while the second is there")
	}
	if v.Drop(second) {
		t.Error("the value after a dropped one was dropped right away")
	}
	if got, err := v.Get(t.Context()); got != "two" || err != nil {
		t.Error(got, err)
	}
	f.pass(10 * time.Second)
	if !v.Drop(second) {
		t.Error("a value is never dropped again")
	}
	if third, err := f.get(t, v, long("three")); third != "three" || err != nil {
		t.Error(third, err)
	}
}

// TestDropOfTheSameValue: a source that gives the dropped value again, since it keeps values for as
// long as they live, is not asked without end; but it is asked again later.
func TestDropOfTheSameValue(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	same := answer{value: "one", renew: time.Hour, life: time.Hour}
	one, _ := f.get(t, v, same)
	if !v.Drop(one) {
		t.Fatal("the first was not dropped")
	}
	for range 2 {
		if _, err := f.get(t, v, same); err != nil {
			t.Fatal(err)
		}
		if v.Drop(one) {
			t.Error("the same value was dropped right away")
		}
		f.pass(10 * time.Second)
		if !v.Drop(one) {
			t.Error("the same value is never dropped again")
		}
	}
	if two, err := f.get(t, v, answer{value: "two"}); two != "two" || err != nil {
		t.Error(two, err)
	}
}

// TestDropOfValuesThatExpireAtOnce ends, too.
func TestDropOfValuesThatExpireAtOnce(t *testing.T) {
	f := newFetcher()
	defer f.group.Close()
	v := f.value()
	first, _ := f.get(t, v, answer{value: "one"})
	if !v.Drop(first) {
		t.Error("the first was not dropped")
	}
	second, _ := f.get(t, v, answer{value: "two"})
	if v.Drop(second) {
		t.Error("the second was dropped right after the first")
	}
}

// TestClose ends what runs, and begins nothing.
func TestClose(t *testing.T) {
	f := newFetcher()
	v := f.value()
	got := make(chan error)
	go func() {
		_, err := v.Get(context.WithoutCancel(t.Context()))
		got <- err
	}()
	<-f.asked
	f.group.Close()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	f.pass(time.Minute)
	if _, err := v.Get(t.Context()); !errors.Is(err, renew.ErrClosed) {
		t.Error(err)
	}
}

// TestPanic of a fetch is its error.
func TestPanic(t *testing.T) {
	var group renew.Group
	defer group.Close()
	v := renew.New(renew.Source[string]{
		Group: &group, Now: time.Now, Timeout: time.Minute,
		Fetch: func(context.Context) (renew.Fetched[string], error) { panic("SECRET") },
	})
	if _, err := v.Get(t.Context()); err == nil || err.Error() != "panic with a value of type string" {
		t.Error(err)
	}
}
