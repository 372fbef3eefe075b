// Package workers runs an engine on goroutines that are not waited for where the engine hangs, and
// contains its panics. The calls that the engine runs are decided above.
package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Engine runs tools. Run is called once for a call that passed every check and
// whose decision is durable. Its error is a *refusal.Error of the stage execute;
// anything else is an internal fault. It must be safe for concurrent use.
type Engine interface {
	Run(context.Context, tool.Call) (tool.Result, error)
}

// Bounded is an Engine that bounds some calls itself: Run returns soon after the deadline of
// its context, whatever the tool's server does. Such a call runs on the goroutine of its
// request; any other on one of its own, which is not waited for.
type Bounded interface {
	Bounded(tool.Run) bool
}

// Pool runs an engine on goroutines of their own, so that an engine which hangs or panics
// is contained. A worker runs one call at a time. Up to maxIdle of them stay for the next
// calls, with the stacks that their engine's work has grown; one that hangs never does.
// Calls that the engine bounds itself need no worker.
type Pool struct {
	engine  Engine
	bounded func(tool.Run) bool
	maxIdle int

	mu   sync.Mutex
	idle []*worker // the one used last at the end
}

// worker is one goroutine. The call that takes it from the idle ones is its only user.
type worker struct {
	jobs    chan job    // room for one; closed where the worker is to end
	answers chan Answer // room for one
	timer   *time.Timer
}

type job struct {
	ctx  context.Context
	task tool.Call
}

// Answer is what an engine says of a call.
type Answer struct {
	Output tool.Result
	Err    error
	lost   bool // the engine has ended the worker's goroutine
}

// New returns the pool of an engine, which may be nil where nothing is run. Up to idle goroutines
// are kept for the next calls, for good.
func New(engine Engine, idle int) *Pool {
	p := &Pool{engine: engine, maxIdle: idle, bounded: func(tool.Run) bool { return false }}
	if b, ok := engine.(Bounded); ok {
		p.bounded = b.Bounded
	}
	return p
}

// HasEngine reports whether there is an engine.
func (p *Pool) HasEngine() bool { return p != nil && p.engine != nil }

// Run runs the engine. ok is false where it does not answer in time, or before ctx ends. room is for the
// context that the engine is given.
func (p *Pool) Run(ctx context.Context, task tool.Call, within time.Duration, room *deadline.Context) (a Answer, ok bool) {
	bounded := room.WithTimeout(ctx, within)
	defer bounded.Cancel()
	j := job{bounded, task}
	if p.bounded(task.Run) {
		return runGuarded(p.engine, j), true
	}
	w := p.take()
	w.timer.Reset(within)
	w.jobs <- j
	select {
	case a := <-w.answers:
		w.timer.Stop() // before another call may take the worker and set its timer
		if !a.lost {
			p.keep(w)
		}
		return a, true
	case <-ctx.Done():
		w.timer.Stop()
	case <-w.timer.C:
	}
	close(w.jobs) // it ends when its engine returns, and nobody reads that answer
	return Answer{}, false
}

// take returns a worker that is not in use.
func (p *Pool) take() *worker {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return w
	}
	p.mu.Unlock()
	w := &worker{jobs: make(chan job, 1), answers: make(chan Answer, 1), timer: time.NewTimer(time.Hour)}
	go func() {
		for j := range w.jobs {
			w.answer(p.engine, j)
		}
	}()
	return w
}

// keep takes a worker back that has answered.
func (p *Pool) keep(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < p.maxIdle {
		p.idle = append(p.idle, w)
	} else {
		close(w.jobs)
	}
}

// answer runs the engine, and answers even where it ends the goroutine.
func (w *worker) answer(engine Engine, j job) {
	a := Answer{lost: true}
	defer func() {
		if a.lost {
			a.Err = refuse.AfterDispatch(refusal.Execute, errors.New("the engine ended its goroutine"))
		}
		w.answers <- a
	}()
	a = runGuarded(engine, j)
}

// runGuarded runs the engine, and recovers from its panic.
func runGuarded(engine Engine, j job) (a Answer) {
	defer safe.Catch(func(panicked error) { a = Answer{Err: refuse.AfterDispatch(refusal.Execute, panicked)} })
	a.Output, a.Err = engine.Run(j.ctx, j.task)
	return a
}
