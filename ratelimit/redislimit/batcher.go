package redislimit

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

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

var (
	errQueueFull = errors.New("the queue to Redis is full")
	errTimeout   = errors.New("Redis did not answer in time")
)

// stages of a job.
const (
	queued    int32 = iota
	sent            // in a batch: from here on it may have run
	abandoned       // its caller has stopped waiting
	answered
)

// job is one script, or one plain command, for one node. It is sent at most once,
// unless Redis says that it did not run.
type job struct {
	take       *take   // one that takeScript is run for, with others; else nil
	script     *script // nil: args are a plain command
	args       []any
	stage      atomic.Int32
	redirected bool
	err        error
	done       chan struct{}                 // closed when err is set
	onDone     func(reply string, err error) // gets the result, if not nil
}

func newJob(s *script, keys []string, args ...any) *job {
	j := &job{script: s, args: make([]any, 0, 3+len(keys)+len(args)), done: make(chan struct{})}
	j.args = append(j.args, "evalsha", s.sha, len(keys))
	for _, k := range keys {
		j.args = append(j.args, k)
	}
	j.args = append(j.args, args...)
	return j
}

func (j *job) finish(reply string, err error) {
	j.err = err
	waited := j.stage.CompareAndSwap(sent, answered) || j.stage.CompareAndSwap(queued, answered)
	if !waited && err == nil && j.take != nil && j.take.decision.outcome == charge.Taken {
		j.take.refund()
	}
	if j.onDone != nil {
		j.onDone(reply, err)
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
		why = errTimeout
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
	client  *redis.Client
	queue   chan *job
	stop    chan struct{}
	wait    time.Duration // for the replies to a batch
	since   string        // takeScript's ARGV[2]
	tag     string        // a hash tag of this node
	// findMoved finds the shard that a MOVED reply names; nil where there is none.
	findMoved func(address string) *batcher
	cluster   bool // the keys of a script must have one hash tag

	// Memory that exec uses again for each batch.
	takes   []*takeBatch
	replies []*redis.Cmd
}

func newBatcher(address string, client *redis.Client, wait time.Duration) *batcher {
	return &batcher{address: address, client: client, wait: wait, queue: make(chan *job, queueLength), stop: make(chan struct{})}
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
			j.finish("", errTimeout)
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
				j.finish("", errors.New("the client of Redis panicked"))
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
// script Redis does not know, unless the scripts were sent whole.
//
// Those that take come last, and share runs of takeScript: all others give back, debit or
// renew, and belong to calls that were decided before.
func (s *batcher) exec(ctx context.Context, jobs []*job, whole bool) (unknown []*job) {
	if len(jobs) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	replies := s.replies[:0]
	var takes int // batches
	for _, j := range jobs {
		switch {
		case j.take == nil:
			if whole {
				j.args[0], j.args[1] = "eval", j.script.source
			}
			replies = append(replies, pipe.Do(ctx, j.args...))
			continue
		case takes == 0 || !s.takes[takes-1].fits(j.take, s.cluster):
			if takes++; takes > len(s.takes) {
				s.takes = append(s.takes, &takeBatch{places: map[string]int{}})
			}
			s.takes[takes-1].reset()
		}
		s.takes[takes-1].add(j)
	}
	for _, b := range s.takes[:takes] {
		replies = append(replies, pipe.Do(ctx, b.command(&s.since, whole)...))
	}
	_, all := pipe.Exec(ctx)
	next := 0
	for _, j := range jobs {
		if j.take != nil {
			continue
		}
		text, isText, err := textOf(replies[next], all)
		if next++; err == nil && !isText && j.script != nil {
			err = errForeignReply
		}
		if s.settle(j, text, err, whole) {
			unknown = append(unknown, j)
		}
	}
	for i, b := range s.takes[:takes] {
		text, isText, err := textOf(replies[next+i], all)
		if err == nil && !isText {
			err = errForeignReply
		}
		if err == nil {
			err = b.readReply(text)
		}
		for _, j := range b.jobs {
			if s.settle(j, text, err, whole) {
				unknown = append(unknown, j)
			}
		}
	}
	clear(replies)
	s.replies = replies
	return unknown
}

// textOf returns the reply to a command; all is the error of the whole pipeline.
func textOf(command *redis.Cmd, all error) (text string, isText bool, err error) {
	value, err := command.Result()
	if value == nil && err == nil {
		err = all
	}
	text, isText = value.(string)
	return text, isText, err
}

// settle hands out a reply. It reports whether the job is to be sent again, with its script.
func (s *batcher) settle(j *job, reply string, err error, whole bool) (again bool) {
	switch {
	case err != nil && !whole && (j.script != nil || j.take != nil) && redisconn.IsReply(err, "NOSCRIPT"):
		return true
	case err != nil && redisconn.IsReply(err, "MOVED") && s.redirect(j, err):
		return false
	case err == nil && j.take != nil && j.take.decision.outcome == charge.Failed:
		err = errForeignBucket
	}
	j.finish(reply, err)
	return false
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
	if j.script != nil {
		j.args[0], j.args[1] = "evalsha", j.script.sha
	}
	if !to.enqueue(j) {
		j.finish("", errQueueFull)
	}
	return true
}

// affectsOneCall reports whether Redis answered and refused this one call: then Redis
// is not away.
func affectsOneCall(err error) bool {
	if errors.Is(err, errForeignBucket) {
		return true
	}
	for _, code := range []string{"WRONGTYPE", "BADBUCKET", "ASK", "TRYAGAIN", "CROSSSLOT"} {
		if redisconn.IsReply(err, code) {
			return true
		}
	}
	return redisconn.IsReply(err, "ERR Error running script") && strings.Contains(err.Error(), "WRONGTYPE")
}

// sanitized returns an error without the content of a call.
func sanitized(err error) error {
	var wire net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &wire) && wire.Timeout() {
		return errTimeout
	}
	return redisconn.Describe(err)
}
