package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// workers run an engine on goroutines of their own, so that an engine which hangs or panics
// is contained. A worker runs one call at a time. Up to maxIdle of them stay for the next
// calls, with the stacks that their engine's work has grown; one that hangs never does.
// Calls that the engine bounds itself need no worker.
type workers struct {
	engine  Engine
	bounded func(tool.Run) bool
	maxIdle int

	mu   sync.Mutex
	idle []*worker // the one used last at the end
}

// worker is one goroutine. The call that takes it from the idle ones is its only user.
type worker struct {
	jobs    chan job    // room for one; closed where the worker is to end
	answers chan answer // room for one
	timer   *time.Timer
}

type job struct {
	ctx  context.Context
	task tool.Call
}

type answer struct {
	output tool.Result
	err    error
	lost   bool // the engine has ended the worker's goroutine
}

func newWorkers(engine Engine, idle int) *workers {
	p := &workers{engine: engine, maxIdle: idle, bounded: func(tool.Run) bool { return false }}
	if b, ok := engine.(Bounded); ok {
		p.bounded = b.Bounded
	}
	return p
}

// run runs the engine. ok is false where it does not answer in time, or before ctx ends.
func (p *workers) run(ctx context.Context, j job, within time.Duration) (a answer, ok bool) {
	if p.bounded(j.task.Run) {
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
	return answer{}, false
}

// take returns a worker that is not in use.
func (p *workers) take() *worker {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		return w
	}
	p.mu.Unlock()
	w := &worker{jobs: make(chan job, 1), answers: make(chan answer, 1), timer: time.NewTimer(time.Hour)}
	go func() {
		for j := range w.jobs {
			w.answer(p.engine, j)
		}
	}()
	return w
}

// keep takes a worker back that has answered.
func (p *workers) keep(w *worker) {
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
	a := answer{err: refuse.AfterDispatch(refusal.Execute, errors.New("the engine ended its goroutine")), lost: true}
	defer func() { w.answers <- a }()
	a = runGuarded(engine, j)
}

// runGuarded runs the engine, and recovers from its panic.
func runGuarded(engine Engine, j job) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = answer{err: refuse.AfterDispatch(refusal.Execute, safe.PanicError(p))}
		}
	}()
	a.output, a.err = engine.Run(j.ctx, j.task)
	return a
}
