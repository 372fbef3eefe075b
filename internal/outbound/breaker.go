package outbound

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/callgate/callgate/tool"
)

const (
	MaxFailures = 10              // attempts in a row that open a breaker
	OpenTime    = 2 * time.Second // from then until one attempt is let through
	maxBreakers = 4096            // beyond this many tools, the one used longest ago is begun anew
	forgetTime  = 10 * time.Minute
)

// The errors that report the health of a server to its breaker.
var (
	errFailed  = errors.New("the tool's server failed")
	errUnknown = errors.New("the health of the tool's server is unknown")
)

// BreakerEvent is an event of a tool's breaker, for the operator.
type BreakerEvent struct {
	Kind          BreakerKind
	Tool, Version string
	Cause         error // of the attempt that opened it
}

// BreakerKind is the kind of an event.
type BreakerKind string

// The kinds of events. A breaker whose one attempt fails stays open, which is no
// event.
const (
	BreakerOpened  BreakerKind = "opened"
	BreakerClosed  BreakerKind = "closed"
	BreakerRefused BreakerKind = "refused" // a call, of which nothing was sent
)

// breakerKey identifies a breaker. A tool that has another URL after a reload has another
// one.
type breakerKey struct{ tool, version, url, addresses string }

// breaker keeps calls from a server that does not respond.
type breaker struct {
	breakerKey
	circuit    *gobreaker.TwoStepCircuitBreaker[struct{}]
	notify     func(BreakerEvent)
	transition atomic.Pointer[BreakerKind] // not reported yet
	lastUsed   time.Time                   // under the lock of all
}

func newBreaker(s breakerKey, tell func(BreakerEvent)) *breaker {
	b := &breaker{breakerKey: s, notify: tell}
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      OpenTime,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= MaxFailures },
		IsSuccessful: func(err error) bool { return err == nil },
		IsExcluded:   func(err error) bool { return errors.Is(err, errUnknown) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			// The circuit's lock is held here, so the event is reported later.
			switch kind := BreakerOpened; {
			case to == gobreaker.StateClosed:
				kind = BreakerClosed
				b.transition.Store(&kind)
			case from == gobreaker.StateClosed:
				b.transition.Store(&kind)
			}
		},
	})
	return b
}

// attempt makes an attempt, unless the breaker is open: then tried is false.
func (b *breaker) attempt(attempt func() (tool.Result, *Failure)) (result tool.Result, f *Failure, tried bool) {
	done, err := b.circuit.Allow()
	if err != nil {
		return tool.Result{}, nil, false
	}
	// An attempt that does not return would hold the place of the next probe.
	ended := errUnknown
	defer func() { done(ended); b.reportTransition(f) }()
	result, f = attempt()
	switch {
	case f == nil || f.health == healthOK:
		ended = nil
	case f.health == healthFailed:
		ended = errFailed
	}
	return result, f, true
}

// reportTransition reports a change of state, with the failure that may have caused it.
func (b *breaker) reportTransition(f *Failure) {
	kind := b.transition.Swap(nil)
	if kind == nil || b.notify == nil {
		return
	}
	e := BreakerEvent{Kind: *kind, Tool: b.tool, Version: b.version}
	if f != nil {
		e.Cause = f.refusal.Cause
	}
	b.notify(e)
}

// reportRefused reports a call that the breaker refused.
func (b *breaker) reportRefused() {
	if b.notify != nil {
		b.notify(BreakerEvent{Kind: BreakerRefused, Tool: b.tool, Version: b.version})
	}
}

// breakers holds one breaker for each tool. It is safe for concurrent use.
type breakers struct {
	notify func(BreakerEvent)

	mu  sync.Mutex
	all map[breakerKey]*breaker
}

func newBreakers(tell func(BreakerEvent)) *breakers {
	return &breakers{notify: tell, all: map[breakerKey]*breaker{}}
}

// forCall returns the breaker of a call's tool.
func (bs *breakers) forCall(call tool.Call) *breaker {
	s := breakerKey{call.Tool, call.Version, call.Run.URL, strings.Join(call.Run.Addresses, " ")}
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
		b = newBreaker(s, bs.notify)
		bs.all[s] = b
	}
	b.lastUsed = time.Now()
	return b
}

// evict drops the breaker that was used longest ago.
func (bs *breakers) evict() {
	var oldest *breaker
	for _, b := range bs.all {
		if oldest == nil || b.lastUsed.Before(oldest.lastUsed) {
			oldest = b
		}
	}
	delete(bs.all, oldest.breakerKey)
}

// BreakerState is a breaker that is open, or whose server has failed lately.
type BreakerState struct {
	Tool, Version string
	State         string // closed, half-open or open
	Failures      int    // in a row; MaxFailures open a closed breaker
}

// failing lists the breakers that are open or count failures, by tool and version.
func (bs *breakers) failing() []BreakerState {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var list []BreakerState
	for s, b := range bs.all {
		state := BreakerState{s.tool, s.version, b.circuit.State().String(), int(b.circuit.Counts().ConsecutiveFailures)}
		if time.Since(b.lastUsed) <= forgetTime && (state.State != gobreaker.StateClosed.String() || state.Failures > 0) {
			list = append(list, state)
		}
	}
	slices.SortFunc(list, func(a, b BreakerState) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Version, b.Version))
	})
	return list
}

// countOpen counts the open breakers of tools in use. A breaker that was not used for
// long, as that of a removed tool, is dropped.
func (bs *breakers) countOpen() int {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	n := 0
	for s, b := range bs.all {
		switch {
		case time.Since(b.lastUsed) > forgetTime:
			delete(bs.all, s)
		case b.circuit.State() != gobreaker.StateClosed:
			n++
		}
	}
	return n
}
