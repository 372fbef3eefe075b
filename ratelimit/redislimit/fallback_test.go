package redislimit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/limittest"
	"github.com/callgate/callgate/internal/testkit/lossy"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/redislimit"
	"github.com/callgate/callgate/refusal"
)

// long runs the faults for longer, repeatedly, and holds the limiter to its
// times: it needs a machine that is not busy with anything else.
var long = os.Getenv("CALLGATE_REDIS_FAULTS") != ""

// slack is how much longer than in use a limiter waits for what will not come.
func slack() int {
	if long {
		return 1
	}
	return redislimit.Waits
}

// sharedAgain is how soon Redis is shared again after it has come back, and how soon it
// is missed: see docs/redis.md.
const (
	decisionMax = 250 * time.Millisecond
	sharedAgain = redislimit.SharedAgain
)

// The bound SharedAgain is promised as five seconds, in docs/redis.md and
// docs/failure-behaviour.md.
func TestSharedAgainAsPromised(t *testing.T) {
	if promised := 5 * time.Second; sharedAgain > promised {
		t.Errorf("Redis may be shared again after %v only; %v are promised", sharedAgain, promised)
	}
}

func through(t testing.TB, s *redistest.Server, slack int) (*redislimit.Limiter, *lossy.Proxy) {
	t.Helper()
	p := lossy.New(t, s.Address())
	r, warnings, err := redislimit.NewWithSlack(context.Background(), optionsFor(p.Address()), slack)
	return opened(t, r, warnings, err), p
}

// local is limits with one budget of alpha, judged locally when Redis is away.
func local(b ratelimit.Budget, replicas int) *ratelimit.Limits {
	l := limittest.OnlyAgent(b)
	l.OnStoreLoss, l.Replicas = ratelimit.LossLocal, replicas
	return l
}

// waitFor waits until Redis is shared again, or is not. Its time begins now: what makes
// Redis come back, or go, is to have happened before.
func waitFor(t testing.TB, r *redislimit.Limiter, want bool) {
	t.Helper()
	start := time.Now()
	for {
		shared, cause := r.Shared()
		if shared == want {
			break
		}
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("shared is %v after two minutes: %v", shared, cause)
		}
		time.Sleep(5 * time.Millisecond)
	}
	if took := time.Since(start); long && took > sharedAgain {
		t.Errorf("shared is %v after %v, want within %v", want, took, sharedAgain)
	}
}

// timed asks once, and checks how long that took.
func timed(t testing.TB, r *redislimit.Limiter, limits *ratelimit.Limits) (ratelimit.Lease, error) {
	t.Helper()
	start := time.Now()
	lease, err := r.Take(context.Background(), limits, limittest.Alpha)
	if took := time.Since(start); long && took > decisionMax {
		t.Errorf("a decision took %v, want at most %v", took, decisionMax)
	}
	return lease, err
}

// tokens are what Redis holds of the agent's bucket, rounded down, or -1.
func tokens(t testing.TB, s *redistest.Server, prefix string) int {
	t.Helper()
	c := s.Client()
	defer c.Close()
	state, err := c.Get(context.Background(), redislimit.KeyOf(prefix, "Analyst")).Result()
	if err != nil {
		return -1
	}
	level, err := strconv.ParseFloat(strings.Fields(state)[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(level / 3_600_000_000)
}

// The script runs and its reply is lost: the call is counted once, whether it
// was then refused or judged by the local share.
func TestAReplyThatIsLostIsCountedOnce(t *testing.T) {
	for name, lose := range map[string]func(*lossy.Faults){
		"vanishes": func(h *lossy.Faults) { h.DropReplies = true },
		"cut off":  func(h *lossy.Faults) { h.CutNextReply = true },
		"another's": func(h *lossy.Faults) {
			h.RewriteReply = func(b []byte) []byte { return bytes.Replace(b, []byte(" 1\r\n"), []byte("01\r\n"), 1) }
		},
		"of another type": func(h *lossy.Faults) { h.RewriteReply = func([]byte) []byte { return []byte(":1\r\n") } },
		"not of the protocol": func(h *lossy.Faults) {
			h.RewriteReply = func([]byte) []byte { return []byte("HTTP/1.1 200 OK\r\n\r\n") }
		},
	} {
		for _, loss := range []ratelimit.StoreLoss{ratelimit.LossRefuse, ratelimit.LossLocal} {
			t.Run(fmt.Sprintf("%s %s", name, loss), func(t *testing.T) { countedOnce(t, lose, loss) })
		}
	}
}

func countedOnce(t *testing.T, lose func(*lossy.Faults), loss ratelimit.StoreLoss) {
	t.Parallel()
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	o := optionsFor(p.Address())
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, r, warnings, err)
	limits := local(limittest.Budget("1/h", 5), 1)
	limits.OnStoreLoss = loss
	limittest.Admitted(t, r, limits, limittest.Alpha)

	p.Set(lose)
	_, err = timed(t, r, limits)
	if loss == ratelimit.LossRefuse {
		limittest.Refused(t, err, refusal.LimiterUnavailable)
	} else {
		limittest.Refused(t, err, refusal.RateLimited) // the share begins empty
	}
	if n := tokens(t, s, o.Prefix); n != 3 {
		t.Fatalf("%d tokens in Redis, want 3: the script did not run, or ran twice", n)
	}
	if shared, cause := r.Shared(); shared || cause == nil {
		t.Fatal("a reply was lost, and the limits are still shared")
	}
	p.Clear()
	p.Cut()
	waitFor(t, r, true)
	if n := limittest.Drain(r, limits, limittest.Alpha, 10); n != 3 {
		t.Errorf("%d admitted, want the 3 that are left", n)
	}
}

// A gateway that nobody calls knows all the same that Redis has gone, and that it
// is back.
func TestALossThatNobodyMeets(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := lossy.New(t, s.Address())
	notified := make(chan bool, 16)
	o := optionsFor(p.Address())
	o.OnChange = func(shared bool, _ error) { notified <- shared }
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, r, warnings, err)
	for _, lose := range []func(*lossy.Faults){func(h *lossy.Faults) { h.DropReplies = true }, func(h *lossy.Faults) { h.CutNextReply, h.DropReplies = true, true }} {
		p.Set(lose)
		waitFor(t, r, false)
		p.Clear()
		waitFor(t, r, true)
	}
	for i, want := range []bool{false, true, false, true} {
		if got := <-notified; got != want {
			t.Errorf("change %d: told that shared is %v", i, got)
		}
	}
}

