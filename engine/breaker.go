package engine

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	maxFailures = 10              // attempts in a row that open a breaker
	restTime    = 2 * time.Second // from then until one attempt is let through
	maxBreakers = 4096            // beyond this many tools, the one used longest ago is begun anew
	forgetTime  = 10 * time.Minute
)

// health is what one attempt tells of the server of a tool.
type health int

const (
	silent health = iota // nothing: what went wrong was not its doing
	well                 // it was reached, and answered for itself
	sick                 // it could not be reached, did not answer, or said that it fails
)

// The errors by which a breaker is told.
var (
	errSick   = errors.New("the tool's server is away")
	errSilent = errors.New("nothing is known of the tool's server")
)

// blame judges the server of a tool by an attempt that ended without an answer.
func blame(ctx context.Context, err error) health {
	var (
		b     *blockedError
		errno syscall.Errno
	)
	switch {
	case errors.As(err, &b), errors.Is(ctx.Err(), context.Canceled):
		return silent
	case errors.As(err, &errno) && own(errno):
		return silent
	}
	return sick
}

// own tells whether this host lacked something that a connection needs.
func own(errno syscall.Errno) bool {
	switch errno {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL:
		return true
	}
	return false
}

// judge judges the server of a tool by the status of its answer.
func judge(status int) health {
	if status >= http.StatusInternalServerError {
		return sick
	}
	return well
}

// BreakerEvent is what an operator may want to know of a tool's breaker.
type BreakerEvent struct {
	Kind          BreakerKind
	Tool, Version string
	Cause         error // of the attempt that opened it
}

// BreakerKind is what happened.
type BreakerKind string

// The kinds of events. A breaker whose one attempt fails stays open, which is no
// event.
const (
	BreakerOpened  BreakerKind = "opened"
	BreakerClosed  BreakerKind = "closed"
	BreakerRefused BreakerKind = "refused" // a call, of which nothing was sent
)

// subject is what a breaker is of. A tool that is run elsewhere after a reload
// has another one.
type subject struct{ tool, version, url, addresses string }

// breaker keeps calls from a server that does not answer.
type breaker struct {
	subject
	steps *gobreaker.TwoStepCircuitBreaker[struct{}]
	tell  func(BreakerEvent)
	moved atomic.Pointer[BreakerKind] // not told of yet
	used  time.Time                   // under the lock of all
}

func newBreaker(s subject, tell func(BreakerEvent)) *breaker {
	b := &breaker{subject: s, tell: tell}
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      restTime,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= maxFailures },
		IsSuccessful: func(err error) bool { return err == nil },
		IsExcluded:   func(err error) bool { return errors.Is(err, errSilent) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			// Its lock is held here, so that others are told afterwards.
			switch kind := BreakerOpened; {
			case to == gobreaker.StateClosed:
				kind = BreakerClosed
				b.moved.Store(&kind)
			case from == gobreaker.StateClosed:
				b.moved.Store(&kind)
			}
		},
	})
	return b
}

// pass makes an attempt, unless the breaker is open: then nothing is tried.
func (b *breaker) pass(attempt func() (Result, *Failure)) (result Result, f *Failure, tried bool) {
	done, err := b.steps.Allow()
	if err != nil {
		return Result{}, nil, false
	}
	// An attempt that does not return would hold the place of the next probe.
	ended := errSilent
	defer func() { done(ended); b.report(f) }()
	result, f = attempt()
	switch {
	case f == nil || f.health == well:
		ended = nil
	case f.health == sick:
		ended = errSick
	}
	return result, f, true
}

// report tells of a change, with the fault that may have brought it.
func (b *breaker) report(f *Failure) {
	kind := b.moved.Swap(nil)
	if kind == nil || b.tell == nil {
		return
	}
	e := BreakerEvent{Kind: *kind, Tool: b.tool, Version: b.version}
	if f != nil {
		e.Cause = f.refusal.Cause
	}
	b.tell(e)
}

// refused tells of a call that was kept from the server.
func (b *breaker) refused() {
	if b.tell != nil {
		b.tell(BreakerEvent{Kind: BreakerRefused, Tool: b.tool, Version: b.version})
	}
}

// breakers holds one breaker for each tool. It is safe for concurrent use.
type breakers struct {
	tell func(BreakerEvent)

	mu  sync.Mutex
	all map[subject]*breaker
}

func newBreakers(tell func(BreakerEvent)) *breakers {
	return &breakers{tell: tell, all: map[subject]*breaker{}}
}

// of returns the breaker of a call's tool.
func (bs *breakers) of(call Call) *breaker {
	s := subject{call.Tool, call.Version, call.Run.URL, strings.Join(call.Run.Addresses, " ")}
	if s.url == "" {
		s.url = strings.Join(call.Run.Command, " ")
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b, ok := bs.all[s]
	if !ok {
		if len(bs.all) >= maxBreakers {
			bs.evict()
		}
		b = newBreaker(s, bs.tell)
		bs.all[s] = b
	}
	b.used = time.Now()
	return b
}

// evict drops the breaker used longest ago.
func (bs *breakers) evict() {
	var oldest *breaker
	for _, b := range bs.all {
		if oldest == nil || b.used.Before(oldest.used) {
			oldest = b
		}
	}
	delete(bs.all, oldest.subject)
}

// open counts the breakers that are not closed, of tools in use: one that nobody
// has called for long, as one that is no longer configured, is forgotten.
func (bs *breakers) open() int {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	n := 0
	for s, b := range bs.all {
		switch {
		case time.Since(b.used) > forgetTime:
			delete(bs.all, s)
		case b.steps.State() != gobreaker.StateClosed:
			n++
		}
	}
	return n
}
