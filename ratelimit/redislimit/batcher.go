package redislimit

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/ratelimit/internal/charge"
)

const (
	// batchTimeout is how long Redis has for one batch, and callTimeout how long a
	// call waits in all, queue included.
	batchTimeout = 100 * time.Millisecond
	callTimeout  = 150 * time.Millisecond
	queueLength  = 8192
	maxBatch     = 512
)

var errQueueFull = errors.New("the queue to Redis is full")

// stages of a job.
const (
	queued    int32 = iota
	sent            // in a batch: from here on it may have run
	abandoned       // its caller has stopped waiting
	answered
)

// job is one operation for one node. It is sent at most once, unless Redis says that it did not run.
type job struct {
	op         *op
	stage      atomic.Int32
	redirected bool
	err        error
	done       chan struct{}   // closed when err is set
	onDone     func(err error) // gets the result, if not nil
}

// newJob returns a job and its operation as one piece of memory.
func (r *Limiter) newJob(kind string, s *batcher, id string) *job {
	both := &struct {
		job job
		op  op
	}{job{done: make(chan struct{})}, op{kind: kind, limiter: r, batcher: s, id: id}}
	both.job.op = &both.op
	return &both.job
}

func (j *job) finish(err error) {
	j.err = err
	waited := j.stage.CompareAndSwap(sent, answered) || j.stage.CompareAndSwap(queued, answered)
	if !waited && err == nil && j.op.kind == opTake && j.op.decision.outcome == charge.Taken {
		j.op.giveBack()
	}
	if j.onDone != nil {
		j.onDone(err)
	}
	close(j.done)
}

// await waits for the reply. When the time is over or ctx is done, it abandons the job,
// unless the reply has just come.
func (j *job) await(ctx context.Context, over <-chan time.Time) error {
	var why error
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		why = ctx.Err()
	case <-over:
		why = redisconn.ErrTimeout
	}
	if j.abandon() {
		return why
	}
	<-j.done
	return j.err
}

// abandon says that the caller has stopped waiting. It reports false if the reply has
// just come.
func (j *job) abandon() bool {
	return j.stage.CompareAndSwap(queued, abandoned) || j.stage.CompareAndSwap(sent, abandoned)
}

// batcher is one node of Redis with its queue. One goroutine sends all queued jobs as
// one pipeline and waits for the replies, so that jobs run in the order of the queue
// and a busy gateway needs few round trips.
type batcher struct {
	address string
	node    redisconn.Node
	queue   chan *job
	stop    chan struct{}
	wait    time.Duration // for the replies to a batch
	tag     string        // a hash tag of this node
	// epochKey has the epoch of the node; epoch is what is known of it, and instance the run id of Redis.
	epochKey, epoch, instance string
	// findMoved finds the shard that a MOVED reply names; nil where there is none.
	findMoved func(address string) *batcher
	cluster   bool // the keys of a script must have one hash tag

	// Memory that exec uses again for each batch.
	batches  []*batch
	commands [][]any
	replies  []redisconn.Reply
}

func newBatcher(address string, node redisconn.Node, wait time.Duration) *batcher {
	return &batcher{address: address, node: node, wait: wait, queue: make(chan *job, queueLength), stop: make(chan struct{})}
}

// enqueue queues a job; it reports false if the queue is full.
func (s *batcher) enqueue(j *job) bool {
	select {
	case s.queue <- j:
		return true
	default:
		return false
	}
}

// run sends batches until the batcher is stopped; jobs still queued then fail.
func (s *batcher) run() {
	batch := make([]*job, 0, maxBatch)
	for {
		select {
		case <-s.stop:
			s.failQueued()
			return
		case j := <-s.queue:
			batch = s.gather(append(batch[:0], j))
		}
		s.send(batch)
		clear(batch)
	}
}