// Redis forgets its scripts: nobody notices, and nothing is counted twice.
func TestScriptFlush(t *testing.T) {
	s := redistest.Start(t)
	r, warnings, err := redislimit.NewWithSlack(context.Background(), optionsFor(s.Address()), redislimit.Patient)
	opened(t, r, warnings, err)
	c := s.Client()
	defer c.Close()
	limits := limittest.OnlyAgent(limittest.Budget("1/h", 50))
	for range 50 {
		if err := c.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		limittest.Admitted(t, r, limits, limittest.Alpha)
	}
	_, err = r.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.RateLimited)
	if shared, cause := r.Shared(); !shared {
		t.Errorf("not shared: %v", cause)
	}
}

// Redis is started anew while nobody asks, empty or with what it had at some
// time: what was spent stays spent.
func TestARestartThatNobodySees(t *testing.T) {
	for _, kept := range []string{"no", "yes"} {
		for _, loss := range []ratelimit.StoreLoss{ratelimit.LossRefuse, ratelimit.LossLocal} {
			t.Run(fmt.Sprintf("kept %s, loss %s", kept, loss), func(t *testing.T) { restarted(t, kept, loss) })
		}
	}
}

func restarted(t *testing.T, kept string, loss ratelimit.StoreLoss) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", kept, "--appendfsync", "always")
	o := optionsFor(s.Address())
	r, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, r, warnings, err)
	b := limittest.Budget("1/h", 5)
	limits := local(b, 1)
	limits.OnStoreLoss, limits.Default.Budget = loss, &b
	if n := limittest.Drain(r, limits, limittest.Alpha, 2); n != 2 {
		t.Fatalf("%d admitted, want 2", n)
	}
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if n := tokens(t, s, o.Prefix); (n == 3) != (kept == "yes") {
		t.Fatalf("%d tokens after the restart", n)
	}
	if n := limittest.Drain(r, limits, limittest.Alpha, 9); n != 0 {
		t.Errorf("%d admitted after the restart, want none", n)
	}
	waitFor(t, r, true)
	_, err = r.Take(context.Background(), limits, limittest.Alpha)
	limittest.Refused(t, err, refusal.RateLimited)
	// A gateway that starts later knows it from Redis.
	later, warnings, err := redislimit.NewWithSlack(context.Background(), o, slack())
	opened(t, later, warnings, err)
	_, err = later.Take(context.Background(), limits, limittest.KeyOf("Intern", "web.search", "alpha"))
	limittest.Refused(t, err, refusal.RateLimited)
}

// load asks from eight goroutines until stopped, and counts what was admitted.
type load struct {
	group     sync.WaitGroup
	stop      chan struct{}
	began     time.Time
	admitted  atomic.Int64
	slowest   atomic.Int64
	forbidden atomic.Pointer[refusal.Error]
}

func startLoad(r *redislimit.Limiter, limits *ratelimit.Limits) *load {
	w := &load{stop: make(chan struct{}), began: time.Now()}
	for range 8 {
		w.group.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
				}
				start := time.Now()
				lease, err := r.Take(context.Background(), limits, limittest.Alpha)
				w.slowest.Store(max(w.slowest.Load(), int64(time.Since(start))))
				var e *refusal.Error
				switch {
				case err == nil:
					w.admitted.Add(1)
					lease.Release()
				case !errors.As(err, &e) || e.Code != refusal.RateLimited && e.Code != refusal.LimiterUnavailable && e.Code != refusal.ConcurrencyLimited:
					w.forbidden.Store(refusal.From(refusal.Rate, err))
				}
				time.Sleep(500 * time.Microsecond)
			}
		})
	}
	return w
}

