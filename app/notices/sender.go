package notices

import (
	"context"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/webhook"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Endpoint is where notices are sent.
type Endpoint struct {
	URL *url.URL
	// Addresses are those that may be connected to; empty: public ones.
	Addresses []string
	// Keys reads the keys that each notice is signed with. Its error holds no secret.
	Keys func() ([]webhook.Key, error)
}

// The results of notices.
const (
	Sent    = "sent"    // acknowledged
	Failed  = "failed"  // not acknowledged; it is sent again
	Gone    = "gone"    // the endpoint wants no more of them
	Dropped = "dropped" // an approval ended before any notice of it was acknowledged
)

// Kernel is the part of a kernel that a sender uses.
type Kernel interface {
	Approvals() (approval.Rules, approval.People)
	ApprovalURL(id string) string
}

// Observer counts notices. It must not block, and must be safe for concurrent use.
type Observer interface {
	NoticeEnded(result string)
}

// Deps are the parts of a sender.
type Deps struct {
	Store    store.Notices
	Kernel   Kernel
	Client   *outbound.Client
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time // nil is time.Now
}

const (
	interval = time.Second // between two looks at the store
	parallel = 8           // notices that are sent at the same time
	// timeout bounds one request.
	timeout = 5 * time.Second
	// lease is for how long a notice is claimed: longer than sending an approval's states, of
	// which there are at most three at a time, and noting that.
	lease = 30 * time.Second
	// closeWait is how long closing waits for requests under way.
	closeWait = time.Second
	// storeWait bounds each step in the store.
	storeWait = 2 * time.Second
)

// Sender sends notices to one endpoint. It is safe for concurrent use.
type Sender struct {
	deps    Deps
	timeout time.Duration          // of a request
	target  atomic.Pointer[target] // nil: there is no endpoint

	sending context.Context
	cancel  context.CancelFunc // of requests under way
	stop    chan struct{}
	stopped chan struct{}
	closing sync.Once

	mu      sync.Mutex
	trouble string // the last that was logged; empty: the last notice was acknowledged
}

// target is an endpoint as long as it is the configured one.
type target struct {
	Endpoint
	gone atomic.Bool // it wants no more notices
}

// New starts a sender without an endpoint.
func New(deps Deps) *Sender {
	s := newSender(deps)
	go s.run()
	return s
}

// newSender returns a sender that sends nothing by itself.
func newSender(deps Deps) *Sender {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	s := &Sender{deps: deps, timeout: timeout, stop: make(chan struct{}), stopped: make(chan struct{})}
	s.sending, s.cancel = context.WithCancel(context.Background())
	return s
}

// Follow has notices sent to another endpoint, or to none if it is nil. Requests under way to
// the one before continue.
func (s *Sender) Follow(e *Endpoint) {
	if e == nil {
		s.target.Store(nil)
		return
	}
	s.target.Store(&target{Endpoint: *e})
}

// Close ends the sender. It waits a second for requests under way, and cancels the others, which
// the next process sends again.
func (s *Sender) Close() {
	s.closing.Do(func() { close(s.stop) })
	late := time.AfterFunc(closeWait, s.cancel)
	defer late.Stop()
	<-s.stopped
	s.cancel()
}

func (s *Sender) run() {
	defer close(s.stopped)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for more := true; more; {
			more = s.round()
			select {
			case <-s.stop:
				return
			default:
			}
		}
	}
}

// round sends what is due, up to a bound, and reports whether more may be.
func (s *Sender) round() (more bool) {
	t := s.target.Load()
	if t == nil || t.gone.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(s.sending, storeWait)
	defer cancel()
	var claimed []store.Notice
	err := safe.Do(func() (err error) {
		claimed, err = s.deps.Store.ClaimNotices(ctx, parallel, lease)
		return err
	})
	if err != nil {
		s.report("approval notices could not be read from the store", "", err.Error())
	}
	var all sync.WaitGroup
	for i := range claimed {
		all.Go(func() {
			if err := safe.Do(func() error { s.tell(t, &claimed[i]); return nil }); err != nil {
				s.report(notAcknowledged, claimed[i].Approval.ID, err.Error())
			}
		})
	}
	all.Wait()
	return len(claimed) == parallel && err == nil
}

const (
	notAcknowledged = "approval notices are not acknowledged; they are sent again"
	acknowledged    = "approval notices are acknowledged again"
)

// tell sends the notices of one approval until one is not acknowledged.
func (s *Sender) tell(t *target, n *store.Notice) {
	a := &n.Approval
	rules, people := s.deps.Kernel.Approvals()
	due := a.Unnotified(n.Notified, rules, people, s.deps.Now())
	if len(due) == 0 && n.Notified == 0 && (a.Ran != "" || a.Ended.End != "") {
		s.deps.Observer.NoticeEnded(Dropped)
		s.deps.Log.Warn("approval notice dropped: the approval ended before its notice was acknowledged", "approval", a.ID)
	}
	notified, again := approval.Notified(0), time.Duration(0)
	for _, state := range due {
		again = s.send(t, n, state)
		if again > 0 {
			break
		}
		notified = notified.With(state)
	}
	// An acknowledgement is recorded even if the process is ending.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.sending), storeWait)
	defer cancel()
	if err := s.deps.Store.SettleNotice(ctx, n, notified, again); err != nil {
		s.report("acknowledged approval notices could not be recorded in the store; they are sent again", a.ID, err.Error())
	}
}

// pause is the time until a notice is sent again that was put off so many times.
func pause(tries int) (d time.Duration) {
	b := &backoff.ExponentialBackOff{InitialInterval: 5 * time.Second, RandomizationFactor: 0.1, Multiplier: 6, MaxInterval: longestPause}
	for range min(tries, 8) + 1 {
		d = b.NextBackOff()
	}
	return d
}

const longestPause = 30 * time.Minute

// report logs trouble once, until there is another.
func (s *Sender) report(message, id, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if trouble := message + cause; s.trouble != trouble {
		s.trouble = trouble
		s.deps.Log.Warn(message, "notice", id, "cause", cause)
	}
}

// reportAcknowledged logs a notice that was acknowledged.
func (s *Sender) reportAcknowledged(id string, tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble != "" {
		s.trouble = ""
		s.deps.Log.Info(acknowledged)
	}
	s.deps.Log.Info("approval notice acknowledged", "notice", id, "tries", tries+1)
}