func (s *batcher) gather(batch []*job) []*job {
	for len(batch) < maxBatch {
		select {
		case j := <-s.queue:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

func (s *batcher) failQueued() {
	for {
		select {
		case j := <-s.queue:
			j.finish(redisconn.ErrTimeout)
		default:
			return
		}
	}
}

func (s *batcher) send(batch []*job) {
	live := batch[:0]
	for _, j := range batch {
		if j.stage.CompareAndSwap(queued, sent) {
			live = append(live, j)
		} else {
			close(j.done) // it was abandoned before it was sent
		}
	}
	defer safe.Catch(func(error) {
		for _, j := range live {
			select {
			case <-j.done:
			default:
				j.finish(errors.New("the client of Redis panicked"))
			}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if unknown := s.exec(ctx, live, false); len(unknown) > 0 {
		s.exec(ctx, unknown, true)
	}
}

// exec sends jobs as one pipeline and hands out the replies. It returns the jobs whose
// script Redis does not know, unless the script was sent whole.
//
// Those that take come last: all others give back, settle, debit or renew, and belong to calls
// that were decided before.
func (s *batcher) exec(ctx context.Context, jobs []*job, whole bool) (unknown []*job) {
	if len(jobs) == 0 {
		return nil
	}
	batches := 0
	for _, takes := range []bool{false, true} {
		for _, j := range jobs {
			if (j.op.kind == opTake) != takes {
				continue
			}
			if batches == 0 || !s.batches[batches-1].fits(j.op, s.cluster) {
				if batches++; batches > len(s.batches) {
					s.batches = append(s.batches, &batch{places: map[string]int{}})
				}
				s.batches[batches-1].reset()
			}
			s.batches[batches-1].add(j)
		}
	}
	s.commands = s.commands[:0]
	for _, b := range s.batches[:batches] {
		s.commands = append(s.commands, b.command(s, whole))
	}
	s.replies = s.node.Send(ctx, s.replies[:0], s.commands...)
	for i, b := range s.batches[:batches] {
		text, err := s.replies[i].Text()
		before := s.epoch
		if err == nil {
			err = b.readReply(s, text)
		}
		if s.epoch != before {
			b.jobs[0].op.limiter.renewNow() // slots may be lost too
		}
		again := err != nil && !whole && redisconn.IsReply(err, "NOSCRIPT")
		if err != nil {
			b.failed(again || redisconn.IsReply(err, "MOVED"))
		}
		for _, j := range b.jobs {
			if again {
				unknown = append(unknown, j)
			} else {
				s.settle(j, err)
			}
		}
	}
	clear(s.replies)
	return unknown
}

// settle hands out a reply.
func (s *batcher) settle(j *job, err error) {
	switch {
	case err != nil && redisconn.IsReply(err, "MOVED") && s.redirect(j, err):
		return
	case err == nil && j.op.decision.outcome == charge.Failed:
		err = errForeignKey
	}
	j.finish(err)
}

// redirect queues a job that did not run because its key has moved at the node that
// has the key now, once.
func (s *batcher) redirect(j *job, err error) bool {
	if j.redirected || s.findMoved == nil {
		return false
	}
	text := err.Error()
	to := s.findMoved(text[strings.LastIndexByte(text, ' ')+1:])
	if to == nil {
		return false
	}
	j.redirected = true
	if !j.stage.CompareAndSwap(sent, queued) {
		close(j.done)
		return true
	}
	if !to.enqueue(j) {
		j.finish(errQueueFull)
	}
	return true
}

// affectsOneCall reports whether Redis answered and refused this one call: then Redis
// is not away.
func affectsOneCall(err error) bool {
	if errors.Is(err, errForeignKey) {
		return true
	}
	for _, code := range []string{"WRONGTYPE", "ASK", "TRYAGAIN", "CROSSSLOT"} {
		if redisconn.IsReply(err, code) {
			return true
		}
	}
	return redisconn.IsReply(err, "ERR Error running script") && strings.Contains(err.Error(), "WRONGTYPE")
}