// end checks that what was admitted is the rate and one burst at most.
func (w *load) end(t testing.TB, perSecond float64, burst int) {
	t.Helper()
	close(w.stop)
	w.group.Wait()
	may := float64(burst) + perSecond*time.Since(w.began).Seconds()
	if n := w.admitted.Load(); float64(n) > may {
		t.Errorf("%d admitted, want at most %.0f", n, may)
	} else {
		t.Logf("%d admitted of %.0f; slowest decision %v", n, may, time.Duration(w.slowest.Load()))
	}
	if w.admitted.Load() == 0 {
		t.Error("nothing was admitted")
	}
	if e := w.forbidden.Load(); e != nil {
		t.Errorf("got %v", e)
	}
	if slowest := time.Duration(w.slowest.Load()); long && slowest > decisionMax {
		t.Errorf("a decision took %v, want at most %v", slowest, decisionMax)
	}
}

// Whatever happens to Redis, no more is granted than the rate and one burst,
// across the loss and the return.
func TestTheRateHoldsAcrossALoss(t *testing.T) {
	const burst = 40
	rounds, away, paused := 1, 600*time.Millisecond, 5*time.Second // longer than it waits
	if long {
		rounds, away, paused = 5, 3*time.Second, 3*time.Second
	}
	faults := map[string]struct {
		hurt, heal func(testing.TB, *redistest.Server, *lossy.Proxy)
	}{
		"killed and started": {
			func(_ testing.TB, s *redistest.Server, _ *lossy.Proxy) { s.Kill() },
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) {
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
			},
		},
		"stopped": {
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { s.Signal(t, syscall.SIGSTOP) },
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { s.Signal(t, syscall.SIGCONT) },
		},
		"paused": {
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) {
				c := s.Client()
				defer c.Close()
				if err := c.Do(context.Background(), "client", "pause", paused.Milliseconds(), "all").Err(); err != nil {
					t.Fatal(err)
				}
			},
			func(testing.TB, *redistest.Server, *lossy.Proxy) {},
		},
		"replies lost": {
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) {
				p.Set(func(h *lossy.Faults) { h.DropReplies = true })
			},
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) { p.Clear() },
		},
		"half open": {
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) {
				p.Set(func(h *lossy.Faults) { h.DropRequests, h.DropReplies = true, true })
			},
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) { p.Clear() },
		},
		"slow": {
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) {
				p.Set(func(h *lossy.Faults) { h.DelayReplies = 5 * time.Second })
			},
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) { p.Clear(); p.Cut() },
		},
		"cut": {
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) { p.Cut() },
			func(testing.TB, *redistest.Server, *lossy.Proxy) {},
		},
		"lies": {
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) {
				p.Set(func(h *lossy.Faults) {
					h.RewriteReply = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("/"), []byte("|")) }
				})
			},
			func(_ testing.TB, _ *redistest.Server, p *lossy.Proxy) { p.Clear() },
		},
		"flushed and killed": {
			func(_ testing.TB, s *redistest.Server, p *lossy.Proxy) { s.Kill(); p.Cut() },
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) {
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
			},
		},
		"out of memory": {
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { configure(t, s, "maxmemory", "1") },
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { configure(t, s, "maxmemory", "0") },
		},
		"made a replica": {
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { command(t, s, "replicaof", "127.0.0.1", "1") },
			func(t testing.TB, s *redistest.Server, _ *lossy.Proxy) { command(t, s, "replicaof", "no", "one") },
		},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			r, p := through(t, s, slack())
			limits := local(limittest.Budget("100/s", burst), 1)
			limits.Default.Concurrency = new(6)
			w := startLoad(r, limits)
			for range rounds {
				time.Sleep(300 * time.Millisecond)
				f.hurt(t, s, p)
				if name != "cut" {
					waitFor(t, r, false)
				}
				time.Sleep(away)
				f.heal(t, s, p)
				waitFor(t, r, true)
			}
			time.Sleep(300 * time.Millisecond)
			waitFor(t, r, true)
			w.end(t, 100, burst)
			if n := r.InFlight("Analyst"); n != 0 {
				t.Errorf("%d slots held, want none", n)
			}
		})
	}
}

func command(t testing.TB, s *redistest.Server, args ...any) {
	t.Helper()
	c := s.Client()
	defer c.Close()
	if err := c.Do(context.Background(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

func configure(t testing.TB, s *redistest.Server, key, value string) {
	t.Helper()
	command(t, s, "config", "set", key, value)
}
