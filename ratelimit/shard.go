package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// replyWait is how long Redis has for one batch, and decisionWait how long a
	// call waits in all, queue included.
	replyWait    = 100 * time.Millisecond
	decisionWait = 150 * time.Millisecond
	queueLength  = 8192
	batchLength  = 512
)

var (
	errQueueFull = errors.New("the queue to Redis is full")
	errSlow      = errors.New("Redis did not answer in time")
)

// stages of a job.
const (
	queued int32 = iota
	sent         // in a batch: from here on it may have run
	left         // nobody waits for it any more
	answered
)

// job is one script, or one plain command, for one node. It is sent at most
// once: only where Redis says that it did not run is it sent again.
type job struct {
	script *script // nil: args are a plain command
	args   []any   // of a script: from the number of keys on
	stage  atomic.Int32
	moved  bool
	reply  string
	err    error
	done   chan struct{} // closed when reply and err are set
	// then, if not nil, is told of the end; late only of the end of a job that
	// nobody waits for any more.
	then, late func(reply string, err error)
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
	j.reply, j.err = reply, err
	waited := j.stage.CompareAndSwap(sent, answered) || j.stage.CompareAndSwap(queued, answered)
	if !waited && j.late != nil {
		j.late(reply, err)
	}
	if j.then != nil {
		j.then(reply, err)
	}
	close(j.done)
}

// leave is for the one who waits, and no longer does. It reports false where
// the answer has just come.
func (j *job) leave() bool {
	return j.stage.CompareAndSwap(queued, left) || j.stage.CompareAndSwap(sent, left)
}

// shard is one node of Redis with its queue. One goroutine sends whatever is
// queued as one pipeline and waits for the replies, so that jobs run in the
// order of the queue and a busy gateway needs few round trips.
type shard struct {
	address string
	client  *redis.Client
	queue   chan *job
	stop    chan struct{}
	wait    time.Duration // for the replies to a batch
	since   string        // takeScript's ARGV[2]
	tag     string        // a hash tag of this node
	// moved finds the shard that a MOVED reply names; nil where there is none.
	moved func(address string) *shard
}

func newShard(address string, client *redis.Client, wait time.Duration) *shard {
	return &shard{address: address, client: client, wait: wait, queue: make(chan *job, queueLength), stop: make(chan struct{})}
}

// put queues a job. A job that finds the queue full is not sent.
func (s *shard) put(j *job) bool {
	select {
	case s.queue <- j:
		return true
	default:
		return false
	}
}

// run sends batches until the shard is stopped; what is queued then fails.
func (s *shard) run() {
	batch := make([]*job, 0, batchLength)
	for {
		select {
		case <-s.stop:
			s.drain()
			return
		case j := <-s.queue:
			batch = s.gather(append(batch[:0], j))
		}
		s.send(batch)
		clear(batch)
	}
}

func (s *shard) gather(batch []*job) []*job {
	for len(batch) < batchLength {
		select {
		case j := <-s.queue:
			batch = append(batch, j)
		default:
			return batch
		}
	}
	return batch
}

func (s *shard) drain() {
	for {
		select {
		case j := <-s.queue:
			j.finish("", errSlow)
		default:
			return
		}
	}
}

func (s *shard) send(batch []*job) {
	live := batch[:0]
	for _, j := range batch {
		if j.stage.CompareAndSwap(queued, sent) {
			live = append(live, j)
		} else {
			close(j.done) // it was left before it was sent
		}
	}
	defer func() {
		if p := recover(); p != nil {
			for _, j := range live {
				select {
				case <-j.done:
				default:
					j.finish("", errors.New("the client of Redis panicked"))
				}
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	again := s.exec(ctx, live, false)
	if len(again) > 0 {
		s.exec(ctx, again, true)
	}
}

// exec sends jobs as one pipeline and hands out the replies. It returns the
// jobs that Redis did not run since it does not know the script, unless they
// were sent whole.
func (s *shard) exec(ctx context.Context, jobs []*job, whole bool) (unknown []*job) {
	if len(jobs) == 0 {
		return nil
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.Cmd, len(jobs))
	for i, j := range jobs {
		if whole {
			j.args[0], j.args[1] = "eval", j.script.source
		}
		replies[i] = pipe.Do(ctx, j.args...)
	}
	_, all := pipe.Exec(ctx)
	for i, j := range jobs {
		value, err := replies[i].Result()
		text, isText := value.(string)
		switch {
		case err != nil && !whole && j.script != nil && isReply(err, "NOSCRIPT"):
			unknown = append(unknown, j)
		case err != nil && isReply(err, "MOVED") && s.redirect(j, err):
		case err != nil:
			j.finish("", err)
		case value == nil && all != nil:
			j.finish("", all)
		case !isText && j.script != nil:
			j.finish("", errReply)
		default:
			j.finish(text, nil)
		}
	}
	return unknown
}

// redirect queues a job that did not run, since its key has moved, at the node
// that has the key now, once.
func (s *shard) redirect(j *job, err error) bool {
	if j.moved || s.moved == nil {
		return false
	}
	text := err.Error()
	to := s.moved(text[strings.LastIndexByte(text, ' ')+1:])
	if to == nil {
		return false
	}
	j.moved = true
	if !j.stage.CompareAndSwap(sent, queued) {
		close(j.done)
		return true
	}
	if j.script != nil {
		j.args[0], j.args[1] = "evalsha", j.script.sha
	}
	if !to.put(j) {
		j.finish("", errQueueFull)
	}
	return true
}

// isReply tells whether Redis itself answered with this error.
func isReply(err error, code string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), code)
}

// onlyThisCall tells whether an error says that Redis is there and judged this
// one call: it is then the call that is refused, and the store is not away.
func onlyThisCall(err error) bool {
	for _, code := range []string{"WRONGTYPE", "BADBUCKET", "ASK", "TRYAGAIN", "CROSSSLOT"} {
		if isReply(err, code) {
			return true
		}
	}
	return isReply(err, "ERR Error running script") && strings.Contains(err.Error(), "WRONGTYPE")
}

// operator is an error in words that hold nothing of a call's content: the
// network's, or the code with which Redis answered.
func operator(err error) error {
	var reply redis.Error
	var wire net.Error
	switch {
	case errors.As(err, &reply) && reply.Error() != "":
		code, _, _ := strings.Cut(reply.Error(), " ")
		return fmt.Errorf("Redis answered %s", strings.TrimSuffix(code, ":"))
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &wire) && wire.Timeout():
		return errSlow
	}
	return err
}
